"""``python -m symreg``: from prediction files to formulas, verdicts and a leaderboard."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from orbits import artefacts, laws
from orbits.manifest import manifest
from symreg import engines, leaderboard, predictions, results
from symreg.front import RULES
from symreg.measure import predictor_metrics, search_config, search_line
from symreg.score import score


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one subcommand; bad input is one line on stderr and exit code 2, a failed cell 1."""
    options = _parser().parse_args(arguments)
    failed = 0
    try:
        failed = options.run(options)
    except BrokenPipeError:  # the reader, for example `head`, has seen enough
        sys.stderr.close()
    except KeyboardInterrupt:
        print("symreg: stopped; run the same command again to resume", file=sys.stderr)
        return 130
    except (ValueError, RuntimeError, OSError) as error:
        print(f"symreg: {_one_line(error)}", file=sys.stderr)
        return 2
    return 1 if failed else 0


class _Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line, without the usage."""

    def error(self, message: str) -> Any:
        self.exit(2, f"{self.prog}: {message}\n")


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(
        prog="python -m symreg",
        description="Search force predictions for a formula and compare it with a law.",
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    search = _Parser(add_help=False)
    search.add_argument("--law", default="newton", help="the true law (default newton)")
    search.add_argument("--engine", default="auto", help="auto, or a name shown by ls")
    search.add_argument(
        "--engine-args", default="{}", metavar="JSON", help="such as '{\"generations\": 100}'"
    )
    search.add_argument("--points", type=int, default=1000, help="points per search (default 1000)")
    search.add_argument("--rule", help=f"{', '.join(RULES)} (default: the engine's own)")

    board = commands.add_parser(
        "leaderboard", parents=[search], help="rank prediction files beside their controls"
    )
    board.add_argument("predictions", type=Path, nargs="+", help=".npz, .csv or .parquet")
    board.add_argument("--seeds", type=int, default=10, help="searches per file (default 10)")
    board.add_argument("--jobs", type=int, help="worker processes (default: the cores)")
    board.add_argument("--submitit", metavar="PARTITION", help="compute on this Slurm partition")
    board.add_argument("--out", type=Path, default=Path("runs/leaderboard"))
    board.add_argument(
        "--resume", action="store_true", help="continue with a changed configuration"
    )
    board.add_argument("--overwrite", action="store_true", help="discard the folder's results")
    board.set_defaults(run=_leaderboard)

    fit = commands.add_parser("fit", parents=[search], help="search for a formula and score it")
    fit.add_argument("predictions", type=Path, help=".npz, .csv or .parquet prediction file")
    fit.add_argument("--seed", type=int, default=0, help="draws the points and seeds the search")
    fit.add_argument("--out", type=Path, help="write the front and the score as JSON")
    fit.add_argument("--overwrite", action="store_true", help="replace the file named by --out")
    fit.set_defaults(run=_fit)

    judge = commands.add_parser("score", help="compare a formula with a law")
    judge.add_argument("formula", help='for example "39.5*m1*m2/r**2"')
    judge.add_argument("predictions", type=Path)
    judge.add_argument("--law", default="newton")
    judge.set_defaults(run=_score)

    show = commands.add_parser("show", help="draw the leaderboard of result lines")
    show.add_argument("results", type=Path, help="a results folder, or its JSON lines")
    show.add_argument("--markdown", action="store_true", help="Markdown instead of text")
    show.set_defaults(run=_show)

    convert = commands.add_parser(
        "import-llm", help="prediction files from the public answers of language models"
    )
    convert.add_argument("folder", type=Path, help="a local copy of inductive-bias-probes")
    convert.add_argument("out", type=Path, help="folder for one .npz per model")
    convert.set_defaults(run=_import_llm)

    listing = commands.add_parser("ls", help="list engines, with their state, and laws")
    listing.set_defaults(run=_ls)
    return parser


def _fit(options: argparse.Namespace) -> None:
    arguments = _search_arguments(options)
    if options.seed < 0:
        raise ValueError(f"--seed must not be negative, got {options.seed}")
    if options.out is not None and options.out.exists() and not options.overwrite:
        raise ValueError(f"{options.out} exists; give another --out or --overwrite")
    engine, why = engines.resolve(options.engine)
    config = search_config(options.law, engine.name, arguments, options.points, options.rule)
    data = predictions.read(options.predictions, options.law)

    measured = predictor_metrics(data, options.law)
    print(f"engine     {why}")
    line = search_line(
        data,
        law=options.law,
        engine=engine.name,
        seed=options.seed,
        arguments=arguments,
        n=options.points,
        rule=options.rule,
    )
    for name, triple in measured["exponents"].items():
        print(f"{name:<10} exponent {_triple(triple)} of the predictions, 95% over sequences")
    print(f"c          {_triple(measured['constant'])}")
    _print_score(line["metrics"])
    if options.out is not None:
        inputs = {"predictions": data.sha256}
        record = manifest(config, seed=options.seed, inputs=inputs)
        artefacts.save_record(options.out, {**line, "predictor": measured, "manifest": record})
        print(f"written    {options.out}")


def _score(options: argparse.Namespace) -> None:
    data = predictions.read(options.predictions, options.law)
    result = score(options.formula, options.law, X=data.X, y=data.force_predicted)
    _print_score(result.record())


def _leaderboard(options: argparse.Namespace) -> int:
    """Make a leaderboard; return how many of its cells failed."""
    arguments = _search_arguments(options)
    jobs = options.jobs if options.jobs is not None else _cores()
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}")
    engine, why = engines.resolve(options.engine)
    from symreg import board

    settings = board.Options(
        files=tuple(dict.fromkeys(options.predictions)),
        law=options.law,
        engine=engine.name,
        arguments=arguments,
        seeds=options.seeds,
        points=options.points,
        rule=options.rule,
    )
    wanted = board.cells(settings)  # refuses a bad file before anything is printed or written
    print(f"engine     {why}")
    page = board.run(
        settings,
        options.out,
        jobs=jobs,
        partition=options.submitit,
        resume=options.resume,
        overwrite=options.overwrite,
        wanted=wanted,
    )
    lines, _ = results.load(options.out)
    table = leaderboard.rows(lines, options.law)
    print(leaderboard.to_text(table, options.law, lines), end="")
    print(f"written    {page}")
    failed = sum(line["status"] == "failed" for line in lines)
    if failed:
        print(f"symreg: {failed} of {len(lines)} cells failed", file=sys.stderr)
    return failed


def _show(options: argparse.Namespace) -> None:
    if options.results.is_dir():
        lines, _ = results.load(options.results)
    else:
        lines = leaderboard.read_lines(options.results)
    draw = leaderboard.to_markdown if options.markdown else leaderboard.to_text
    for law in dict.fromkeys(line["task"] for line in lines):
        of_law = [line for line in lines if line["task"] == law]
        print(draw(leaderboard.rows(of_law, law), law, of_law), end="")


def _import_llm(options: argparse.Namespace) -> None:
    from symreg import llm_predictions

    for path in llm_predictions.convert(options.folder, options.out):
        print(path)


def _ls(options: argparse.Namespace) -> None:
    print("engines")
    width = max(map(len, (*engines.names(), *laws.names())))
    for name in engines.names():
        status = engines.get(name).status()
        print(f"  {name:<{width}}  {status.state:<12}  {status.reason}")
    print("laws")
    for name in laws.names():
        print(f"  {name:<{width}}  {laws.get(name).expression}")
    for line in laws.broken().values():
        print(f"no law: {line}")


def _search_arguments(options: argparse.Namespace) -> dict[str, Any]:
    """Return the engine's arguments, or refuse what is not an object."""
    try:
        arguments = json.loads(options.engine_args)
    except ValueError:
        arguments = None
    if not isinstance(arguments, dict):
        raise ValueError(f"--engine-args must be a JSON object, got {options.engine_args}")
    return arguments


def _print_score(result: Mapping[str, Any]) -> None:
    offset = f", offset {result['offset']:.3g}" if result["offset"] else ""
    print(f"formula    {result['expression']}")
    print(f"verdict    {result['verdict']} ({result['target']}){offset}")
    fidelity = "undefined" if result["r2_log"] is None else f"{result['r2_log']:.6f}"
    print(f"fidelity   R2 of ln force {fidelity}, {100 * result['dropped']:.2g}% of points dropped")
    for name, triple in result["exponents"].items():
        text = "undefined" if triple is None else f"{_triple(triple)} (5-95% of points)"
        print(f"{name:<10} exponent {text} of the formula")
    if result["constant"] is not None:
        error = result["constant_relative_error"]
        print(f"c          {result['constant']:.6g}, off by {error:.2%}")
    print(f"symbolic   {result['symbolic']}; {result['complexity']} nodes")
    print(f"dimensions {result['dimensions']}")


def _triple(triple: Sequence[float]) -> str:
    value, low, high = triple
    return f"{value:.4f} [{low:.4f}, {high:.4f}]"


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.strerror:
        return f"{error.filename}: {error.strerror}"
    return " ".join(str(error).split())


if __name__ == "__main__":
    sys.exit(main())
