"""``python -m benchmarks ls|run|report``."""

from __future__ import annotations

import argparse
import dataclasses
import os
import sys
from pathlib import Path
from typing import NoReturn

from benchmarks import presets

BENCHMARKS = ("newton",)


def main(arguments: list[str] | None = None) -> None:
    """Run the command line; bad input is one line on stderr and exit code 2."""
    options = _parser().parse_args(arguments)
    try:
        options.run(options)
    except (ValueError, OSError) as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(2)
    except KeyboardInterrupt:
        print("stopped; run the same command again to resume", file=sys.stderr)
        sys.exit(130)
    except RuntimeError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        print(f"error: {message}", file=sys.stderr)
        sys.exit(2)


def _parser() -> argparse.ArgumentParser:
    parser = _Parser(prog="python -m benchmarks", description="Run and report the benchmarks.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    listing = commands.add_parser("ls", help="list benchmarks and presets")
    listing.set_defaults(run=_list)

    run = commands.add_parser("run", help="run a benchmark; an interrupted run continues")
    run.add_argument("benchmark", help=", ".join(BENCHMARKS))
    run.add_argument("--preset", default="small", help=", ".join(presets.names()))
    run.add_argument("--protocol", help="what is observed (default: the preset's)")
    run.add_argument("--law", default="newton", help="force law of the world (default newton)")
    run.add_argument(
        "--elsewhere",
        metavar="LAWS",
        help="comma-separated other laws: add models trained in their worlds",
    )
    run.add_argument("--attention", help="comma-separated variants (default: the preset's)")
    run.add_argument("--labels", help="comma-separated budgets, for example 300,unlimited")
    run.add_argument("--seeds", help="comma-separated model seeds")
    run.add_argument("--engines", help="comma-separated symbolic-regression engines, or auto")
    run.add_argument("--exponents", help="comma-separated p of re-weighted variants, a row each")
    run.add_argument(
        "--images",
        action=argparse.BooleanOptionalAction,
        help="train force heads on images of labelled sequences (default: the preset's)",
    )
    run.add_argument(
        "--law-labels", help="comma-separated budgets whose predictions are searched (all)"
    )
    run.add_argument("--law-seeds", type=int, help="symbolic searches per row and engine")
    run.add_argument(
        "--sharpen-after",
        type=int,
        default=0,
        metavar="STEP",
        help="add a row per re-weighted variant that pre-trains without re-weighting to STEP",
    )
    run.add_argument("--dry-run", action="store_true", help="print what it would cost, and stop")
    run.add_argument("--tflops", type=float, help="throughput for an estimate of the time")
    run.add_argument(
        "--jobs", type=int, help="worker processes (default: the preset's, or cores; 1 with a GPU)"
    )
    run.add_argument("--out", help="results folder (default: runs/BENCHMARK-PRESET-WORLD)")
    run.add_argument("--resume", action="store_true", help="continue with a changed configuration")
    run.add_argument("--overwrite", action="store_true", help="discard the folder's results")
    run.set_defaults(run=_run)

    report = commands.add_parser("report", help="tables, figures and report.html of a run")
    report.add_argument("out", metavar="DIR")
    report.set_defaults(run=_report)
    return parser


def _list(options: argparse.Namespace) -> None:
    from benchmarks import newton

    print(f"newton   {newton.ABOUT}")
    for name in presets.names():
        print(f"  --preset {name:6s} {presets.get(name).about}")


def _run(options: argparse.Namespace) -> None:
    if options.benchmark not in BENCHMARKS:
        raise ValueError(
            f"unknown benchmark {options.benchmark!r}; choose from {', '.join(BENCHMARKS)}"
        )
    from benchmarks import cost, newton, training
    from symreg import results

    preset = _preset(options)
    protocol = options.protocol or preset.protocol
    settings = newton.Options(
        protocol,
        preset,
        options.sharpen_after,
        options.law,
        elsewhere=_names(options.elsewhere or ""),
        law_labels=None if options.law_labels is None else _budgets(options, "law_labels"),
    )
    jobs = options.jobs if options.jobs is not None else preset.jobs or _default_jobs()
    if jobs < 1:
        raise ValueError(f"--jobs must be at least 1, got {jobs}")
    grid = newton.cells(settings)
    table = cost.table(grid, options.tflops)
    if options.dry_run:
        print(table)
        return
    training.check_devices(preset)
    world = [protocol] if options.law == "newton" else [protocol, options.law]
    out = Path(options.out or "-".join([f"runs/{options.benchmark}", options.preset, *world]))
    mode = {"resume": options.resume, "overwrite": options.overwrite}
    results.check(out, settings.config(), **mode)

    from benchmarks import newton_cells
    from orbits import artefacts
    from symreg import cells

    print(table)
    with artefacts.lock(out):
        results.claim(out, settings.config(), **mode)
        lines = cells.run(
            grid,
            out,
            newton_cells.COMPUTE,
            jobs=jobs,
            initialise=newton_cells.initialise,
        )
        path = results.save(out, lines)
    failed = [line for line in lines if line["status"] == "failed"]
    print(f"{len(lines)} cells, {len(failed)} failed: {path}")
    for line in failed:
        print(f"  failed: {line['row']}: {line['error']}")
    print(f"next: python -m benchmarks report {out}")


def _report(options: argparse.Namespace) -> None:
    from benchmarks.report import report

    print(report(Path(options.out)))


def _preset(options: argparse.Namespace) -> presets.Preset:
    """Return the preset with the command line's changes, checked before any work."""
    preset = presets.get(options.preset)
    changes: dict = {}
    if options.attention is not None:
        changes["attentions"] = _names(options.attention)
    if options.engines is not None:
        changes["engines"] = tuple(_engine(name) for name in _names(options.engines))
    if options.labels is not None:
        changes["labels"] = _budgets(options, "labels")
    if options.exponents is not None:
        changes["exponents"] = tuple(_positive(item) for item in _names(options.exponents))
    if options.images is not None:
        changes["images"] = options.images
    if options.seeds is not None:
        seeds = [_number(item, "--seeds") for item in _names(options.seeds)]
        changes["seeds"] = tuple(dict.fromkeys(seeds))
    if options.law_seeds is not None:
        if options.law_seeds < 1:
            raise ValueError(f"--law-seeds must be at least 1, got {options.law_seeds}")
        changes["law_seeds"] = options.law_seeds
    return dataclasses.replace(preset, **changes)


def _engine(name: str) -> str:
    from symreg import engines

    if name != "auto":
        return name
    engine, reason = engines.resolve("auto")
    print(f"engine: {engine.name} ({reason})")
    return engine.name


def _budgets(options: argparse.Namespace, name: str) -> tuple[int | str, ...]:
    return tuple(
        item if item == presets.UNLIMITED else _number(item, f"--{name.replace('_', '-')}")
        for item in _names(getattr(options, name))
    )


def _positive(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise ValueError(f"--exponents takes positive numbers separated by commas, got {text!r}")
    return value


def _names(text: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(item.strip() for item in text.split(",") if item.strip()))


def _number(text: str, option: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{option} takes whole numbers separated by commas, got {text!r}")
    return int(text)


def _default_jobs() -> int:
    import torch

    if torch.cuda.is_available():
        return 1
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return min(8, cores or 1)


if __name__ == "__main__":
    main()
