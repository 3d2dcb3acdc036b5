"""The inductive-bias probe: how a model extrapolates when it learns new functions of the state.

Vafa et al. (2025), "What has a foundation model found?", arXiv 2507.06952, and their code,
keyonvafa/inductive-bias-probes at 69d294f. A checkpoint is fine-tuned on many small white-noise
datasets: 100 sequences, each with a random function of the state at two of the planet's rows. If
it carries the state, its outputs elsewhere are functions of the state too.

Here every dataset labels the same 100 sequences, at rows and by a function of its own. The code
draws new sequences as well, and then averages the distances of pairs that have nothing but their
number in common; the definition averages over functions for given inputs.

The state is places, velocities and masses, and of these the places are what a model is shown. So a
pooled figure hides what was learnt: each component is reported by itself too, at other rows of the
labelled sequences and at systems without labels (:mod:`worldmodel.probes.bias.components`).

Checkpoints of one world share the datasets, and those of one shape and seed the untrained twin:
both are cells of their own. A model from outside keeps its weights, since nothing is known of its
training: ridge regression on its last hidden states learns the functions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import lightning
import numpy as np

from orbits import protocols
from orbits.runs import artefact
from orbits.runs.cell import Cell, Outcome, Progress
from orbits.runs.page import Picture
from orbits.runs.result import Case, Result
from worldmodel.models.orbit import NextTokenModel, OrbitModel
from worldmodel.probes.base import Pieces, Probe, device, without_states
from worldmodel.probes.bias.components import TOGETHER, by_component, coefficients
from worldmodel.probes.bias.figures import calibration, carried, state_bias_dots
from worldmodel.probes.bias.histories import Array, Histories, histories
from worldmodel.probes.bias.measures import Calibration, extrapolation, state_bias
from worldmodel.probes.bias.white_noise import (
    STEPS,
    draw_labels,
    draw_targets,
    extrapolate,
    hidden_read_out,
    linear_filter,
    linear_oracle,
    mlp_oracle,
    nearest,
)
from worldmodel.probes.checkpoint import OUTSIDE, Checkpoint
from worldmodel.probes.read_out import hidden_states
from worldmodel.probes.settings import Settings

SEQUENCES, POINTS = 100, 2000
FRESH_SYSTEMS = 4
"""Systems without labels per system with some; they cost no training."""
ORACLES = ("linear", "mlp")
REFERENCES = {
    "linear": ("linear oracle", "oracle"),
    "mlp": ("MLP oracle", "oracle"),
    "nearest": ("2-NN on the true state", "control"),
    "filter": ("linear filter", "control"),
}
"""Variant and arm of each reference, by its name in the file of the datasets."""
LABELLED, FRESH = "labelled", "fresh"
"""Sequences with labels at two rows, of which the other rows count; sequences without labels."""
NOISE, OUTPUTS = "noise.npz", "outputs.npz"
READ_OUT = "ridge regression on its last hidden states"
CAPTIONS = {
    "state_bias": (
        "R-IB: how well the sign of an output predicts that at a point with the same state "
        "and another history (1: always, 0: chance), a dot for each training; bars: 95% over "
        "datasets. D-IB, how badly it predicts those at other states, is in the table."
    ),
    "calibration": (
        "Mean distance between a model's outputs at two points against that of an oracle that "
        "is given the true state (the table has two, of which one is drawn); both are averaged "
        "over white-noise datasets and over pairs in 20 bins, in units of the targets' standard "
        "deviation. Bands: 95% over datasets. On the 45-degree line a model extrapolates by the "
        "state. Control: the same model with random weights."
    ),
    "components": (
        "How much of each component of the state is in a model's new functions: the slope of its "
        "coefficients on those of the targets (1: the function is carried, 0: the model "
        "knows nothing of the component). Above: other rows of the sequences whose labels it saw, "
        "where a mass can be remembered with the sequence. Below: systems without labels. Bars: "
        "95% over trainings where there are three, else over datasets. Controls: random weights, a "
        "look-up table of the true state, a linear filter of the last places."
    ),
}
OF_OUTSIDE = f" A model from outside keeps its weights: {READ_OUT} learns the functions."


class InductiveBias(Probe):
    """The inductive-bias probe."""

    name = "inductive_bias"
    about = "does a model that learns a new function of the state extrapolate by the state?"
    uses = ("n_sequences", "seeds", "steps", "datasets", "white_noise", "data_seed")
    trains = True
    asks = ("hidden",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Refuse a world without labelled two-body systems, and labels of the same sequences."""
        return without_states(checkpoint)

    def needs(self, checkpoint: Checkpoint, settings: Settings) -> dict[str, Cell]:
        """Return the datasets and the untrained twin's outputs on them."""
        noise = noise_cell(checkpoint, settings)
        if checkpoint.arm == OUTSIDE:
            return {"noise": noise}
        return {"noise": noise, "untrained": twin_cell(checkpoint, settings, noise)}

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return the measures of the checkpoint, its untrained twin and the references."""
        systems = histories(**_sequences(checkpoint, settings))
        steps = settings.steps or STEPS
        noise = pieces.needed("noise", NOISE)
        labels = noise["labels"]
        learner: dict[str, Any] = {"steps": steps}
        if checkpoint.arm == OUTSIDE:
            learner = {"learner": READ_OUT}
            models = {"checkpoint": checkpoint.model, **checkpoint.twins(settings.seeds[0])}
            outputs = {
                name: hidden_read_out(hidden_states(model), systems, labels)
                for name, model in models.items()
            }
        else:
            outputs = {
                "checkpoint": tuned([checkpoint.model], systems, labels, steps, pieces),
                "untrained": pieces.needed("untrained", OUTPUTS)["output"],
            }
        outputs |= {name: noise[name] for name in REFERENCES}
        setting = {
            "target": settings.white_noise,
            **learner,
            "interval": f"over {settings.datasets} datasets",
        }
        names = {"checkpoint": (None, None), "untrained": (None, "untrained"), **REFERENCES}
        names = {name: names[name] for name in outputs}
        measured = _measured(systems, noise["targets"], labels, outputs)
        outcomes = [
            Outcome(metrics, {"curves": curves}, variant=variant, arm=arm, setting=setting)
            for (variant, arm), (metrics, curves) in zip(names.values(), measured, strict=True)
        ]
        if settings.white_noise != "random":  # bits are no sum over components
            for part, where in _by_component(systems, noise["targets"], labels, outputs):
                outcomes += [
                    Outcome(where[name], variant=variant, arm=arm, setting={**setting, **part})
                    for name, (variant, arm) in names.items()
                ]
        return outcomes

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw R-IB, the calibration curves and the components."""
        pooled = [result for result in results if "r_ib" in result.metrics]
        single = [result for result in results if "slope" in result.metrics]
        read = any("learner" in result.case.setting for result in results)
        figures: dict[str, tuple[Callable[..., Path], list[Result]]] = {
            "state_bias": (state_bias_dots, pooled),
            "calibration": (calibration, pooled),
            "components": (carried, single),
        }
        pictures = []
        for name, (figure, shown) in figures.items():
            if shown:
                path = figure(shown, out / "figures" / f"{self.name}_{name}.png")
                pictures.append(Picture(CAPTIONS[name] + OF_OUTSIDE * read, [path]))
        return pictures


