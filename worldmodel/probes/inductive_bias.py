"""The inductive-bias probe: what a model extrapolates by when it learns new functions of the state.

Vafa et al. (2025), "What has a foundation model found?", arXiv 2507.06952, and their code,
keyonvafa/inductive-bias-probes at 69d294f. A checkpoint is fine-tuned on many small white-noise
datasets: 100 sequences, each with a random function of the state at two of the planet's rows. If
it carries the state, its answers elsewhere are functions of the state too.

Here every dataset labels the same 100 sequences, at rows and by a function of its own. The code
draws new sequences as well, and then averages the distances of pairs that have nothing but their
number in common; the definition averages over functions for given inputs.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from worldmodel.probes import Line
from worldmodel.probes._bias_figures import calibration, state_bias_plane
from worldmodel.probes._bias_histories import Array, Histories, histories
from worldmodel.probes._bias_measures import Calibration, extrapolation, state_bias
from worldmodel.probes._white_noise import (
    STEPS,
    draw_labels,
    draw_targets,
    extrapolate,
    linear_oracle,
    mlp_oracle,
)
from worldmodel.tasks import BACKBONE, SHAPE, OrbitTask

if TYPE_CHECKING:
    from worldmodel.probing import Settings, Store, Subject

SEQUENCES, POINTS = 100, 2000
ORACLES = ("linear", "mlp")
WHO = ("checkpoint", "untrained", *ORACLES)


class InductiveBias:
    """The probe."""

    name = "inductive_bias"
    about = "does a model that learns a new function of the state extrapolate by the state?"
    uses = ("n_sequences", "seeds", "steps", "datasets", "white_noise", "data_seed")
    trains = True
    captions: ClassVar[Mapping[str, str]] = {
        "calibration": (
            "Mean distance between a model's answers at two points against that of an oracle that "
            "is given the true state; both are averaged over white-noise datasets and over pairs "
            "in 20 bins, in units of the targets' standard deviation. Bands: 95% over datasets. "
            "On the 45-degree line a model extrapolates by the state. Control: the same model "
            "with random weights."
        ),
        "state_bias": (
            "R-IB: how well the sign of an answer predicts that at a point with the same state "
            "and another history (1: always, 0: chance). D-IB: how badly it predicts those at "
            "other states (1: chance, 0: the answer is constant). A function of the state is at "
            "the top right. Bars: 95% over datasets."
        ),
    }

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Refuse a world without labelled two-body systems, and who saw labels of those asked."""
        if subject.leaks:
            return subject.leaks
        if "force" not in subject.protocol.populations:
            return f"protocol {subject.protocol.name!r} has no two-body states; take fixed"
        return None

    def measure(self, subject: Subject, settings: Settings, store: Store) -> list[Line]:
        """Return the lines of the checkpoint, its untrained twin and the two oracles."""
        made = histories(subject.protocol, settings.data_seed, min(SEQUENCES, settings.n_sequences))
        steps = settings.steps or STEPS
        setting = {
            "target": settings.white_noise,
            "steps": steps,
            "interval": f"over {settings.datasets} datasets",
        }
        answered = self._answered(made, subject, settings, steps, store)
        return [
            {"name": name, "arm": arm, "setting": setting, **measured}
            for (name, arm), measured in zip(
                (
                    (subject.model, subject.row["arm"]),
                    (subject.model, "untrained"),
                    ("linear oracle", "oracle"),
                    ("MLP oracle", "oracle"),
                ),
                _measured(made, answered),
                strict=True,
            )
        ]

    def _answered(
        self, made: Histories, subject: Subject, settings: Settings, steps: int, store: Store
    ) -> list[dict[str, Array]]:
        """Return each dataset: ``targets`` and ``labels`` [N, K], and by ``WHO`` [2 N, K]."""
        starts = {
            "checkpoint": [subject.task],
            "untrained": [subject.untrained(seed) for seed in settings.seeds],
        }
        kept, datasets = _shared(store, subject), []
        weights = {who: [_weights(task) for task in tasks] for who, tasks in starts.items()}
        for number in store.progress(range(settings.datasets), "white-noise datasets"):
            noise = kept.arrays({"dataset": number}, partial(_noise, made, settings, number))
            dataset = dict(noise)
            for who, tasks in starts.items():
                turn = number % len(tasks)
                found = kept.arrays(
                    {"dataset": number, "start": weights[who][turn]},
                    partial(_tuned, tasks[turn], made, noise["labels"], steps, number),
                )
                dataset[who] = found["output"]
            datasets.append(dataset)
        return datasets

    def draw(self, lines: Sequence[Line], out: Path) -> dict[str, Path]:
        """Draw the calibration curves and the plane of R-IB and D-IB."""
        figures: dict[str, Callable[..., Any]] = {
            "calibration": calibration,
            "state_bias": state_bias_plane,
        }
        paths = {name: out / "figures" / f"{self.name}_{name}.png" for name in figures}
        for name, figure in figures.items():
            figure(lines, paths[name])
        return paths


def _shared(store: Store, subject: Subject) -> Store:
    """Return where answers are kept by what they depend on: the world and the weights.

    Checkpoints of one world share its datasets, and those of one shape and seed their twin.
    """
    config = {k: v for k, v in store.config.items() if k not in ("checkpoint", "named")}
    return type(store)(store.out, {**config, "world": dataclasses.asdict(subject.protocol)})


def _weights(task: OrbitTask) -> dict[str, Any]:
    """Return what tells one start of a fine-tuning from another."""
    digest = hashlib.sha256()
    for module in (task.embedding, task.gpt):
        for name, value in module.state_dict().items():
            digest.update(name.encode() + value.cpu().numpy().tobytes())
    return {
        **{name: task.hparams[name] for name in (*BACKBONE, *SHAPE)},
        "weights": digest.hexdigest(),
    }


def _noise(made: Histories, settings: Settings, number: int) -> dict[str, Array]:
    """Return the labels of a dataset and what the oracles make of them."""
    rng = np.random.default_rng((settings.seeds[0], number))
    targets = draw_targets(settings.white_noise, made.states[: made.n_systems], rng)
    labels = draw_labels(targets, rng)
    return {
        "targets": targets,
        "labels": labels,
        "linear": linear_oracle(made.states, labels),
        "mlp": mlp_oracle(made.states, labels, seed=number),
    }


def _tuned(
    start: OrbitTask, made: Histories, labels: Array, steps: int, seed: int
) -> dict[str, Array]:
    return {"output": extrapolate(start, made, labels, steps, seed)}


def _measured(made: Histories, datasets: Sequence[dict[str, Array]]) -> list[dict[str, Any]]:
    """Return the metrics and curves of everyone who answered, in the order of ``WHO``."""
    n, same = made.n_systems, made.same_state()
    some = np.random.default_rng(0).permutation(n * len(made.rows))[:POINTS]
    outputs = {who: [dataset[who] for dataset in datasets] for who in WHO}
    chosen = {who: [output[:n].ravel()[some] for output in outputs[who]] for who in WHO}
    scales = {oracle: Calibration(chosen[oracle]) for oracle in ORACLES}
    measured = []
    for who in WHO:
        metrics, curves = state_bias(outputs[who], same), {}
        for oracle, scale in scales.items():
            metrics[f"mae_{oracle}"], curves[oracle] = scale.of(chosen[who])
        metrics["r2"] = extrapolation(
            [output[:n] for output in outputs[who]],
            [dataset["targets"] for dataset in datasets],
            [np.isnan(dataset["labels"]) for dataset in datasets],
        )
        measured.append({"metrics": metrics, "curves": curves})
    return measured


PROBE = InductiveBias()
