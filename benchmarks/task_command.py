"""``python -m benchmarks run TASK``."""

from __future__ import annotations

import argparse
from pathlib import Path

from benchmarks import command, settings_flags
from benchmarks.task import Task


def add_arguments(parser: argparse.ArgumentParser, task: Task) -> None:
    """Add the flags of a task: one per field of its settings."""
    settings_flags.add(parser, task.presets)
    parser.add_argument("--dry-run", action="store_true", help="list the cells, and stop")
    command.add_arguments(parser, f"runs/{task.name}-PRESET")


def run(task: Task, options: argparse.Namespace) -> None:
    """Run a task, or list its cells.

    Raises:
        ValueError: Its settings refuse a value, or the folder is another run's.
    """
    settings = settings_flags.apply(options, task.presets)
    out = Path(options.out or f"runs/{task.name}-{settings.preset}")
    config = {"benchmark": task.name, "task_version": task.version, **settings.config()}
    if not options.dry_run:
        command.check(options, out, config)
    jobs = settings.jobs if options.jobs is None else options.jobs
    grid = task.cells(settings)
    if options.dry_run:
        for cell in grid:
            print(f"{cell.key}  {cell.label}")
        print(f"{len(grid)} cells")
        return
    from benchmarks.newton_cells import initialise
    from benchmarks.training import check_devices

    for how in settings.trainings():
        check_devices(settings.preset, how)
    command.compute(options, out, config, grid, task.compute(), initialise, jobs)