def noise_cell(checkpoint: Checkpoint, settings: Settings) -> Cell:
    """Return the cell that draws the datasets of a world and lets the oracles extrapolate them."""
    law, protocol = checkpoint.law, checkpoint.protocol.name
    arguments = {
        "world": checkpoint.world,
        "sequences": _sequences_arguments(settings),
        "white_noise": settings.white_noise,
        "datasets": settings.datasets,
        "seed": settings.seeds[0],
    }
    case = Case("probe", "white noise", law=law, protocol=protocol)
    return Cell(draw_noise, case, arguments)


def draw_noise(
    world: Mapping[str, Any],
    sequences: Mapping[str, int],
    white_noise: str,
    datasets: int,
    seed: int,
    folder: Path,
    scratch: Path,
    progress: Progress,
) -> Outcome:
    """Write targets and labels [D, N, K], and the references' outputs [D, M, K]; see the cell."""
    systems = histories(_protocol(world), **sequences)
    pieces = Pieces(folder, scratch, progress)
    noise = [
        pieces.arrays({"dataset": number}, partial(_noise, systems, white_noise, seed, number))
        for number in pieces.progress(range(datasets))
    ]
    artefact.save_arrays(folder / NOISE, _stacked(noise), {})
    return Outcome(files={"noise": NOISE})


def twin_cell(checkpoint: Checkpoint, settings: Settings, noise: Cell) -> Cell:
    """Return the cell that fine-tunes a checkpoint's untrained twins on all datasets."""
    arguments = {
        "world": checkpoint.world,
        "sequences": _sequences_arguments(settings),
        "architecture": checkpoint.architecture,
        "seeds": [checkpoint.control_seed(seed) for seed in settings.seeds],
        "steps": settings.steps or STEPS,
    }
    case = Case(
        "probe",
        "training",
        variant=checkpoint.own_name,
        arm="untrained",
        seed=checkpoint.seed,
        law=checkpoint.law,
        protocol=checkpoint.protocol.name,
    )
    return Cell(tune_twins, case, arguments, needs={"noise": noise})


def tune_twins(
    world: Mapping[str, Any],
    sequences: Mapping[str, int],
    architecture: Mapping[str, Any],
    seeds: Sequence[int],
    steps: int,
    noise: Path,
    folder: Path,
    scratch: Path,
    progress: Progress,
) -> Outcome:
    """Write the outputs [D, M, K] of untrained models, which take turns; see the cell."""
    systems = histories(_protocol(world), **sequences)
    labels = artefact.load_arrays(noise / NOISE)[0]["labels"]
    starts = [untrained(architecture, seed) for seed in seeds]
    output = tuned(starts, systems, labels, steps, Pieces(folder, scratch, progress))
    artefact.save_arrays(folder / OUTPUTS, {"output": output}, {})
    return Outcome(files={"outputs": OUTPUTS}, device=device(trains=True))


