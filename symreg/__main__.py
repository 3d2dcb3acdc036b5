"""``python -m symreg fit | score | leaderboard | ls``: from a prediction file to a leaderboard."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from orbits import artefacts, laws
from orbits.manifest import manifest
from symreg import engines, leaderboard, predictions
from symreg.exponents import fit_exponents, prediction_metrics
from symreg.front import RULES
from symreg.points import NAMES
from symreg.score import LawScore, score


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except BrokenPipeError:  # the reader, for example `head`, has seen enough
        sys.stderr.close()
    except (ValueError, RuntimeError, OSError) as error:
        print(f"symreg: {_one_line(error)}", file=sys.stderr)
        return 2
    return 0


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, without the usage."""

    def error(self, message: str) -> Any:
        self.exit(2, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m symreg",
        description="Search force predictions for a formula and compare it with a law.",
    )
    commands = parser.add_subparsers(required=True, metavar="{fit,score,leaderboard,ls}")

    fit = commands.add_parser("fit", help="search for a formula and score it")
    fit.add_argument(
        "predictions", type=Path, help=".npz prediction file, or .csv with its columns"
    )
    fit.add_argument("--engine", default="auto", help="auto, or a name shown by ls")
    fit.add_argument("--seed", type=int, default=0, help="draws the points and seeds the search")
    fit.add_argument("--points", type=int, default=1000, help="points per search (default 1000)")
    fit.add_argument("--rule", default="best", help=f"{', '.join(RULES)} (default best)")
    fit.add_argument("--law", default="newton", help="the law to compare with (default newton)")
    fit.add_argument("--out", type=Path, help="write the front and the score as JSON")
    fit.add_argument("--overwrite", action="store_true", help="replace the file named by --out")
    fit.set_defaults(run=_fit)

    judge = commands.add_parser("score", help="compare a formula with a law")
    judge.add_argument("formula", help='for example "39.5*m1*m2/r**2"')
    judge.add_argument("predictions", type=Path)
    judge.add_argument("--law", default="newton")
    judge.set_defaults(run=_score)

    board = commands.add_parser("leaderboard", help="draw the table of result lines")
    board.add_argument("results", type=Path, help="JSON lines, one measured cell each")
    board.add_argument("--law", default="newton", help="the true law (default newton)")
    board.add_argument("--markdown", action="store_true", help="Markdown instead of text")
    board.set_defaults(run=_leaderboard)

    listing = commands.add_parser("ls", help="list engines, with their state, and laws")
    listing.set_defaults(run=_ls)
    return parser


def _fit(options: argparse.Namespace) -> None:
    if options.rule not in RULES:
        raise ValueError(f"unknown rule {options.rule!r}; choose from {', '.join(RULES)}")
    if options.seed < 0:
        raise ValueError(f"--seed must not be negative, got {options.seed}")
    if options.points < 1:
        raise ValueError(f"--points must be positive, got {options.points}")
    laws.get(options.law)
    if options.out is not None and options.out.exists() and not options.overwrite:
        raise ValueError(f"{options.out} exists; give another --out or --overwrite")
    data = predictions.read(options.predictions)
    engine, why = engines.resolve(options.engine)

    fitted = fit_exponents(data.X, data.force_predicted, data.sequence_id)
    metrics = prediction_metrics(data.force, data.force_predicted)
    sample = data.subsample(options.seed, options.points)
    print(f"engine     {why}")
    print(f"points     {len(sample)} of {len(data)}, {fitted.n_sequences} sequences")
    front = engine.fit(sample.X, sample.force_predicted, NAMES, options.seed)
    chosen = front.best(options.rule)
    result = score(chosen.expression, options.law, X=sample.X, y=sample.force_predicted)
    for name, triple in fitted.exponents.items():
        print(f"{name:<10} exponent {_triple(triple)} of the predictions, 95% over sequences")
    print(f"c          {_triple(fitted.constant)}")
    _print_score(result)
    if options.out is not None:
        record = {
            "front": front.record(),
            "rule": options.rule,
            "chosen": chosen.expression,
            "score": result.record(),
            "predictor": {**metrics, **fitted.record()},
            "manifest": manifest(
                {
                    "engine": front.engine,
                    "settings": dict(front.settings),
                    "rule": options.rule,
                    "law": options.law,
                    "points": options.points,
                },
                seed=options.seed,
                inputs={"predictions": data.sha256},
            ),
        }
        artefacts.save_record(options.out, record)
        print(f"written    {options.out}")


def _score(options: argparse.Namespace) -> None:
    data = predictions.read(options.predictions)
    _print_score(score(options.formula, options.law, X=data.X, y=data.force_predicted))


def _leaderboard(options: argparse.Namespace) -> None:
    table = leaderboard.rows(leaderboard.read_lines(options.results), options.law)
    draw = leaderboard.to_markdown if options.markdown else leaderboard.to_text
    print(draw(table), end="")


def _ls(options: argparse.Namespace) -> None:
    print("engines")
    for name in engines.names():
        status = engines.get(name).status()
        print(f"  {name:<12} {status.state:<13} {status.reason}")
    print("laws")
    for name in laws.names():
        print(f"  {name:<12} {laws.get(name).expression}")


def _print_score(result: LawScore) -> None:
    offset = f", offset {result.offset:.3g}" if result.offset else ""
    print(f"formula    {result.expression}")
    print(f"verdict    {result.verdict} ({result.target}){offset}")
    fidelity = "undefined" if result.r2_log is None else f"{result.r2_log:.6f}"
    print(f"fidelity   R2 of ln force {fidelity}, {100 * result.dropped:.2g}% of points dropped")
    for name, triple in result.exponents.items():
        text = "undefined" if triple is None else f"{_triple(triple)} (5-95% of points)"
        print(f"{name:<10} exponent {text} of the formula")
    if result.constant is not None:
        print(f"c          {result.constant:.6g}, off by {result.constant_relative_error:.2%}")
    print(f"symbolic   {result.symbolic}; {result.complexity} nodes")


def _triple(triple: Sequence[float]) -> str:
    value, low, high = triple
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
