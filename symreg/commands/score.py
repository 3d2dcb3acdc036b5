"""``python -m symreg score``: compare a formula with a law, and with predictions."""

from __future__ import annotations

import argparse

from orbits.runs import output
from orbits.runs.cli import called
from symreg import points, predictions
from symreg.formula.score import score
from symreg.predictions import formats


def main(options: argparse.Namespace) -> None:
    """Compare a formula with a law, and both with the predictions of a file where one is given."""
    if options.formula.endswith(formats.ENDINGS):
        raise ValueError(
            f"{options.formula} stands where the formula does; "
            f"`{called('symreg score FORMULA PREDICTIONS')}`"
        )
    if options.predictions is None:
        result = score(options.formula, options.law)
    else:
        data = predictions.read(options.predictions, options.law)
        result = score(
            options.formula,
            options.law,
            X=data.X,
            y=data.force_predicted,
            groups=data.sequence_id,
        )
    output.say(options, lambda: str(result), result.record, lambda: result.verdict)
    if options.predictions is None and not (options.json or options.quiet):
        box = ", ".join(f"{name} {low:g} to {high:g}" for name, (low, high) in points.BOX.items())
        print(f"on {result.n_points} points: {box} (AU, solar masses)")
        print(f"next: {called('symreg score FORMULA PREDICTIONS')} compares with a file, too")
