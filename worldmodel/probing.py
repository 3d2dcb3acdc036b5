"""Probing: ask checkpoints the questions of :mod:`worldmodel.probes` and keep the answers.

Every answer is content-addressed by the checkpoint's bytes, the probe and its settings. A run that
was killed finishes by running again: finished answers, and the finished pieces of unfinished ones,
are read back. ``results.jsonl`` is written once all are there, and the report from it alone.
"""

from __future__ import annotations

import dataclasses
import json
import logging
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from tqdm import tqdm

from orbits import artefacts, locks
from orbits.manifest import manifest
from worldmodel import probes
from worldmodel.intervals import MINIMUM_SEEDS
from worldmodel.subject import Subject

SCHEMA = 1
VERSION = 4
"""Raised when answers computed by older code must not be reused."""
CLAIM, LINES = "probe.json", "results.jsonl"
WHITE_NOISE = ("projection", "random")


@dataclass(frozen=True)
class Settings:
    """What all probes share.

    Attributes:
        n_sequences: Held-out test sequences.
        seeds: Seeds of whatever a probe trains or draws.
        steps: Fine-tuning steps; None for each probe's own number.
        datasets: White-noise datasets of the inductive-bias probe.
        white_noise: What they label. ``projection``, a linear function of the state: what Vafa
            et al. draw in physics. ``random``, a bit per state: what they draw in discrete
            worlds, where a state has many sequences. States of orbits do not recur, so nobody can
            extrapolate such bits; what remains is whether equal states are treated alike.
        labels: Labelled training sequences of read-outs and force heads.
        data_seed: Seed of the data.
        law: The force law of the world that is asked about; None for the checkpoint's own.
        scratch: Train the force heads' control from scratch, which takes as many steps as the
            checkpoint's pre-training and fine-tuning together.
    """

    n_sequences: int = 500
    seeds: tuple[int, ...] = (0, 1, 2)
    steps: int | None = None
    datasets: int = 100
    white_noise: str = "projection"
    labels: int = 1000
    data_seed: int = 0
    law: str | None = None
    scratch: bool = True

    def __post_init__(self) -> None:
        for name, least in (("n_sequences", 2), ("datasets", 2), ("labels", 10)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.steps is not None and self.steps < 1:
            raise ValueError(f"steps must be at least 1, got {self.steps}")
        if self.white_noise not in WHITE_NOISE:
            raise ValueError(
                f"unknown white noise {self.white_noise!r}; choose from {', '.join(WHITE_NOISE)}"
            )
        if len(set(self.seeds)) != len(self.seeds) or min(self.seeds, default=-1) < 0:
            raise ValueError(f"seeds must be different numbers from 0 on, got {self.seeds}")
        if len(self.seeds) != 1 and len(self.seeds) < MINIMUM_SEEDS:
            raise ValueError(
                f"an interval over seeds needs at least {MINIMUM_SEEDS} seeds, got "
                f"{len(self.seeds)}; give one (no interval is shown) or {MINIMUM_SEEDS}"
            )


class Store:
    """Resumable pieces of one probe's work on one checkpoint, and the files it keeps.

    Args:
        out: The results folder.
        config: What all pieces depend on: the probe, the checkpoint, the world and the settings.
    """

    def __init__(self, out: Path, config: Mapping[str, Any]) -> None:
        self.out, self.config, self.probe = out, dict(config), str(config["probe"])

    def record(
        self, config: Mapping[str, Any], compute: Callable[[], dict[str, Any]]
    ) -> dict[str, Any]:
        """Return what ``compute`` returns, from disk if this was computed before; plain data."""
        path = self._piece(config).with_suffix(".json")
        try:
            return artefacts.load_record(path)
        except (FileNotFoundError, artefacts.CorruptArtefact):
            path.parent.mkdir(parents=True, exist_ok=True)
            artefacts.save_record(path, compute())
            return artefacts.load_record(path)

    def forget(self, config: Mapping[str, Any]) -> None:
        """Let what a call of :meth:`record` kept be computed again."""
        self._piece(config).with_suffix(".json").unlink(missing_ok=True)

    def arrays(
        self, config: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the arrays that ``compute`` returns, from disk if they were computed before."""
        path = self._piece(config).with_suffix(".npz")
        if not artefacts.is_intact(path):
            path.parent.mkdir(parents=True, exist_ok=True)
            artefacts.save_arrays(path, compute(), manifest(dict(config), seed=None))
        return artefacts.load_arrays(path)[0]

    def file(self, name: str) -> Path:
        """Return where a file that a line names is kept."""
        path = self.out / self.probe / artefacts.key(self.config) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def relative(self, path: Path) -> str:
        """Return a file's path as a line names it."""
        return str(path.relative_to(self.out))

    def progress(self, items: Sequence[Any], label: str) -> Iterable[Any]:
        """Show how far a loop is."""
        return tqdm(items, desc=f"{self.probe}: {label}", leave=False)

    def _piece(self, config: Mapping[str, Any]) -> Path:
        return self.out / "cells" / artefacts.key({**self.config, "piece": dict(config)})


def probe(
    checkpoints: Sequence[str | Path],
    names: Sequence[str],
    out: str | Path,
    settings: Settings,
    *,
    resume: bool = False,
) -> Path:
    """Ask every checkpoint every probe, and write lines, figures and report.

    Args:
        checkpoints: Files, or ``LABEL:SEED=PATH``.
        names: Probes; empty for all. One that cannot ask a checkpoint is an error if it was
            named, and left out with its reason otherwise.
        out: The results folder.
        settings: What all probes share.
        resume: Take a folder of other checkpoints, probes or settings: what they share is not
            computed again, lines and report are those of this run.

    Returns:
        The path of the report.

    Raises:
        FileNotFoundError: There is no such checkpoint.
        ValueError: A checkpoint, a probe or a setting cannot be used, or the folder is not for
            this run; nothing was computed then.
    """
    from worldmodel.probe_report import report

    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)  # probes train many times
    out = Path(out)
    chosen = [probes.get(name) for name in dict.fromkeys(names or probes.names())]
    subjects = [Subject.load(path, settings.law) for path in checkpoints]
    _refuse_unlike(subjects)
    questions, refused = [], {}
    for subject in subjects:
        for one in chosen:
            reason = one.refusal(subject, settings)
            if reason is None:
                questions.append((subject, one))
            elif names:
                raise ValueError(f"{one.name} cannot ask {subject.path}: {reason}")
            else:
                refused[f"{one.name}, {subject.path}"] = reason
    if not questions:
        raise ValueError("no probe can ask these checkpoints: " + "; ".join(refused.values()))
    config = {
        "checkpoints": sorted(subject.sha256 for subject in subjects),
        "probes": sorted(one.name for one in chosen),
        "settings": json.loads(json.dumps(dataclasses.asdict(settings))),
    }
    _claim(out, config, resume)
    with locks.lock(out):
        artefacts.save_record(out / CLAIM, {"config": config})
        for stale in (LINES, f"{LINES}.json", "report.md", "report.html"):
            (out / stale).unlink(missing_ok=True)
        for question, reason in refused.items():
            print(f"left out: {question}: {reason}")
        lines: list[dict[str, Any]] = []
        for subject, one in questions:
            print(f"{one.name}: {subject.model}, {subject.row['arm']}, {subject.path}")
            lines += answer(subject, one, out, settings)
        inputs = {f"{n}: {x.path.name}": x.sha256 for n, x in enumerate(subjects)}
        artefacts.save_lines(out / LINES, lines, manifest(config, seed=None, inputs=inputs))
        return report(out)


def _refuse_unlike(subjects: Sequence[Subject]) -> None:
    """Refuse checkpoints that would share a row without being trainings of one model."""
    by_row: dict[str, Subject] = {}
    for subject in subjects:
        worlds = [dataclasses.replace(x.protocol, label_leak=0) for x in (subjects[0], subject)]
        if worlds[0] != worlds[1]:
            raise ValueError(
                f"{subjects[0].path} and {subject.path} are of different worlds, which never "
                "share a table; probe them apart"
            )
        other = by_row.setdefault(json.dumps(subject.row), subject)
        if other is not subject:
            raise ValueError(
                f"{other.path} and {subject.path} are the same by model, size, steps, labels and "
                "data.train_seed; name them by what differs: LABEL:SEED=PATH"
            )


def answer(
    subject: Subject, one: probes.Probe, out: Path, settings: Settings
) -> list[dict[str, Any]]:
    """Return the lines of one probe on one checkpoint, from disk if they are there."""
    config = {
        "version": VERSION,
        "probe": one.name,
        "checkpoint": subject.sha256,
        "law": subject.law,
        "settings": {name: getattr(settings, name) for name in one.uses},
    }
    if subject.label is not None:
        config["named"] = [subject.label, subject.seed]
    store = Store(out, config)

    def compute() -> dict[str, Any]:
        start = time.process_time()
        lines = [
            _complete(line, subject, one.name) for line in one.measure(subject, settings, store)
        ]
        # The whole answer's manifest and CPU time stand on every line.
        inputs = {subject.path.name: subject.sha256}
        on_gpu = one.trains and torch.cuda.is_available()  # what only asks stays on the CPU
        device = torch.cuda.get_device_name() if on_gpu else "cpu"
        proof = manifest(config, seed=settings.seeds[0], device=device, inputs=inputs)
        spent = round(time.process_time() - start, 2)
        return {"lines": [{**line, "manifest": proof, "cpu_s": spent} for line in lines]}

    lines: list[dict[str, Any]] = store.record({}, compute)["lines"]
    if not all(artefacts.is_intact(file) for line in lines for file in _named(out, line)):
        store.forget({})
        lines = store.record({}, compute)["lines"]
    return lines


def load(out: Path) -> tuple[list[dict[str, Any]], dict[str, Any]]:
    """Return the lines of a finished run and its manifest.

    Raises:
        FileNotFoundError: The folder holds no finished run.
        CorruptArtefact: The lines were edited or damaged, or name a file outside the folder.
    """
    if not (out / LINES).is_file():
        raise FileNotFoundError(f"{out} holds no finished probe run (no {LINES})")
    lines, proof = artefacts.load_lines(out / LINES)
    for line in lines:
        _named(out, line)
    return lines, proof


def _named(out: Path, line: Mapping[str, Any]) -> list[Path]:
    """Return the files that a line names."""
    return [artefacts.below(out, name) for name in line["files"].values()]


def _complete(line: Mapping[str, Any], subject: Subject, probe: str) -> dict[str, Any]:
    """Say whose line it is: the checkpoint's, or that of a control of it."""
    row = {**subject.row, "model": line["name"], "arm": line["arm"]}
    return {
        "schema": SCHEMA,
        "kind": "probe",
        "probe": probe,
        "row": row,
        "subject": subject.row,
        "setting": line.get("setting", {}),
        "metrics": line["metrics"],
        "curves": line.get("curves", {}),
        "files": line.get("files", {}),
    }


def _claim(out: Path, config: Mapping[str, Any], resume: bool) -> None:
    """Refuse a folder that is not for this run."""
    if out.exists() and not out.is_dir():
        raise ValueError(f"{out} is a file; choose another --out")
    if not (out / CLAIM).is_file():
        if out.exists() and any(not path.name.startswith(".") for path in out.iterdir()):
            raise ValueError(f"{out} holds files that are not probe results; choose another --out")
        return
    held = artefacts.load_record(out / CLAIM)["config"]
    changed = sorted(name for name in config if held.get(name) != config[name])
    if changed and not resume:
        raise ValueError(
            f"{out} holds another run (differs in {', '.join(changed)}); use --resume to go on "
            "with this one in it, or another --out"
        )
