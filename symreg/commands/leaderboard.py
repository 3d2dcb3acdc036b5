"""``python -m symreg leaderboard``: rank prediction files."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from orbits.runs import flags, output, study
from symreg import engines
from symreg.leaderboard.leaderboard import STUDY


def main(arguments: Sequence[str], prog: str) -> None:
    """Rank prediction files; exit with 1 where a cell failed. The flags are those of the study."""
    command = flags.parse_study(STUDY, arguments, prog, reports=True)
    if not command.dry_run:
        STUDY.cells(command.settings)  # refuses a bad file before anything is printed or written
        with output.on_the_way(command):
            print(f"engine     {engines.resolve(command.settings.engine)[1]}")
    results = flags.execute(STUDY, command)
    if results is None:
        return
    flags.say_report(command, STUDY, command.out)
    words, code = study.summary(results, command.out)
    if code:
        print(words, file=sys.stderr)
        sys.exit(code)
