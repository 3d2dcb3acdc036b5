"""The study of probes: knowledge of trained world models, each evaluated beside its controls.

A cell is one probe on one checkpoint; what a probe trains for others to share is a cell that it
needs. All are addressed by the checkpoint's bytes and by the settings that the probe uses.

Settings are read and refused without torch: what needs it is imported where cells are made,
computed or reported.
"""

from __future__ import annotations

import dataclasses
import json
import logging
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from orbits import laws, shifts
from orbits.runs import artefact
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.digests import digest
from orbits.runs.result import Quantity, Result
from orbits.runs.study import Study
from worldmodel import probes
from worldmodel.models.checkpoint import NAMED, check_file, named_checkpoint
from worldmodel.outside import Source, source
from worldmodel.probes import early
from worldmodel.probes.quantities import QUANTITIES, UNDECLARED
from worldmodel.probes.settings import Settings as ProbeSettings
from worldmodel.training.allocator import keep_freed_memory

if TYPE_CHECKING:
    from orbits.runs.page import Report
    from worldmodel.probes.base import Probe
    from worldmodel.probes.checkpoint import Checkpoint

ALL = ("all",)


class Subject(NamedTuple):
    """A model that a user named for the probes.

    Attributes:
        named: Label and seed in tables; None for the model's own.
        path: A checkpoint, the folder of an exported model, or the file of a model from outside.
        model: The class of a model from outside, see :class:`worldmodel.outside.Source`.
    """

    named: tuple[str, int] | None
    path: Path
    model: str | None = None


def subject(text: str) -> Subject:
    """Read ``PATH``, ``file.py:Class`` or ``package.module:Class``, each after LABEL:SEED=."""
    match = NAMED.fullmatch(text)
    named = (match["label"], int(match["seed"])) if match else None
    rest = match["path"] if match else text
    if (found := source(rest)) is not None:
        return Subject(named, found.path, found.model)
    return Subject(named, named_checkpoint(text).path)


def prepare() -> None:
    """Set up a worker for many small trainings: no messages of Lightning, one thread."""
    import torch

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    torch.set_num_threads(1)
    keep_freed_memory()


class Probing(Study):
    """Probes of world models."""

    name = "probe"
    about = "What does a trained world model know?"
    Settings = ProbeSettings
    words = "checkpoints"
    files = ("shift_file",)
    prepare = staticmethod(prepare)
    metrics = QUANTITIES

    def quantity(self, metric: str) -> Quantity:
        """Return the meaning of a metric; probes of other packages bring their own."""
        return self.metrics.get(metric, UNDECLARED)

    def out(self, settings: ProbeSettings, preset: str) -> Path:
        """Return the default results folder: of the same checkpoints and settings, the same."""
        return Path("runs") / f"{self.name}-{artefact.key(self.config(settings, preset))[:8]}"

    def check(self, settings: ProbeSettings) -> None:
        """Refuse files, models, probes and laws that cannot be, before torch is imported."""
        if not settings.checkpoints:
            raise ValueError("no checkpoint is given; name one or more files")
        for name in settings.probes if settings.probes != ALL else ():
            probes.check_name(name)
        if settings.law is not None:
            laws.get(settings.law)
        if settings.shift_file is not None:
            shifts.load(settings.shift_file)
        asked = () if settings.probes == ALL else settings.probes
        named, worlds = {name: probes.takes(name) for name in asked}, []
        for found in map(subject, settings.checkpoints):
            if found.model is not None:
                source = Source(found.path, found.model)
                worlds.append((found.path, early.check_outside(source, named, settings.law)))
            elif found.path.is_dir():
                worlds.append((found.path, early.check_exported(found.path, named, settings.law)))
            else:
                check_file(found.path)
        early.refuse_unlike(worlds)

    def plan(self, cells: Sequence[Cell], settings: ProbeSettings) -> str:
        """Return the cells of a run, and that the costs below know no model from outside."""
        told = super().plan(cells, settings)
        if all(subject(text).model is None for text in settings.checkpoints):
            return told
        return f"{told}\nA model from outside may take longer than is reckoned for it."

    def check_changes(self, settings: ProbeSettings, changes: Mapping[str, Any]) -> None:
        """Refuse a change that none of the named probes reads."""
        changed = [name for name in changes if name not in ("probes", "law")]
        if settings.probes == ALL or not changed:
            return
        self.check(settings)  # what needs no torch is refused before the probes bring it
        asked = [probes.get(name) for name in settings.probes]
        read = {x for probe in asked for x in (*probe.uses, *probe.options, *probe.files)}
        for name in changed:
            if name not in read:
                raise ValueError(
                    f"--{name.replace('_', '-')} changes nothing of {', '.join(settings.probes)}; "
                    "leave it, or name a probe that reads it"
                )

    def config(self, settings: ProbeSettings, preset: str) -> dict[str, Any]:
        """Return the data that determine the results; checkpoints count by bytes, not paths."""
        digests = sorted(map(_digest, settings.checkpoints))
        names = sorted(_names(settings))
        return {**super().config(settings, preset), "checkpoints": digests, "probes": names}

    def changes(self, config: Mapping[str, Any]) -> dict[str, Any]:
        """Return the settings of a run that differ from those of its preset."""
        changed = super().changes(config)
        return {name: value for name, value in changed.items() if name != "checkpoints"}

    def cells(self, settings: ProbeSettings) -> Iterator[Cell]:
        """Return a cell for each probe on each checkpoint, after the cells that it needs.

        A probe that cannot be used on a checkpoint is an error if it was named, and left out with
        its reason otherwise.
        """
        from worldmodel.probes.outside import load

        self.check(settings)
        checkpoints = [
            load(found.path, settings.law, found.named, found.model)
            for found in map(subject, settings.checkpoints)
        ]
        _refuse_unlike(checkpoints)
        pairs = list(self._pairs(checkpoints, settings))
        cells = {}
        for checkpoint, probe in pairs:
            for cell in _with_needs(_cell(checkpoint, probe, settings)):
                cells[cell.key] = cell
        yield from cells.values()

    def _pairs(
        self, checkpoints: Sequence[Checkpoint], settings: ProbeSettings
    ) -> list[tuple[Checkpoint, Probe]]:
        """Return the probes that are used on each checkpoint."""
        pairs, left_out = [], []
        for checkpoint in checkpoints:
            for probe in map(probes.get, _names(settings)):
                reason = probe.why_not(checkpoint, settings)
                if reason is None:
                    pairs.append((checkpoint, probe))
                elif settings.probes == ALL:
                    left_out.append(f"{probe.name}, {checkpoint.path}: {reason}")
                else:
                    raise ValueError(f"{probe.name} does not take {checkpoint.path}: {reason}")
        if not pairs:
            raise ValueError(f"no probe can be used on these checkpoints: {'; '.join(left_out)}")
        for sentence in left_out:
            print(f"left out: {sentence}")
        return pairs

    def report(self, results: Sequence[Result], config: Mapping[str, Any], out: Path) -> Report:
        """Return the report: a section per probe."""
        from worldmodel.probes.report import report

        return report(results, self.about, self.setting(config), out)


