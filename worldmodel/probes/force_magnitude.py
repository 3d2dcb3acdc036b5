"""The force-magnitude probe: does a fine-tuned head infer the masses, or remember them?

As published, fine-tuning sees two labels of every test sequence, in dozens of passes. Where the
planet's mass is invisible, a model that remembers which label belongs to which sequence then
seems to know it. So heads are trained without and with this leak, and asked at rows of the same
sequences that have no label, at the leaked labels, and on sequences that never leaked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import lightning
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from orbits import pictures
from orbits.best_observer import best_observer
from worldmodel.controls.knn_oracle import knn_oracle
from worldmodel.controls.ridge import ridge_readout
from worldmodel.data import OrbitData
from worldmodel.probes import Line
from worldmodel.probes._force_figures import inference
from worldmodel.probes._force_head import (
    HEAD_SETTINGS,
    ROWS,
    STEPS,
    UNLIMITED,
    HeldOut,
    answers,
    at,
    finetuned,
    labelled,
    own_answers,
    scratch_steps,
    shape,
)
from worldmodel.probes._force_measures import Columns, measured
from worldmodel.tasks import ForceTask, central_columns, read_rows

if TYPE_CHECKING:
    from worldmodel.probing import Settings, Store, Subject

LEAKS = (0, 2)


class ForceMagnitude:
    """The probe."""

    name = "force_magnitude"
    about = "does a fine-tuned force head infer the masses, or remember leaked labels?"
    uses = (*HEAD_SETTINGS, "scratch")
    trains = True
    captions: ClassVar = {
        "inference": (
            "R2 of log F, and the exponents that least squares finds in the predicted magnitudes, "
            "on held-out sequences. Blue: no label of a test sequence in the training set; "
            "vermilion: two of each. Circles: rows without a label; crosses: the leaked labels; "
            "squares: sequences that never leaked. Predictions that are not positive, which a head "
            "of the raw force may give, have no logarithm: the table's column unusable says how "
            "many were left out, and figures of different shares are of different points. What is "
            "known at the circle but not at the square was remembered. Bars: 95% over sequences; "
            "dotted: the law. Controls: a model trained from scratch with the steps of both "
            "trainings, a ridge read-out of an untrained model, the k-NN oracle that is given the "
            "true state, and what the observations allow at best."
        ),
    }

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Refuse a world without labelled two-body systems."""
        if "force" not in subject.protocol.populations:
            return f"protocol {subject.protocol.name!r} has no labelled forces; take fixed"
        return None

    def measure(self, subject: Subject, settings: Settings, store: Store) -> list[Line]:
        """Return a line for everyone who answers, at each kind of row."""
        lines = []
        if settings.scratch and not isinstance(subject.task, ForceTask):
            total = scratch_steps(subject, settings.steps or STEPS)
            print(f"scratch: {total} steps a seed, as both trainings; --no-scratch leaves it out")
        for who in store.progress(list(_everyone(subject, settings, store)), "heads"):
            answered = [training() for training in who.trainings]
            for rows in ROWS:
                chosen = [at(columns, rows) for columns in answered]
                if len(chosen[0]["rows"]):
                    line = {"name": who.name, "arm": who.arm}
                    setting = {**who.setting, "rows": rows}
                    lines.append({**line, "setting": setting, "metrics": measured(chosen)})
        return lines

    def draw(self, lines: Sequence[Line], out: Path) -> dict[str, Path]:
        """Draw the figures of merit, one panel each and one row per answerer."""
        path = out / "figures" / f"{self.name}_inference.png"
        return {"inference": pictures.save(inference(lines), path)}


@dataclass(frozen=True)
class _Answerer:
    """Someone who answers, in one or more trainings that are computed when asked for."""

    name: str
    arm: str
    setting: dict[str, Any]
    trainings: list[Callable[[], Columns]]


def _everyone(subject: Subject, settings: Settings, store: Store) -> Iterator[_Answerer]:
    model, seeds = subject.model, settings.seeds
    labels = labelled(subject, settings, 0, seeds[0]).n_train
    if isinstance(subject.task, ForceTask):
        leaks: tuple[int, ...] = (subject.protocol.label_leak,)
        setting: dict[str, Any] = {"leak": leaks[0], "labels": subject.labels or UNLIMITED}
        own = partial(own_answers, subject, settings, store)
        yield _Answerer(model, subject.row["arm"], setting, [own])
    else:
        leaks = LEAKS
        head = partial(finetuned, subject, settings, store)
        steps = settings.steps or STEPS
        for leak in leaks:
            setting = {"leak": leak, "labels": labels, "steps": steps}
            heads: list[Any] = [partial(head, leak, seed) for seed in seeds]
            yield _Answerer(model, subject.row["arm"], setting, heads)
        if settings.scratch:
            setting = {"leak": 0, "labels": labels, "steps": scratch_steps(subject, steps)}
            heads = [partial(head, 0, seed, scratch=True) for seed in seeds]
            yield _Answerer(model, "scratch", setting, heads)
    control = partial(_control, subject, settings, store)
    setting = {"leak": leaks[0], "labels": labels}
    read_outs: list[Any] = [
        partial(control, "ridge", leaks[0], seed, partial(_ridge, subject, seed)) for seed in seeds
    ]
    yield _Answerer(model, "untrained + ridge", setting, read_outs)
    for leak in leaks:
        nearest = partial(control, "k-NN oracle", leak, seeds[0], _nearest)
        yield _Answerer("k-NN oracle", "oracle", {"leak": leak, "labels": labels}, [nearest])
    for answer, field in (("geometric mean", "force"), ("mean", "mean_force")):
        best = partial(control, f"ceiling, {answer}", 0, seeds[0], partial(_ceiling, field))
        yield _Answerer("best observer", "ceiling", {"answer": answer}, [best])


def _control(
    subject: Subject,
    settings: Settings,
    store: Store,
    name: str,
    leak: int,
    seed: int,
    predict: Callable[[OrbitData, DataLoader], dict[str, Tensor]],
) -> Columns:
    def compute() -> Columns:
        data = labelled(subject, settings, leak, seed)
        return answers(HeldOut(data, settings.n_sequences), partial(predict, data))

    return store.arrays({"control": name, "leak": leak, "seed": seed}, compute)


def _ridge(subject: Subject, seed: int, data: OrbitData, test: DataLoader) -> dict[str, Tensor]:
    lightning.seed_everything(subject.control_seed(seed), verbose=False)
    return ridge_readout(ForceTask(**shape(subject.task)), data.labelled_dataloader(), test)


def _nearest(data: OrbitData, test: DataLoader) -> dict[str, Tensor]:
    return knn_oracle(data.labelled_dataloader(), test)


def _ceiling(field: str, data: OrbitData, test: DataLoader) -> dict[str, Tensor]:
    """Return what the observations allow: the best answer to ln F with the masses, or to F."""
    columns = []
    for batch in test:
        indices = batch["sequence_id"].numpy()
        answer = best_observer(data.protocol, data.hparams["seed"], "test", indices)
        force = torch.from_numpy(getattr(answer, field))
        found = central_columns(batch, force.float())
        if field == "force":
            masses = {"log_m1": answer.log_m1, "log_m2": answer.log_m2}
            found |= {
                name: torch.from_numpy(mass)[read_rows(batch).nonzero(as_tuple=True)[0]]
                for name, mass in masses.items()
                if mass is not None
            }
        columns.append(found)
    return {name: torch.cat([column[name] for column in columns]) for name in columns[0]}


PROBE = ForceMagnitude()
