"""``python -m symreg show``: print the leaderboard of results."""

from __future__ import annotations

import argparse

from orbits.runs import output, page
from symreg.leaderboard.read import read
from symreg.leaderboard.sections import report


def main(options: argparse.Namespace) -> None:
    """Draw the leaderboard of results."""
    results = read(options.results)
    leaderboard, failed = report(results, drawn=False), page.failures(results)
    text = leaderboard.to_markdown if options.markdown else leaderboard.to_text
    output.say(
        options,
        lambda: text(failed).removesuffix("\n"),
        lambda: {"results": [result.to_json() for result in results]},
        lambda: next(iter(leaderboard.sentences), ""),
    )
