"""The force-vector probe: do the forces on the planets point at the Sun?

Fine-tuning sees ten force vectors of each of the eight planets, scaled into the unit interval, and
is to predict the others: Vafa et al. (2025), and figures 1 and A7 of the LSSAR paper. As published,
AdamW with a learning rate of 2e-4 takes batches of 64; published are 10,000 steps for GPT-2, but a
model of width 64 meets all 80 labels (R2 above 0.999) in the 500 that are the default here.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import numpy as np
import numpy.typing as npt
from torch import Tensor
from torch.utils.data import DataLoader

from orbits import solar_system
from orbits.protocols import Protocol
from orbits.runs import artefact
from orbits.runs.cell import Outcome
from orbits.runs.page import Picture
from orbits.runs.result import Result
from orbits.runs.statistics import MINIMUM_SEEDS, over_seeds
from orbits.solar_system import PLANETS
from worldmodel.controls.true_state_knn import NAME as KNN
from worldmodel.controls.true_state_knn import true_state_knn
from worldmodel.data.sequences import as_tensors
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.force.figures import angles, kept_vectors, vectors_on_orbits
from worldmodel.probes.force.head import Draws, VectorModel, shape, warmup
from worldmodel.probes.settings import Settings
from worldmodel.training.trainer import quiet_trainer

Array = npt.NDArray[np.float64]

STEPS, LEARNING_RATE = 500, 2e-4
ARMS = ("pretrained", "untrained")
INTERVAL = "t, fine-tuning seeds"


class SolarForces:
    """Each planet with the Sun: what is observed, labelled and predicted.

    Attributes:
        scaled: Force vectors in the unit interval, as they are trained and compared, [8, T, 2].
        force: The same in solar mass AU / year^2, [8, T, 2]; they point at the Sun.
        scale: The unit of each planet's components in ``force``, [8, 2].
        labelled: Rows that training sees, [8, T].
        others: The planet's other rows, [8, T].
    """

    def __init__(self, protocol: Protocol) -> None:
        self.observed = solar_system.two_body(protocol)
        self.force = self.observed["force"]
        self.scaled = protocol.unit_force(self.force)
        self.scale = np.nanmax(np.abs(self.force), axis=1) / np.nanmax(np.abs(self.scaled), axis=1)
        self.labelled = solar_system.force_mask(protocol.n_points)
        self.others = np.isfinite(self.force[..., 0]) & ~self.labelled
        if not self.others.any():
            raise ValueError("all rows are labelled, so that none is left to predict")

    def batch(self, vectors: Array, rows: npt.NDArray[np.bool_]) -> dict[str, Tensor]:
        """Return the eight sequences with some vectors at some rows as ``force``."""
        force = np.where(rows[..., None], vectors, np.nan)
        arrays = {**self.observed, "force": force, "sequence_id": np.arange(len(PLANETS))}
        return as_tensors(arrays)

    def measured(self, predicted: Array) -> dict[str, Array]:
        """Compare predictions [8, T, 2] in the scale of training, planet by planet.

        Returns:
            ``cosine`` with the true vector, its mean; ``angle_deg``, the mean angle in degrees
            between the force and the direction of the Sun, once the scale is undone; ``r2`` of
            the vectors about zero. Each [8].
        """
        vectors, true = np.where(self.others[..., None], [predicted, self.scaled], np.nan)
        cosine, towards = _cosine(vectors, true), _cosine(vectors * self.scale[:, None], self.force)
        missed = np.nansum((vectors - true) ** 2, axis=(1, 2))
        return {
            "cosine": np.nanmean(cosine, axis=1),
            "angle_deg": np.nanmean(np.degrees(np.arccos(towards)), axis=1),
            "r2": 1 - missed / np.nansum(true**2, axis=(1, 2)),
        }


def tuned_vectors(checkpoint: Checkpoint, steps: int, seed: int, arm: str) -> dict[str, Array]:
    """Fine-tune on the labelled vectors and return those at every row, scaled, [8, T, 2]."""
    # Heads on all checkpoints start alike, their untrained twins each from weights of its own.
    start = seed if arm == "pretrained" else checkpoint.control_seed(seed)
    lightning.seed_everything(start, verbose=False)
    hyper_parameters = {**shape(checkpoint.model), "optimizer": "adamw"}
    model = VectorModel(lr=LEARNING_RATE, warmup_steps=warmup(steps), **hyper_parameters)
    if arm == "pretrained":
        model.load_backbone(checkpoint.path)
    solar = SolarForces(checkpoint.protocol)
    batch = solar.batch(solar.scaled, solar.labelled)
    run = quiet_trainer(steps)
    run.fit(model, train_dataloaders=DataLoader(Draws(batch, seed), batch_size=None))
    once: Any = DataLoader([batch], batch_size=None)  # type: ignore[arg-type]
    predicted: Any = run.predict(model, dataloaders=once)
    return {"vector": predicted[0]["vector"].double().cpu().numpy()}


def controls(solar: SolarForces) -> dict[str, tuple[str, Array]]:
    """Return arm and vectors, in the scale of training, of each control by name."""
    labelled = [solar.batch(solar.force, solar.labelled)]
    rows = solar.others | solar.labelled
    nearest = true_state_knn(labelled, [solar.batch(solar.force, rows)])  # type: ignore[arg-type]
    ratio = 1 / solar.scale
    towards = solar.force / np.linalg.norm(solar.force, axis=-1, keepdims=True)
    oracle = np.full_like(solar.force, np.nan)
    oracle[rows] = nearest["force_vector_predicted"].double().numpy()
    mean = np.mean(solar.scaled, axis=1, where=solar.labelled[..., None])
    return {
        "towards the Sun": ("oracle", towards * ratio[:, None]),
        KNN: ("oracle", oracle * ratio[:, None]),
        "mean of the labels": ("control", np.broadcast_to(mean[:, None], solar.force.shape)),
    }


CAPTIONS = {
    "angles": (
        "Mean angle between a predicted force and the direction of the Sun in degrees, where "
        "fine-tuning saw no label; 90 is chance. Large marks: all planets, bars 95% over "
        "trainings where there are three, else over fine-tuning seeds (Student's t); small dots: "
        "each planet. Controls: the same model with random weights fine-tuned alike, k-NN on "
        "the true state, and the mean of the labels as the prediction everywhere."
    ),
    "earth": (
        "The force on the Earth at places that fine-tuning saw no label of, in the scale of "
        "training: true, and by each model. Grey dots: the orbit in AU; orange: the Sun."
    ),
    "planets": "The same for the other seven planets.",
}


class ForceVector(Probe):
    """The force-vector probe."""

    name = "force_vector"
    about = "fine-tuned on ten force vectors of each planet: do the others point at the Sun?"
    uses = ("seeds", "steps")
    trains = True
    inside = "it fine-tunes a GPT of this package with a force head"

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Refuse a world that does not hold the Solar System, or too short sequences."""
        try:
            SolarForces(checkpoint.protocol)
        except ValueError as error:
            return f"{error}; take a model of paper or fixed, with 100 points or more"
        return None

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return measures per planet, and for all, of the model, its twin and the controls."""
        solar, steps = SolarForces(checkpoint.protocol), settings.steps or STEPS
        setting = {"steps": steps, "interval": INTERVAL}
        runs: dict[str, list[Array]] = {arm: [] for arm in ARMS}
        for arm, seed in pieces.progress([(a, s) for s in settings.seeds for a in ARMS]):
            config = {"arm": arm, "seed": seed}
            arrays = pieces.arrays(config, partial(tuned_vectors, checkpoint, steps, seed, arm))
            runs[arm].append(arrays["vector"])
        position, shown = solar.observed["state"][..., :2], {"asked": solar.others}
        shown |= {"position": position, "scaled": solar.scaled, "answer": runs["pretrained"][0]}
        shown["untrained"] = runs["untrained"][0]
        artefact.save_arrays(pieces.folder / "vectors.npz", shown, {})
        own = {"files": {"vectors": "vectors.npz"}}
        outcomes = [
            *_outcomes(solar, runs["pretrained"], setting, **own),
            *_outcomes(solar, runs["untrained"], setting, arm="untrained"),
        ]
        for name, (arm, vectors) in controls(solar).items():
            outcomes += _outcomes(solar, [vectors], {}, variant=name, arm=arm)
        return outcomes

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw the angles of all, the forces on the Earth and on the other planets."""
        columns = kept_vectors(results, out)
        others = [planet for planet in PLANETS if planet != "Earth"]
        paths = {name: out / "figures" / f"{self.name}_{name}.png" for name in CAPTIONS}
        if columns:
            vectors_on_orbits(columns, ["Earth"], 3.1, paths["earth"])
            vectors_on_orbits(columns, others, 2.3, paths["planets"])
        angles(results, paths["angles"])
        names = CAPTIONS if columns else ("angles",)
        return [Picture(CAPTIONS[name], [paths[name]]) for name in names]


def _outcomes(
    solar: SolarForces, runs: list[Array], setting: dict[str, Any], **case: Any
) -> list[Outcome]:
    """Return the outcomes of one predictor, from its vectors after each training."""
    measured = [solar.measured(vectors) for vectors in runs]
    if case.get("variant") == "towards the Sun":
        measured = [{k: v for k, v in each.items() if k != "r2"} for each in measured]
    outcomes = []
    for number, planet in enumerate([*PLANETS, "all"]):
        metrics = {}
        for metric in measured[0]:
            values = [
                float(each[metric].mean() if planet == "all" else each[metric][number])
                for each in measured
            ]
            enough = len(values) >= MINIMUM_SEEDS
            metrics[metric] = over_seeds(values) if enough else float(np.mean(values))
        outcomes.append(Outcome(metrics, setting={"planet": planet, **setting}, **case))
    return outcomes


def _cosine(a: Array, b: Array) -> Array:
    lengths = np.linalg.norm(a, axis=-1) * np.linalg.norm(b, axis=-1)
    return np.clip(np.sum(a * b, axis=-1) / lengths, -1, 1)


PROBE = ForceVector()
