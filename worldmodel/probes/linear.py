"""The linear probe: what a ridge regression reads from the hidden states of each layer.

The targets are the true state of the planet and what follows from it under the law of the world.
A probe shows what is there to be read, not what the model uses (Hewitt & Liang 2019, who also
give the control: labels that belong to other inputs). Untrained backbones mix the observed
coordinates too, so their twin is the second control.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from orbits import laws, motion
from orbits.best_observer import best_observer
from orbits.laws import reduced_mass
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome
from orbits.runs.figure import TRUTH, canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.result import Result
from orbits.runs.statistics import r_squared
from worldmodel.controls.ridge import fit_ridge
from worldmodel.data.orbits import OrbitSequences
from worldmodel.models.orbit import OrbitModel
from worldmodel.models.predictions import read_rows
from worldmodel.probes.base import Pieces, Probe
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.looks import Looks, bars, interval, once, world_of
from worldmodel.probes.quantities import READ_OUTS
from worldmodel.probes.settings import Settings

Array = npt.NDArray[np.float64]

AT_ONCE = 250
CAPTION = (
    "R2 of ridge read-outs on held-out sequences, by layer; 1 is perfect, 0 is no better than "
    "the mean. Bars: 95% over sequences. Dotted: what an observer with perfect knowledge makes "
    "of a whole sequence. Controls: the same model with random weights, and labels of other "
    "sequences."
)


def left_out(law: str) -> dict[str, str]:
    """Return the targets that do not exist under a law, with the reason."""
    reasons = {}
    if laws.get(law).potential is None:
        reasons["energy"] = f"law {law!r} has no closed-form potential"
    if law != motion.NEWTON:
        reasons["eccentricity"] = "Newton's law alone has Kepler's ellipses"
    return reasons


def targets(law: str, state: Array) -> dict[str, Array]:
    """Return the quantities to read out, by the names of ``READ_OUTS``, each [..., 1] or [..., 2].

    Energy (AU^2 / year^2) and angular momentum (AU^2 / year) are those of the relative motion per
    reduced mass. What :func:`left_out` names is missing.

    Args:
        law: Name of the force law.
        state: Position (AU) and velocity (AU / year) of the planet relative to its star, planet
            mass, star mass (solar masses), [..., 6].
    """
    position, velocity = state[..., :2], state[..., 2:4]
    x, y, vx, vy, m1, m2 = np.split(state, 6, axis=-1)
    r, speed = np.hypot(x, y), np.hypot(vx, vy)
    values = {
        "position": position,
        "velocity": velocity,
        "log_m1": np.log(m1),
        "log_m2": np.log(m2),
        "angular_momentum": x * vy - y * vx,
        "log_force": np.log(laws.get(law).magnitude(r, m1, m2)),
    }
    missing = left_out(law)
    if "energy" not in missing:
        potential = laws.get(law).potential_energy(r, m1, m2) / reduced_mass(m1, m2)
        values["energy"] = speed**2 / 2 + potential
    if "eccentricity" not in missing:
        # The eccentricity vector (Murray & Dermott 1999, Solar System Dynamics, section 2.4).
        mu = GRAVITATIONAL_CONSTANT * (m1 + m2)
        vector = (speed**2 / mu - 1 / r) * position - (x * vx + y * vy) / mu * velocity
        values["eccentricity"] = np.linalg.norm(vector, axis=-1, keepdims=True)
    return values


@torch.no_grad()
def layers(model: OrbitModel, batch: dict[str, Tensor]) -> list[Tensor]:
    """Return what :func:`layer_names` names, each [B, T, width].

    The residual stream after the embedding and after each block, and the final norm's output.
    """
    outputs: list[Tensor] = []
    stages: list[nn.Module] = [model.embedding, *model.gpt.blocks, model.gpt.norm]
    hooks = [
        stage.register_forward_hook(lambda _, inputs, output: outputs.append(output))
        for stage in stages
    ]
    try:
        model.eval().hidden(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return outputs


def layer_names(model: OrbitModel) -> list[str]:
    """Return the names of what :func:`layers` returns."""
    blocks = [f"block {number + 1}" for number in range(len(model.gpt.blocks))]
    return ["embedding", *blocks, "final norm"]


def read(
    model: OrbitModel, protocol: Protocol, settings: Settings, shuffled: bool = False
) -> dict[str, Array]:
    """Fit read-outs on labelled training sequences and test them on held-out ones.

    The rows are the planet's of the second half of a sequence, as for force heads.

    Args:
        model: The model whose hidden states are read.
        protocol: The world; its law makes the targets.
        settings: ``labels`` sequences to fit, ``n_sequences`` to test.
        shuffled: Give each training sequence the targets of another one.

    Returns:
        For each layer and target, ``layer/target``, the residual and the total sum of squares of
        each held-out sequence, [n_sequences, 2].
    """
    hidden, labels = _examples(model, protocol, settings.data_seed, "train", settings.labels)
    test_hidden, truth = _examples(
        model, protocol, settings.data_seed, "test", settings.n_sequences
    )
    if shuffled:
        order = np.random.default_rng(settings.seeds[0]).permutation(settings.labels)
        labels = {name: values[order] for name, values in labels.items()}
    stacked = _flat(np.concatenate(list(labels.values()), axis=-1))
    sums = {}
    for layer, name in enumerate(layer_names(model)):
        sequences = np.repeat(np.arange(settings.labels), hidden[layer].shape[1])
        ridge = fit_ridge(_flat(hidden[layer]), stacked, sequences)
        predicted = ridge.predict(_flat(test_hidden[layer]))
        column = 0
        for target, values in truth.items():
            width = values.shape[-1]
            read_out = predicted[:, column : column + width].reshape(values.shape)
            column += width
            sums[f"{name}/{target}"] = np.stack(
                [
                    np.sum((values - read_out) ** 2, axis=(1, 2)),
                    np.sum((values - values.mean(axis=(0, 1))) ** 2, axis=(1, 2)),
                ],
                axis=-1,
            )
    return sums


def ceiling(protocol: Protocol, settings: Settings) -> dict[str, Array]:
    """Return sums of squares, as :func:`read`, of masses and force as the best observer has them.

    It sees whole sequences and is not bound to be linear. A mass that it is told is left out.
    """
    indices = np.arange(settings.n_sequences)
    protocol = dataclasses.replace(protocol, as_published=False)  # as for the read-outs
    best = best_observer(protocol, settings.data_seed, "test", indices)
    state = protocol.batch(settings.data_seed, "test", indices, "force")["state"]
    rows = np.flatnonzero(np.isfinite(state[0, :, 0]))
    rows = rows[rows > state.shape[1] // 2]
    truth = targets(protocol.law, state[:, rows])
    masses = {"log_m1": best.log_m1, "log_m2": best.log_m2}
    predicted = {
        target: np.broadcast_to(mass[:, None], (len(mass), len(rows)))
        for target, mass in masses.items()
        if mass is not None
    }
    predicted["log_force"] = np.log(best.force[:, rows])
    sums = {}
    for target, values in predicted.items():
        true = truth[target][..., 0]
        errors = (values - true) ** 2, (true - true.mean()) ** 2
        sums[target] = np.stack([np.sum(error, axis=1) for error in errors], axis=-1)
    return sums


def _examples(
    model: OrbitModel, protocol: Protocol, seed: int, split: str, n: int
) -> tuple[list[Array], dict[str, Array]]:
    """Return hidden states by layer, [n, R, width], and targets by name, [n, R, 1 or 2]."""
    # Whatever defects a protocol publishes, what is read is the true state.
    world = dataclasses.replace(protocol, as_published=False)
    sequences = OrbitSequences(world, "force", split, seed, n)
    hidden, states = [], []
    for start in range(0, n, AT_ONCE):
        batch = sequences.__getitems__(list(range(start, min(start + AT_ONCE, n))))
        rows = read_rows(batch)[0]  # the same in every sequence
        hidden.append([layer[:, rows].double().numpy() for layer in layers(model, batch)])
        states.append(batch["state"][:, rows].double().numpy())
    by_layer = [np.concatenate(parts) for parts in zip(*hidden, strict=True)]
    return by_layer, targets(protocol.law, np.concatenate(states))


def _flat(values: Array) -> Array:
    return values.reshape(-1, values.shape[-1])


class Linear(Probe):
    """The linear probe."""

    name = "linear"
    about = "what of the state can a linear map read from each layer?"
    uses = ("n_sequences", "seeds", "labels", "data_seed")

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Refuse a world without labelled two-body systems."""
        if checkpoint.leaks:
            return checkpoint.leaks
        if "force" not in checkpoint.protocol.populations:
            return f"protocol {checkpoint.protocol.name!r} has no two-body states; take fixed"
        return None

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return R2 by layer of the checkpoint, its untrained twin and shuffled labels."""
        twin, protocol = checkpoint.untrained(settings.seeds[0]), checkpoint.protocol
        read_out = (
            (None, checkpoint.arm, checkpoint.model, False),
            (None, "untrained", twin, False),
            (f"shuffled labels, {checkpoint.variant}", "control", checkpoint.model, True),
        )
        reasons = [f"{target}: {reason}" for target, reason in left_out(protocol.law).items()]
        missing = {"left_out": "; ".join(reasons)} if reasons else {}
        outcomes = []
        for name, arm, model, shuffled in pieces.progress(read_out):
            sums = pieces.arrays({"arm": arm}, partial(read, model, protocol, settings, shuffled))
            for layer in layer_names(model):
                metrics = {
                    f"r2_{target}": r_squared(*sums[f"{layer}/{target}"].T)
                    for target in READ_OUTS
                    if f"{layer}/{target}" in sums
                }
                setting = {"layer": layer, **missing}
                outcomes.append(Outcome(metrics, variant=name, arm=arm, setting=setting))
        sums = pieces.arrays({"arm": "ceiling"}, partial(ceiling, protocol, settings))
        best = {f"r2_{target}": r_squared(*values.T) for target, values in sums.items()}
        setting = {"layer": "-", **missing}
        return [*outcomes, Outcome(best, variant="best observer", arm="ceiling", setting=setting)]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw R2 by layer, one panel per target."""
        curves: dict[tuple[object, ...], list[Result]] = {}
        for result in results:
            if result.case.arm != "ceiling":
                key = (result.case.variant, result.case.arm, *result.details["checkpoint"].values())
                curves.setdefault(key, []).append(result)
        best = [result for result in results if result.case.arm == "ceiling"]
        first = [curve[0] for curve in curves.values()]
        looks = Looks(first)
        deepest = max(curves.values(), key=len)
        stages = [result.case.setting["layer"] for result in deepest]
        names = once([looks.name(result) for result in first])
        shown = [t for t in READ_OUTS if any(f"r2_{t}" in result.metrics for result in results)]
        with canvas(11, 5.8, nrows=2, ncols=4, sharex=True, sharey=True) as (figure, axes):
            for axis, target in zip(axes.flat, shown, strict=False):
                metric = f"r2_{target}"
                for curve, name in zip(curves.values(), names, strict=True):
                    there = [result for result in curve if metric in result.metrics]
                    spans = np.array([interval(result, metric) for result in there]).reshape(-1, 3)
                    places = [stages.index(result.case.setting["layer"]) for result in there]
                    look = {**looks.style(curve[0]), "capsize": 2, "label": name}
                    axis.errorbar(places, spans[:, 0], yerr=bars(spans), **look)
                for result in best:
                    if metric in result.metrics:
                        axis.axhline(result.metrics[metric].value, color=TRUTH, lw=1, ls=":")
                axis.set_title(READ_OUTS[target])
                axis.axhline(0, color="#999999", lw=0.8)
                axis.set_xticks(range(len(stages)), stages, rotation=35)
            for axis in axes.flat[len(shown) :]:
                axis.set_visible(False)
            # A worse prediction than the mean is no information, however bad.
            axes[0, 0].set_ylim(-0.15, 1.03)
            for axis in axes[:, 0]:
                axis.set_ylabel("R2 on held-out sequences")
            legend(figure, world_of(results), above=True)
            path = save_figure(figure, out / "figures" / f"{self.name}_r2.png")
        return [Picture(CAPTION, [path])]


PROBE = Linear()