def untrained(architecture: Mapping[str, Any], seed: int) -> OrbitModel:
    """Return an embedding and backbone with the random weights of an untrained twin."""
    lightning.seed_everything(seed, verbose=False)
    return NextTokenModel(**architecture).eval()


def tuned(
    starts: Sequence[OrbitModel], systems: Histories, labels: Array, steps: int, pieces: Pieces
) -> Array:
    """Return outputs [D, M, K] after fine-tuning on each dataset; starts take turns."""

    def tune(number: int) -> dict[str, Array]:
        start = starts[number % len(starts)]
        return {"output": extrapolate(start, systems, labels[number], steps, number)}

    outputs = [
        pieces.arrays({"tuned on": number}, partial(tune, number))
        for number in pieces.progress(range(len(labels)))
    ]
    return _stacked(outputs)["output"]


def _sequences_arguments(settings: Settings) -> dict[str, int]:
    n = min(SEQUENCES, settings.n_sequences)
    return {"seed": settings.data_seed, "n_systems": n, "n_fresh": FRESH_SYSTEMS * n}


def _sequences(checkpoint: Checkpoint, settings: Settings) -> dict[str, Any]:
    return {"protocol": checkpoint.protocol, **_sequences_arguments(settings)}


def _protocol(world: Mapping[str, Any]) -> protocols.Protocol:
    return protocols.get(world["protocol"], world["protocol_args"])


def _stacked(datasets: Sequence[Mapping[str, Array]]) -> dict[str, Array]:
    return {name: np.stack([each[name] for each in datasets]) for name in datasets[0]}


def _noise(systems: Histories, white_noise: str, seed: int, number: int) -> dict[str, Array]:
    """Return the labels of a dataset and the references' outputs."""
    rng = np.random.default_rng((seed, number))
    targets = draw_targets(white_noise, systems.states[: systems.n_systems], rng)
    labels = draw_labels(targets, rng)
    return {
        "targets": targets,
        "labels": labels,
        "linear": linear_oracle(systems.states, labels),
        "mlp": mlp_oracle(systems.states, labels, seed=number),
        "nearest": nearest(systems.states, labels),
        "filter": linear_filter(systems, labels),
    }


def _measured(
    systems: Histories, targets: Array, labels: Array, outputs: Mapping[str, Array]
) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """Return the metrics and curves of all predictors, in the order of their outputs."""
    n, same = systems.n_systems, systems.same_state()
    some = np.random.default_rng(0).permutation(n * len(systems.rows))[:POINTS]
    samples = {name: [x[:n].ravel()[some] for x in output] for name, output in outputs.items()}
    scales = {oracle: Calibration(samples[oracle]) for oracle in ORACLES}
    measured = []
    for name in outputs:
        twice = [output[systems.twice] for output in outputs[name]]
        metrics, curves = state_bias(twice, same), {}
        for oracle, scale in scales.items():
            metrics[f"mae_{oracle}"], curves[oracle] = scale.of(samples[name])
        metrics["r2"] = extrapolation(
            [output[:n] for output in outputs[name]], list(targets), list(np.isnan(labels))
        )
        measured.append((metrics, curves))
    return measured


def _by_component(
    systems: Histories, targets: Array, labels: Array, outputs: Mapping[str, Array]
) -> Iterator[tuple[dict[str, str], dict[str, dict[str, Any]]]]:
    """Yield components and sequences, as part of a setting, with the metrics of all predictors.

    Beside the components there is the R2 of outputs, all components together.
    """
    n = systems.n_systems
    everywhere = np.ones(targets.shape, bool)
    true = coefficients(systems.states[:n], targets, everywhere)
    middle = targets.mean(axis=(1, 2), keepdims=True)  # standardised states have mean 0
    fresh = np.einsum("nkc,dc->dnk", systems.states[systems.fresh], true) + middle
    places = {
        LABELLED: (slice(0, n), targets, np.isnan(labels)),
        FRESH: (systems.fresh, fresh, np.ones(fresh.shape, bool)),
    }
    for where, (rows, wanted, counts) in places.items():
        found = {name: np.asarray(output)[:, rows] for name, output in outputs.items()}
        pooled = {
            name: {"r2": extrapolation(list(output), list(wanted), list(counts))}
            for name, output in found.items()
        }
        parts = {
            name: by_component(true, coefficients(systems.states[rows], output, counts))
            for name, output in found.items()
        }
        if where == FRESH:  # elsewhere it is in the first outcomes
            yield {"component": TOGETHER, "sequences": where}, pooled
        for part in next(iter(parts.values())):
            metrics = {name: parts[name][part] for name in outputs}
            yield {"component": part, "sequences": where}, metrics


PROBE = InductiveBias()
