"""``python -m benchmarks run newton``: its flags and what they change."""

from __future__ import annotations

import argparse
import dataclasses
from pathlib import Path

from benchmarks import command, presets
from orbits.protocols import LABEL_LEAKS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the flags of the flagship."""
    parser.add_argument("--preset", default="small", help=", ".join(presets.names()))
    parser.add_argument("--protocol", help="what is observed (default: the preset's)")
    parser.add_argument("--law", default="newton", help="force law of the world (default newton)")
    parser.add_argument(
        "--elsewhere",
        metavar="LAWS",
        help="comma-separated other laws: add models trained in their worlds",
    )
    parser.add_argument(
        "--attention",
        help="comma-separated variants, linear mixers or ablations (default: the preset's)",
    )
    parser.add_argument("--labels", help="comma-separated budgets, for example 300,unlimited")
    parser.add_argument("--seeds", help="comma-separated model seeds")
    parser.add_argument("--engines", help="comma-separated symbolic-regression engines, or auto")
    parser.add_argument("--exponents", help="comma-separated p of re-weighted variants, a row each")
    parser.add_argument(
        "--images",
        action=argparse.BooleanOptionalAction,
        help="train force heads on images of labelled sequences (default: the preset's)",
    )
    parser.add_argument(
        "--law-labels",
        help="comma-separated budgets of models whose predictions are searched, beside controls "
        "(default: all, and read-outs)",
    )
    parser.add_argument(
        "--label-leak",
        type=int,
        choices=LABEL_LEAKS,
        default=0,
        help="labels of every test sequence that training also sees, 2 as published (default 0); "
        "these sequences are scored as always, leaked rows included, and every row says so",
    )
    parser.add_argument("--law-seeds", type=int, help="symbolic searches per row and engine")
    parser.add_argument(
        "--sharpen-after",
        type=int,
        default=0,
        metavar="STEP",
        help="add a row per re-weighted variant that pre-trains without re-weighting to STEP",
    )
    parser.add_argument("--dry-run", action="store_true", help="print what it would cost, and stop")
    parser.add_argument("--tflops", type=float, help="throughput for an estimate of the time")
    command.add_arguments(parser, "runs/newton-PRESET-WORLD")


def run(options: argparse.Namespace) -> None:
    """Run the benchmark, or say what it would cost."""
    from benchmarks import cost, newton, newton_options, training

    preset = _preset(options)
    protocol = options.protocol or preset.protocol
    settings = newton_options.Options(
        protocol,
        preset,
        options.sharpen_after,
        options.law,
        elsewhere=_names(options.elsewhere or ""),
        law_labels=None if options.law_labels is None else _budgets(options, "law_labels"),
        label_leak=options.label_leak,
    )
    grid = newton.cells(settings)
    table = cost.table(grid, options.tflops)
    if options.dry_run:
        print(table)
        return
    training.check_devices(preset.name, preset.training)
    world = [protocol] if options.law == "newton" else [protocol, options.law]
    if options.label_leak:
        world.append(f"leak-{options.label_leak}")
    out = Path(options.out or "-".join(["runs/newton", options.preset, *world]))
    command.check(options, out, settings.config())

    from benchmarks import newton_cells

    print(table)
    jobs = options.jobs if options.jobs is not None else preset.jobs
    command.compute(
        options, out, settings.config(), grid, newton_cells.COMPUTE, newton_cells.initialise, jobs
    )


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
        _check_exponents(changes.get("attentions", preset.attentions))
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


def _check_exponents(attentions: tuple[str, ...]) -> None:
    from benchmarks import variants  # PyTorch, which --help does not wait for

    variants.check_re_weighted("--exponents", attentions)


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
