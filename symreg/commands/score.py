"""``python -m symreg score``: compare a formula with a law."""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping, Sequence
from typing import Any

from symreg import predictions
from symreg.formula.score import score


def main(options: argparse.Namespace) -> None:
    """Compare a formula with a law."""
    data = predictions.read(options.predictions, options.law)
    result = score(options.formula, options.law, X=data.X, y=data.force_predicted)
    if options.json:
        print(json.dumps(result.record()))
    else:
        print_score(result.record())


def print_score(result: Mapping[str, Any]) -> None:
    """Print the record of a :class:`symreg.formula.score.LawScore`."""
    offset = f", offset {result['offset']:.3g}" if result["offset"] else ""
    print(f"formula    {result['expression']}")
    print(f"verdict    {result['verdict']} ({result['target']}){offset}")
    fidelity = "undefined" if result["r2_log"] is None else f"{result['r2_log']:.6f}"
    print(f"fidelity   R2 of ln force {fidelity}, {100 * result['dropped']:.2g}% of points dropped")
    for name, triple in result["exponents"].items():
        text = "undefined" if triple is None else f"{triple_text(triple)} (5-95% of points)"
        print(f"{name:<10} exponent {text} of the formula")
    if result["constant"] is not None:
        error = result["constant_relative_error"]
        print(f"c          {result['constant']:.6g}, off by {error:.2%}")
    print(f"symbolic   {result['symbolic']}; {result['complexity']} nodes")
    print(f"dimensions {result['dimensions']}")


def triple_text(triple: Sequence[float]) -> str:
    """Return a value and its interval with four decimals."""
    value, low, high = triple
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"
