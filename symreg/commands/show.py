"""``python -m symreg show``: print the leaderboard of results."""

from __future__ import annotations

import argparse

from orbits.runs import page
from symreg.leaderboard.read import read
from symreg.leaderboard.sections import report


def main(options: argparse.Namespace) -> None:
    """Draw the leaderboard of results."""
    results = read(options.results)
    leaderboard, failed = report(results, drawn=False), page.failures(results)
    print(
        leaderboard.to_markdown(failed) if options.markdown else leaderboard.to_text(failed), end=""
    )
