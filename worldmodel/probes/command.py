"""``python -m worldmodel probe``: evaluate checkpoints beside controls and ceilings."""

from __future__ import annotations

import sys

from orbits.runs import flags, study
from orbits.runs.cli import called, one_line_errors
from worldmodel.probes.probe import STUDY


def main(arguments: list[str]) -> None:
    """Run the probes; bad input is one line on stderr and exit code 2, a failed cell 1."""
    with one_line_errors():
        choice = flags.parse_study(STUDY, arguments, called("worldmodel probe"))
        STUDY.check(choice.settings)
        results = flags.execute(STUDY, choice)
        if results is None:
            return
        words, code = study.summary(results, choice.out)
        print(words)
        print(study.report(STUDY, choice.out))
    if code:
        sys.exit(code)