def measure(
    checkpoint: Path,
    probe: str,
    law: str,
    named: tuple[str, int] | None,
    settings: Mapping[str, Any],
    folder: Path,
    scratch: Path,
    progress: Progress,
    model: str | None = None,
    **needs: Path,
) -> list[Outcome]:
    """Return the outcomes of a probe on a checkpoint or a model; the function of a cell."""
    from worldmodel.probes.base import Pieces, device
    from worldmodel.probes.outside import load

    method, loaded = probes.get(probe), load(checkpoint, law, named, model)
    files: dict[str, Any] = {name: str(needs.pop(name)) for name in method.files if name in needs}
    pieces = Pieces(folder, scratch, progress, needs)
    return [
        dataclasses.replace(
            outcome,
            details={"curves": {}, **outcome.details, "checkpoint": loaded.row},
            device=device(method.trains and model is None),
        )
        for outcome in method.measure(loaded, ProbeSettings(**settings, **files), pieces)
    ]


def _cell(checkpoint: Checkpoint, probe: Probe, settings: ProbeSettings) -> Cell:
    default = ProbeSettings()
    changed = [x for x in probe.options if getattr(settings, x) != getattr(default, x)]
    named = {name: getattr(settings, name) for name in probe.files}
    files = {name: Path(path) for name, path in named.items() if path is not None}
    return Cell(
        measure,
        checkpoint.case(probe.name),
        {
            "probe": probe.name,
            **checkpoint.arguments,
            "settings": {name: getattr(settings, name) for name in (*probe.uses, *changed)},
        },
        needs=probe.needs(checkpoint, settings),
        inputs={**checkpoint.inputs, **files},
        version=probe.version(checkpoint),
    )


def _with_needs(cell: Cell) -> Iterable[Cell]:
    """Yield the cells that a cell needs, directly or not, and the cell itself."""
    for need in cell.needs.values():
        yield from _with_needs(need)
    yield cell


def _names(settings: ProbeSettings) -> tuple[str, ...]:
    """Return the names of the probes of a run."""
    return probes.names() if settings.probes == ALL else tuple(dict.fromkeys(settings.probes))


def _digest(text: str) -> str:
    """Return the checksum of a checkpoint, after its label and seed if it is named."""
    found = subject(text)
    name = "" if found.named is None else "{}:{}=".format(*found.named)
    return f"{name}{digest(found.path)}{f':{found.model}' if found.model else ''}"


def _refuse_unlike(checkpoints: Sequence[Checkpoint]) -> None:
    """Refuse checkpoints that would share a row without being trainings of one model."""
    early.refuse_unlike((each.path, each.protocol) for each in checkpoints)
    by_row = dict[str, "Checkpoint"]()
    for checkpoint in checkpoints:
        other = by_row.setdefault(json.dumps(checkpoint.row), checkpoint)
        if other is not checkpoint:
            raise ValueError(
                f"{other.path} and {checkpoint.path} are the same by model, size, steps, labels "
                "and data.train_seed; name them by what differs: LABEL:SEED=PATH"
            )


STUDY = Probing()
