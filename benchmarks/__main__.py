"""``python -m benchmarks ls|run|report``."""

from __future__ import annotations

import argparse
import functools
from pathlib import Path

from benchmarks import newton_command, presets, task_command, tasks
from orbits import locks
from orbits.command_line import OneLineParser, one_line_errors

ABOUT = "Do models that predict orbits learn their law? Two attentions, controls, leaderboard."


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2, a failed cell 1."""
    options = _parser().parse_args(arguments)
    with one_line_errors(RuntimeError, resumes=options.run not in (_list, _report)):
        options.run(options)


def _parser() -> argparse.ArgumentParser:
    parser = OneLineParser(prog="python -m benchmarks", description="Run and report benchmarks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("ls", help="list benchmarks and presets")
    listing.set_defaults(run=_list)

    run = commands.add_parser("run", help="run a benchmark; an interrupted run continues")
    benchmarks = run.add_subparsers(required=True, metavar="BENCHMARK")
    newton = benchmarks.add_parser("newton", help=ABOUT, description=ABOUT)
    newton_command.add_arguments(newton)
    newton.set_defaults(run=newton_command.run)
    for name in tasks.names():
        task = tasks.get(name)
        its = benchmarks.add_parser(name, help=task.about, description=task.about)
        task_command.add_arguments(its, task)
        its.set_defaults(run=functools.partial(task_command.run, task))

    report = commands.add_parser("report", help="tables, figures and report.html of a run")
    report.add_argument("out", metavar="DIR")
    report.set_defaults(run=_report)
    return parser


def _list(options: argparse.Namespace) -> None:
    _say("newton", ABOUT, {name: presets.get(name).about for name in presets.names()})
    for name in tasks.names():
        task = tasks.get(name)
        _say(name, task.about, {key: preset.about for key, preset in task.presets.items()})


def _say(name: str, about: str, sizes: dict[str, str]) -> None:
    print(f"{name:14s} {about}")
    for preset, cost in sizes.items():
        print(f"  --preset {preset:7s} {cost}")


def _report(options: argparse.Namespace) -> None:
    from symreg import results

    out = Path(options.out)
    _, manifest = results.load(out)
    locks.refuse_links(out)
    benchmark = manifest["config"]["benchmark"]
    if benchmark in tasks.names():
        from benchmarks.task_report import report as task_report

        print(task_report(tasks.get(benchmark), out))
        return
    if benchmark != "newton":
        raise ValueError(f"{out} holds a symreg run ({benchmark}); use python -m symreg show {out}")
    from benchmarks.report import report

    print(report(out))


if __name__ == "__main__":
    main()
