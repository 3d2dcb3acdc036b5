"""``python -m worldmodel probe``: evaluate checkpoints beside controls and ceilings."""

from __future__ import annotations

import sys

from orbits.runs import flags, study
from orbits.runs.cli import called, one_line_errors
from worldmodel.outside import source
from worldmodel.probes.probe import STUDY


def _models_first(arguments: list[str]) -> list[str]:
    """Return the line with each ``--model NAME`` as one more word in front."""
    models, rest, words = [], [], iter(arguments)
    for word in words:
        flag, equals, value = word.partition("=")
        if flag != "--model":
            rest.append(word)
        elif name := value if equals else next(words, ""):
            if source(name.partition("=")[2] or name) is None:
                raise ValueError(
                    f"--model must be path/to/file.py:Class or package.module:Class, got {name!r}"
                )
            models.append(name)
        else:
            raise ValueError("--model needs a name: path/to/file.py:Class or package.module:Class")
    return [*models, *rest]


def main(arguments: list[str]) -> None:
    """Run the probes; bad input is one line on stderr and exit code 2, a failed cell 1."""
    with one_line_errors():
        words, prog = _models_first(arguments), called("worldmodel probe")
        choice = flags.parse_study(STUDY, words, prog, reports=True)
        STUDY.check(choice.settings)
        results = flags.execute(STUDY, choice)
        if results is None:
            return
        said, code = study.summary(results, choice.out)
        flags.say_report(choice, STUDY, choice.out, f"{said}\n")
    if code:
        sys.exit(code)
