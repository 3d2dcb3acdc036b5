"""The base class of probes, and the store of finished pieces of their work."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
import torch

from orbits.runs import artefact
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.probes.checkpoint import OUTSIDE, Checkpoint
from worldmodel.probes.settings import Settings
from worldmodel.probes.takes import Takes


class Pieces:
    """Finished pieces of a probe's work on one checkpoint, and the files of its results.

    Args:
        folder: The cell's folder, for files that results name.
        scratch: A folder that survives a kill, for pieces that are not computed twice.
        progress: Called with (step, total).
        needs: Folders of the cells that the probe needs, by role.
    """

    def __init__(
        self,
        folder: Path,
        scratch: Path,
        progress: Progress = lambda step, total: None,
        needs: Mapping[str, Path] | None = None,
    ) -> None:
        self.folder, self.scratch = folder, scratch
        self._progress, self._needs = progress, dict(needs or {})

    def arrays(
        self, config: Mapping[str, Any], compute: Callable[[], Mapping[str, np.ndarray]]
    ) -> dict[str, np.ndarray]:
        """Return the arrays that ``compute`` returns, from disk if they were computed before.

        Args:
            config: What tells this piece from the others of the cell, plain data.
            compute: Called where there is no such piece, or a damaged one.
        """
        path = self.scratch / f"{artefact.key(config)}.npz"
        if not artefact.is_intact(path):
            artefact.save_arrays(path, compute(), {"config": dict(config)})
        return artefact.load_arrays(path)[0]

    def needed(self, role: str, name: str) -> dict[str, np.ndarray]:
        """Return the arrays of a file that a needed cell left."""
        return artefact.load_arrays(self._needs[role] / name)[0]

    def progress(self, items: Sequence[Any]) -> Iterable[Any]:
        """Yield items and tell how many are done."""
        for number, item in enumerate(items):
            self._progress(number, len(items))
            yield item
        self._progress(len(items), len(items))


class Probe(ABC):
    """One evaluation of a checkpoint.

    Attributes:
        name: The name on the command line and in results; that of its file.
        about: One line on what it evaluates.
        uses: The settings that its results depend on.
        options: Further ones, which are part of an address only where they differ from their
            default, so that what was computed before they came is found.
        files: Settings that name a file, whose content is part of an address where there is one.
        trains: Whether it trains anything, which a GPU does where there is one.
        asks: Methods of which a model from outside needs one, written out; none for a probe that
            needs the weights of a model of this package.
        of: Names of the classes of this package that it takes, written out; empty for all.
        inside: Why a probe without ``asks`` takes no model from outside, in words.
    """

    name: ClassVar[str]
    about: ClassVar[str]
    uses: ClassVar[Sequence[str]]
    options: ClassVar[Sequence[str]] = ()
    files: ClassVar[Sequence[str]] = ()
    trains: ClassVar[bool] = False
    asks: ClassVar[Sequence[str]] = ()
    of: ClassVar[Sequence[str]] = ()
    inside: ClassVar[str] = Takes().inside

    def why_not(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why the probe cannot be used, or the method that a model from outside lacks."""
        taken, model = Takes(self.asks, self.of, self.inside), checkpoint.model
        if checkpoint.arm == OUTSIDE:
            reason = taken.why_not_outside(model)
        else:
            reason = taken.why_not_class(type(model).__name__)
        return reason or self.refusal(checkpoint, settings)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Return why the probe cannot be used on a checkpoint, and the fix; None if it can."""
        return None

    def version(self, checkpoint: Checkpoint) -> int:
        """Return the version of what is measured on a checkpoint, a part of the address."""
        return 1

    def needs(self, checkpoint: Checkpoint, settings: Settings) -> Mapping[str, Cell]:
        """Return the trainings whose files :meth:`measure` reads, by role; others may share them.

        Each comes after those that it needs itself.
        """
        return {}

    @abstractmethod
    def measure(
        self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces
    ) -> Sequence[Outcome]:
        """Return outcomes of the checkpoint, of its controls and of its oracles.

        An outcome has ``variant`` (the name of a control; None for the checkpoint's own), ``arm``
        (``untrained``, ``scratch``, ``ridge``, ``untrained + ridge``, ``oracle``, ``ceiling`` or
        ``control``; None for the checkpoint's own), ``setting`` (plain data that tells the outcomes
        apart) and ``metrics``: numbers, or (value, low, high) with a 95% interval over held-out
        sequences unless the setting says over what. Optional are ``details["curves"]`` (lists for
        figures) and ``files`` (names in ``pieces.folder``, by role).
        """

    def parts(self, results: Sequence[Result]) -> Mapping[str, Sequence[Result]]:
        """Return the results of each table of the report, by its title."""
        return {"": results}

    def answers(self, results: Sequence[Result]) -> Sequence[str]:
        """Return the sentences of a run, the most important first."""
        return ()

    def is_in_front(self, result: Result) -> bool:
        """Return whether the first screen of a page shows a result, where not all fit.

        For a probe whose verdict is computed, these are the results that the verdict is about.
        """
        return False

    def draw(self, results: Sequence[Result], out: Path) -> Sequence[Picture]:
        """Draw figures of a run into ``out/figures``, from results and the files they name."""
        return ()


def without_states(checkpoint: Checkpoint) -> str | None:
    """Return why no true states of held-out two-body systems can be asked for, or None."""
    if checkpoint.leaks:
        return checkpoint.leaks
    if "force" not in checkpoint.protocol.populations:
        return f"protocol {checkpoint.protocol.name!r} has no two-body states; take fixed"
    return None


def device(trains: bool) -> str:
    """Return the device of a measurement, for its manifest; evaluation alone stays on the CPU."""
    return torch.cuda.get_device_name() if trains and torch.cuda.is_available() else "cpu"
