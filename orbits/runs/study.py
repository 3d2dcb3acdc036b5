"""The study: something one runs and reports, in one file with its presets beside it in YAML.

A study says which cells its settings ask for and what a reader is shown of their results. How
cells are computed, resumed, kept and laid out is the same for all of them.
"""

from __future__ import annotations

import dataclasses
import json
import shutil
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from orbits.runs import folder, locks, presets, reuse
from orbits.runs.cell import CELLS, Adopted, Cell
from orbits.runs.digests import name_and_digest
from orbits.runs.executors import Execution
from orbits.runs.folder import Existing
from orbits.runs.manifest import flat
from orbits.runs.naming import counted
from orbits.runs.result import Metric, Quantity, Result
from orbits.runs.reuse import Kept
from orbits.runs.schedule import run as run_cells
from orbits.runs.settings import build_settings

if TYPE_CHECKING:
    from orbits.runs.at_once import Compared
    from orbits.runs.page import Picture, Report
    from orbits.runs.table import Table


class Study(ABC):
    """Something one runs and reports.

    Attributes:
        name: The name on the command line and in results.
        version: Raised whenever the same settings would give other numbers.
        about: The question that it answers, in one sentence.
        Settings: A dataclass, whose fields are the flags; its docstring is their help.
        metrics: Meaning of each metric; ``loss`` stands for ``loss@4x`` too.
        undeciding: Fields of the settings that determine no result.
        files: Fields that name a file, whose content determines results and whose place does not.
        words: The field whose values are given without a flag; empty for none.
        once: Fields of the settings that are lists in which a value counts once.
        prepare: Called once in each worker before its first cell.
        execution: Executor of the cells unless flags choose another.
        timed: Whether cells measure time, so that none may run beside another.
    """

    name: ClassVar[str]
    version: ClassVar[int] = 1
    about: ClassVar[str]
    Settings: ClassVar[type]
    metrics: ClassVar[Mapping[str, Quantity]] = {}
    undeciding: ClassVar[tuple[str, ...]] = ()
    files: ClassVar[tuple[str, ...]] = ()
    words: ClassVar[str] = ""
    once: ClassVar[tuple[str, ...]] = ()
    prepare: ClassVar[Callable[[], None] | None] = None
    execution: ClassVar[Execution] = Execution()
    timed: ClassVar[bool] = False

    @abstractmethod
    def cells(self, settings: Any) -> Iterable[Cell]:
        """Return every cell of a run, each after those it needs.

        Raises:
            ValueError: The settings ask for what cannot be.
        """

    def resolve(self, settings: Any) -> Any:
        """Return settings with values of lists once, and with choices that this machine makes.

        The latter is for example an engine's name.
        """
        once = {name: tuple(dict.fromkeys(getattr(settings, name))) for name in self.once}
        return dataclasses.replace(settings, **once)

    def check(self, settings: Any) -> None:  # noqa: B027
        """Refuse settings that this machine cannot compute.

        Raises:
            ValueError: Devices or programs are missing.
        """

    def check_changes(self, settings: Any, changes: Mapping[str, Any]) -> None:  # noqa: B027
        """Refuse changes of a preset that would change nothing.

        Args:
            settings: The settings.
            changes: Those that differ from their preset's, see :meth:`changes`.

        Raises:
            ValueError: One has no use beside the other settings; the message names its flag.
        """

    def workers(self, settings: Any) -> int | None:
        """Return the default number of cells that one machine computes at once; None: its cores."""
        return None

    def plan(self, cells: Sequence[Cell], settings: Any) -> str:
        """Return a description of the computations of a run, for ``--dry-run``."""
        lines = [f"{cell.key}  {cell.label}" for cell in cells]
        return "\n".join([*lines, counted(len(cells), "cell")])

    def out(self, settings: Any, preset: str) -> Path:
        """Return the default results folder."""
        return Path("runs") / f"{self.name}-{preset}"

    def config(self, settings: Any, preset: str) -> dict[str, Any]:
        """Return the data that determine the results, as plain data."""
        plain = {k: v for k, v in dataclasses.asdict(settings).items() if k not in self.undeciding}
        told = {x: name_and_digest(plain[x]) for x in self.files if plain[x] is not None}
        return {"study": self.name, "version": self.version, "preset": preset, **plain, **told}

    def restore(self, cell: Cell, kept: Kept) -> Adopted | None:
        """Return a cell with files that are made of the content of kept results.

        Args:
            cell: A cell of the run.
            kept: The results; nothing is written to their folder.

        Returns:
            The cell; None where they hold nothing that its files are made of.

        Raises:
            ValueError: What they hold is damaged, or is not of this cell.
        """
        return None

    def tables(self, results: Sequence[Result]) -> Sequence[Table]:
        """Return the tables of a report, which leaves out those without rows."""
        return ()

    def figures(self, results: Sequence[Result], out: Path) -> Sequence[Picture]:
        """Draw figures into a folder and return them with their captions."""
        return ()

    def sentences(self, results: Sequence[Result]) -> Sequence[str]:
        """Return the sentences of a report, the most important first."""
        return ()

    def all_at_once(self, results: Sequence[Result]) -> Compared | None:
        """Return the comparison of all models at once (:mod:`orbits.runs.at_once`), if one fits."""
        return None

    def warnings(self, results: Sequence[Result], config: Mapping[str, Any]) -> Sequence[str]:
        """Return warnings that a reader must see before the numbers."""
        return ()

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return the report of a run.

        Args:
            results: All results, failed ones included.
            config: The settings of the run, see :meth:`config`.
            out: The results folder.
        """
        from orbits.runs.page import Report, Section

        together, said = self.all_at_once(results) or (None, [])
        tables = [*self.tables(results), *([together] if together else [])]
        sections = [Section(table.title, [table]) for table in tables if table.rows]
        if pictures := self.figures(results, out / folder.FIGURES):
            sections.insert(0, Section("Figures", pictures=pictures))
        return Report(
            title=self.about,
            setting=self.setting(config),
            sentences=[*self.sentences(results), *said],
            sections=sections,
            warnings=self.warnings(results, config),
            of_trainings=not self.timed,
        )

    def setting(self, config: Mapping[str, Any]) -> str:
        """Return a run's preset and its changes, in a sentence."""
        changes = self.changes(config)
        words = f"{self.name}, version {config.get('version', self.version)}; "
        words += f"preset {config['preset']}"
        if changes:
            words += " with " + ", ".join(f"{name} {_short(v)}" for name, v in changes.items())
        return words + "."

    def changes(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a run that differ from those of its preset, by flag."""
        known = presets.of(self)
        if config["preset"] not in known:
            return {}
        settings = self.settings(config["preset"])
        plain = flat(json.loads(json.dumps(self.config(settings, config["preset"]))))
        given = flat(json.loads(json.dumps(config)))
        # A setting that older results lack had its default.
        return {
            name: given[name]
            for name, value in plain.items()
            if name != "version" and given.get(name, value) != value
        }

    def settings(self, preset: str = "small", **changes: Any) -> Any:
        """Return the settings of a preset with changes.

        Raises:
            ValueError: There is no such preset, or a value does not fit.
        """
        return build_settings(self.Settings, {**presets.get(self, preset).values, **changes})

    def seed_table(
        self, title: str, results: Iterable[Result], keys: Sequence[str], metrics: Iterable[str]
    ) -> Table:
        """Return a table of metrics over seeds, as :func:`orbits.runs.table.seed_table`."""
        from orbits.runs.table import seed_table

        return seed_table(title, results, keys, metrics, quantity=self.quantity)

    def quantity(self, metric: str) -> Quantity:
        """Return the meaning of a metric.

        Raises:
            ValueError: The study does not declare it.
        """
        known = self.metrics.get(metric) or self.metrics.get(metric.partition("@")[0])
        if known is None:
            choices = ", ".join(self.metrics)
            raise ValueError(f"unknown metric {metric!r} of {self.name}; choose from {choices}")
        return known


def run(
    study: Study,
    settings: Any,
    out: Path,
    execution: Execution,
    *,
    preset: str = "small",
    existing: Existing = Existing(),
    sources: Sequence[Path] = (),
) -> list[Result]:
    """Compute the unfinished cells and write the records of a run.

    Args:
        study: The study.
        settings: Settings of the run.
        out: The results folder.
        execution: Executor of the cells.
        preset: Name of the preset that the settings started from.
        existing: Treatment of results that are in the folder already.
        sources: Other results folders to take finished cells from.

    Returns:
        All results, failed ones included, in the order of the cells.

    Raises:
        ValueError: The settings, the folder or a source cannot be used; nothing was computed.
    """
    if study.timed and execution.slots > 1:
        raise ValueError(
            f"--workers must be 1, got {execution.slots}: cells of {study.name} are timed, and "
            "would slow one another"
        )
    if study.timed and sources:
        raise ValueError(
            f"--reuse would mix times of other machines with those of this one: cells of "
            f"{study.name} are timed; leave it out"
        )
    config = study.config(settings, preset)
    folder.check(out, config, existing)  # before the study's own check, which may import torch
    study.check(settings)
    if execution.workers is None and execution.executor == "processes":
        execution = dataclasses.replace(execution, workers=study.workers(settings))
    cells = checked_cells(study, settings, out, existing, sources)
    with locks.lock(out):
        plan = reuse.plan(cells, sources, out, study.restore, fresh=existing.overwrite)
        folder.claim(out, config, existing)
        plan.carry_out()
        if sources:
            places = ", ".join(map(str, sources))
            print(f"{len(plan.taken)} of {len(cells)} cells are taken from {places}")
        results = run_cells(cells, out, execution, type(study).prepare)
        results = [with_units(study, result) for result in results]
        folder.save(out, results)
    return results


def checked_cells(
    study: Study, settings: Any, out: Path, existing: Existing, sources: Sequence[Path]
) -> list[Cell]:
    """Return every cell of a run whose sources can be used; nothing is written.

    Raises:
        ValueError: The settings or a source cannot be used.
    """
    for source in sources:
        reuse.check(source)
        if existing.overwrite and source.resolve() == out.resolve():
            raise ValueError(
                f"--reuse {source}: --overwrite would discard it; choose another --out"
            )
    return all_cells(study, settings)


def all_cells(study: Study, settings: Any) -> list[Cell]:
    """Return every cell of a run, each after those it needs.

    The study's version is part of the address of its own cells, or their own where it is later. A
    cell that several studies share, whose case names another one, has a version of its own.

    Raises:
        ValueError: The settings ask for what cannot be.
    """
    made: dict[str, Cell] = {}

    def versioned(cell: Cell) -> Cell:
        if cell.key not in made:
            own = cell.case.study == study.name
            made[cell.key] = dataclasses.replace(
                cell,
                version=max(study.version, cell.version) if own else cell.version,
                needs={role: versioned(need) for role, need in cell.needs.items()},
            )
        return made[cell.key]

    return [versioned(cell) for cell in study.cells(settings)]


def report(study: Study, out: Path, full: bool = True) -> str:
    """Write ``report.md``, ``report.html`` and figures; return the report as text.

    Figures of an earlier report go, but those of kept results stay.

    Args:
        study: The study.
        out: The results folder.
        full: Return every table; else what stands on the page's first screen.

    Raises:
        FileNotFoundError: The folder holds no finished run.
        ValueError: No cell of the run has a result.
        CorruptArtefact: A result file was edited or damaged.
    """
    from orbits.runs import page
    from orbits.runs.first_screen import brief

    made, results = write_report(study, out)
    failures = page.failures(results)
    text = made.to_text(failures) if full else brief(made, failures)
    rest = "" if full else " has all tables; --full prints them here"
    return f"{text}\nreport: {out / folder.PAGE}{rest}"


def write_report(study: Study, out: Path, home: str = "") -> tuple[Report, list[Result]]:
    """Write the same, and return the report as data, and its results.

    Args:
        study: The study.
        out: The results folder.
        home: A page that the page links back to; empty for none.
    """
    from orbits.runs import page

    results, manifest = folder.load(out)
    if all(result.status == "failed" for result in results):
        errors = (f": {str(x.error).strip().splitlines()[-1]}" for x in results if x.error)
        raise ValueError(f"{out}: no cell has a result{next(errors, '; run it again')}")
    if (out / CELLS).is_dir():  # kept results lack the files from which some figures were drawn
        shutil.rmtree(out / folder.FIGURES, ignore_errors=True)
    made = study.report(results, manifest["config"], out)
    page.write(made, results, manifest, out, study.metrics, home)
    return made, results


def summary(results: Sequence[Result], out: Path) -> tuple[str, int]:
    """Return the outcome of a run's cells in words, and its exit code: 1 where one failed."""
    from orbits.runs import page

    count = Counter(result.status for result in results)
    words = f"{counted(len({x.cell for x in results}), 'cell')}, {count['failed']} failed"
    words += f", {count['skipped']} skipped" if count["skipped"] else ""
    lines = [f"{words}: {out / folder.LINES}", *(f"  {x}" for x in page.failures(results))]
    return "\n".join(lines), 1 if count["failed"] else 0


def with_units(study: Study, result: Result) -> Result:
    """Return a result whose metrics have the units and directions that its study declares."""
    if not study.metrics:
        return result
    metrics: dict[str, Metric] = {}
    for name, metric in result.metrics.items():
        known = study.quantity(name)
        direction = metric.direction if known.direction == "none" else known.direction
        unit = known.unit or metric.unit
        metrics[name] = dataclasses.replace(metric, unit=unit, direction=direction)
    return dataclasses.replace(result, metrics=metrics)


def _short(value: Any) -> str:
    return (", ".join(map(str, value)) or "none") if isinstance(value, list) else str(value)
