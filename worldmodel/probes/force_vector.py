"""The force-vector probe: do the forces on the planets point at the Sun?

Fine-tuning sees ten force vectors of each of the eight planets, scaled into the unit interval, and
is asked for the others: Vafa et al. (2025), and figures 1 and A7 of the LSSAR paper. As published,
AdamW with a learning rate of 2e-4 takes batches of 64; published are 10,000 steps for GPT-2, but a
model of width 64 meets all 80 labels (R2 above 0.999) in the 500 that are the default here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import lightning
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.utils.data import DataLoader

from orbits import artefacts, pictures, solar_system
from orbits.protocols import Protocol
from orbits.solar_system import PLANETS
from worldmodel.controls.knn_oracle import knn_oracle
from worldmodel.intervals import MINIMUM_SEEDS, over_seeds
from worldmodel.probes import Line
from worldmodel.probes._force_figures import angles, kept_vectors, vectors_on_orbits
from worldmodel.probes._force_head import Draws, VectorTask, shape, warmup
from worldmodel.quiet import quiet_trainer

if TYPE_CHECKING:
    from worldmodel.probing import Settings, Store, Subject

Array = npt.NDArray[np.float64]

STEPS, LEARNING_RATE = 500, 2e-4
ARMS = ("pretrained", "untrained")
INTERVAL = "t, fine-tuning seeds"


class SolarForces:
    """Each planet with the Sun: what is observed, labelled and asked.

    Attributes:
        scaled: Force vectors in the unit interval, as they are trained and compared, [8, T, 2].
        force: The same in solar mass AU / year^2, [8, T, 2]; they point at the Sun.
        scale: What one unit is of each planet's components, [8, 2].
        labelled: Rows that training sees, [8, T].
        asked: The planet's other rows, [8, T].
    """

    def __init__(self, protocol: Protocol) -> None:
        self.observed = solar_system.two_body(protocol)
        self.force = self.observed["force"]
        self.scaled = protocol.unit_force(self.force)
        self.scale = np.nanmax(np.abs(self.force), axis=1) / np.nanmax(np.abs(self.scaled), axis=1)
        self.labelled = solar_system.force_mask(protocol.n_points)
        self.asked = np.isfinite(self.force[..., 0]) & ~self.labelled
        if not self.asked.any():
            raise ValueError("all rows are labelled, so that none can be asked")

    def batch(self, vectors: Array, rows: npt.NDArray[np.bool_]) -> dict[str, Tensor]:
        """Return the eight sequences with some vectors at some rows as ``force``."""
        force = np.where(rows[..., None], vectors, np.nan)
        arrays = {**self.observed, "force": force, "sequence_id": np.arange(len(PLANETS))}
        return {
            name: torch.from_numpy(
                value.astype(np.float32 if value.dtype.kind == "f" else np.int64)
            )
            for name, value in arrays.items()
        }

    def measured(self, answer: Array) -> dict[str, Array]:
        """Compare answers [8, T, 2] in the scale of training, planet by planet.

        Returns:
            ``cosine`` with the true vector, its mean; ``angle_deg``, the mean angle in degrees
            between the force and the direction of the Sun, once the scale is undone; ``r2`` of
            the vectors about zero. Each [8].
        """
        given, true = np.where(self.asked[..., None], [answer, self.scaled], np.nan)
        cosine, towards = _cosine(given, true), _cosine(given * self.scale[:, None], self.force)
        return {
            "cosine": np.nanmean(cosine, axis=1),
            "angle_deg": np.nanmean(np.degrees(np.arccos(towards)), axis=1),
            "r2": 1 - np.nansum((given - true) ** 2, axis=(1, 2)) / np.nansum(true**2, axis=(1, 2)),
        }


def tuned_vectors(subject: Subject, steps: int, seed: int, arm: str) -> dict[str, Array]:
    """Fine-tune on the labelled vectors and return those at every row, scaled, [8, T, 2].

    Args:
        subject: The checkpoint.
        steps: Fine-tuning steps.
        seed: Seed of the head, of the drawn batches, and of an untrained model's weights.
        arm: One of :data:`ARMS`.
    """
    # Heads on all checkpoints start alike, their untrained twins each from weights of its own.
    start = seed if arm == "pretrained" else subject.control_seed(seed)
    lightning.seed_everything(start, verbose=False)
    hyper_parameters = {**shape(subject.task), "optimizer": "adamw"}
    task = VectorTask(lr=LEARNING_RATE, warmup_steps=warmup(steps), **hyper_parameters)
    if arm == "pretrained":
        task.load_backbone(subject.path)
    solar = SolarForces(subject.protocol)
    batch = solar.batch(solar.scaled, solar.labelled)
    run = quiet_trainer(steps)
    run.fit(task, train_dataloaders=DataLoader(Draws(batch, seed), batch_size=None))
    once: Any = DataLoader([batch], batch_size=None)  # type: ignore[arg-type]
    answer: Any = run.predict(task, dataloaders=once)
    return {"vector": answer[0]["vector"].double().cpu().numpy()}


def controls(solar: SolarForces) -> dict[str, tuple[str, Array]]:
    """Return what models are compared with: arm and vectors in the scale of training, by name."""
    known = [solar.batch(solar.force, solar.labelled)]
    rows = solar.asked | solar.labelled
    nearest = knn_oracle(known, [solar.batch(solar.force, rows)])  # type: ignore[arg-type]
    ratio = 1 / solar.scale
    towards = solar.force / np.linalg.norm(solar.force, axis=-1, keepdims=True)
    oracle = np.full_like(solar.force, np.nan)
    oracle[rows] = nearest["force_vector_predicted"].double().numpy()
    mean = np.mean(solar.scaled, axis=1, where=solar.labelled[..., None])
    return {
        "towards the Sun": ("oracle", towards * ratio[:, None]),
        "k-NN oracle": ("oracle", oracle * ratio[:, None]),
        "mean of the labels": ("control", np.broadcast_to(mean[:, None], solar.force.shape)),
    }


class ForceVector:
    """The probe."""

    name = "force_vector"
    about = "fine-tuned on ten force vectors of each planet: do the others point at the Sun?"
    uses = ("seeds", "steps")
    trains = True
    captions: ClassVar = {
        "earth": (
            "The force on the Earth at places that fine-tuning saw no label of, in the scale of "
            "training: true, and by each model. Grey dots: the orbit in AU; orange: the Sun."
        ),
        "planets": "The same for the other seven planets.",
        "angles": (
            "Mean angle between a predicted force and the direction of the Sun in degrees, where "
            "fine-tuning saw no label; 90 is chance. Bars: 95% over fine-tuning seeds (Student's "
            "t). Controls: the same model with random weights fine-tuned alike, the k-NN oracle "
            "that is given the true state, and the mean of the labels as the answer everywhere."
        ),
    }

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Refuse a world that does not hold the Solar System, or too short sequences."""
        try:
            SolarForces(subject.protocol)
        except ValueError as error:
            return f"{error}; take a model of paper or fixed, with 100 points or more"
        return None

    def measure(self, subject: Subject, settings: Settings, store: Store) -> list[Line]:
        """Return a line per planet, and one for all, of the model, its twin and the controls."""
        solar, steps = SolarForces(subject.protocol), settings.steps or STEPS
        setting = {"steps": steps, "interval": INTERVAL}
        runs: dict[str, list[Array]] = {arm: [] for arm in ARMS}
        for arm, seed in store.progress([(a, s) for s in settings.seeds for a in ARMS], "heads"):
            config = {"arm": arm, "seed": seed, "steps": steps}
            kept = store.arrays(config, partial(tuned_vectors, subject, steps, seed, arm))
            runs[arm].append(kept["vector"])
        path = store.file("vectors.npz")
        position, shown = solar.observed["state"][..., :2], {"asked": solar.asked}
        shown |= {"position": position, "scaled": solar.scaled, "answer": runs["pretrained"][0]}
        artefacts.save_arrays(path, shown, {"config": store.config})
        arms = {"pretrained": subject.row["arm"], "untrained": "untrained"}
        lines = []
        for arm, answered in runs.items():
            files = {"vectors": store.relative(path)} if arm == "pretrained" else {}
            about = {"name": subject.model, "arm": arms[arm], "files": files}
            lines += _lines(solar, answered, about, setting)
        for name, (arm, answer) in controls(solar).items():
            lines += _lines(solar, [answer], {"name": name, "arm": arm}, {})
        return lines

    def draw(self, lines: Sequence[Line], out: Path) -> dict[str, Path]:
        """Draw the forces on the Earth, on the other planets, and the angles of all."""
        columns = kept_vectors(lines, out)
        others = [planet for planet in PLANETS if planet != "Earth"]
        figures = {
            "earth": vectors_on_orbits(columns, ["Earth"], 3.1),
            "planets": vectors_on_orbits(columns, others, 2.3),
            "angles": angles(lines),
        }
        folder = out / "figures"
        return {
            name: pictures.save(f, folder / f"{self.name}_{name}.png")
            for name, f in figures.items()
        }


def _lines(
    solar: SolarForces, answered: list[Array], about: dict[str, Any], setting: dict[str, Any]
) -> list[Line]:
    """Return the lines of one answerer, from its vectors after each training."""
    measured = [solar.measured(answer) for answer in answered]
    if about["name"] == "towards the Sun":
        measured = [{k: v for k, v in each.items() if k != "r2"} for each in measured]
    lines = []
    for number, planet in enumerate([*PLANETS, "all"]):
        metrics = {}
        for metric in measured[0]:
            values = [
                float(each[metric].mean() if planet == "all" else each[metric][number])
                for each in measured
            ]
            enough = len(values) >= MINIMUM_SEEDS
            metrics[metric] = over_seeds(values) if enough else float(np.mean(values))
        lines.append({**about, "setting": {"planet": planet, **setting}, "metrics": metrics})
    return lines


def _cosine(a: Array, b: Array) -> Array:
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.clip(np.sum(a * b, axis=-1) / lengths, -1, 1)


PROBE = ForceVector()
