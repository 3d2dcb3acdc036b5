"""The linear probe: what a ridge regression reads from the hidden states of each layer.

The targets are the true state of the planet and what follows from it under the law of the world.
A probe shows what is there to be read, not what the model uses (Hewitt & Liang 2019, who also
give the control: labels that belong to other inputs). Untrained backbones mix the observed
coordinates too, so their twin is the second control.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from orbits import laws, motion, pictures
from orbits.best_observer import best_observer
from orbits.laws import reduced_mass
from orbits.laws.newton import GRAVITATIONAL_CONSTANT
from orbits.protocols import Protocol
from worldmodel.controls.ridge import fit_ridge
from worldmodel.data import OrbitSequences
from worldmodel.intervals import r_squared
from worldmodel.legend import legend
from worldmodel.palette import TRUTH
from worldmodel.probes import Line
from worldmodel.probes._style import Looks, bare, bars, once, world_of
from worldmodel.tasks import OrbitTask, read_rows

if TYPE_CHECKING:
    from worldmodel.probing import Settings, Store, Subject

Array = npt.NDArray[np.float64]

AT_ONCE = 250
TITLES = {
    "position": "position",
    "velocity": "velocity",
    "log_m1": "log planet mass",
    "log_m2": "log star mass",
    "energy": "specific energy",
    "angular_momentum": "specific angular momentum",
    "eccentricity": "eccentricity",
    "log_force": "log force",
}
CAPTIONS = {
    "r2": (
        "R2 of ridge read-outs on held-out sequences, by layer; 1 is perfect, 0 is no better than "
        "the mean. Bars: 95% over sequences. Dotted: what an observer with perfect knowledge makes "
        "of a whole sequence. Controls: the same model with random weights, and labels of other "
        "sequences."
    ),
}


def left_out(law: str) -> dict[str, str]:
    """Return the targets that do not exist under a law, with the reason."""
    reasons = {}
    if laws.get(law).potential is None:
        reasons["energy"] = f"law {law!r} has no closed-form potential"
    if law != motion.NEWTON:
        reasons["eccentricity"] = "Newton's law alone has Kepler's ellipses"
    return reasons


def targets(law: str, state: Array) -> dict[str, Array]:
    """Return what the probe asks for, by the names of ``TITLES``, each [..., 1] or [..., 2].

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
    found = {
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
        found["energy"] = speed**2 / 2 + potential
    if "eccentricity" not in missing:
        # The eccentricity vector (Murray & Dermott 1999, Solar System Dynamics, section 2.4).
        mu = GRAVITATIONAL_CONSTANT * (m1 + m2)
        vector = (speed**2 / mu - 1 / r) * position - (x * vx + y * vy) / mu * velocity
        found["eccentricity"] = np.linalg.norm(vector, axis=-1, keepdims=True)
    return found


@torch.no_grad()
def layers(task: OrbitTask, batch: dict[str, Tensor]) -> list[Tensor]:
    """Return what :func:`layer_names` names, each [B, T, width].

    The residual stream after the embedding and after each block, and the final norm's output.
    """
    seen: list[Tensor] = []
    stages: list[nn.Module] = [task.embedding, *task.gpt.blocks, task.gpt.norm]
    hooks = [
        stage.register_forward_hook(lambda _, inputs, output: seen.append(output))
        for stage in stages
    ]
    try:
        task.eval().hidden(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def layer_names(task: OrbitTask) -> list[str]:
    """Return the names of what :func:`layers` returns."""
    blocks = [f"block {number + 1}" for number in range(len(task.gpt.blocks))]
    return ["embedding", *blocks, "final norm"]


def read(
    task: OrbitTask, protocol: Protocol, settings: Settings, shuffled: bool = False
) -> dict[str, Array]:
    """Fit read-outs on labelled training sequences and test them on held-out ones.

    The rows are the planet's of the second half of a sequence, as for every force that is asked.

    Args:
        task: Whose hidden states are read.
        protocol: The world; its law makes the targets.
        settings: ``labels`` sequences to fit, ``n_sequences`` to test.
        shuffled: Give each training sequence the targets of another one.

    Returns:
        For each layer and target, ``layer/target``, the residual and the total sum of squares of
        each held-out sequence, [n_sequences, 2].
    """
    known, wanted = _examples(task, protocol, settings.data_seed, "train", settings.labels)
    given, truth = _examples(task, protocol, settings.data_seed, "test", settings.n_sequences)
    if shuffled:
        order = np.random.default_rng(settings.seeds[0]).permutation(settings.labels)
        wanted = {name: values[order] for name, values in wanted.items()}
    stacked = _flat(np.concatenate(list(wanted.values()), axis=-1))
    sums = {}
    for layer, name in enumerate(layer_names(task)):
        sequences = np.repeat(np.arange(settings.labels), known[layer].shape[1])
        model = fit_ridge(_flat(known[layer]), stacked, sequences)
        answers = model.predict(_flat(given[layer]))
        column = 0
        for target, values in truth.items():
            width = values.shape[-1]
            found = answers[:, column : column + width].reshape(values.shape)
            column += width
            sums[f"{name}/{target}"] = np.stack(
                [
                    np.sum((values - found) ** 2, axis=(1, 2)),
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
    protocol = dataclasses.replace(protocol, as_published=False)  # as the read-outs are asked
    answer = best_observer(protocol, settings.data_seed, "test", indices)
    state = protocol.batch(settings.data_seed, "test", indices, "force")["state"]
    rows = np.flatnonzero(np.isfinite(state[0, :, 0]))
    rows = rows[rows > state.shape[1] // 2]
    truth = targets(protocol.law, state[:, rows])
    found = {"log_m1": answer.log_m1, "log_m2": answer.log_m2}
    answers = {
        target: np.broadcast_to(mass[:, None], (len(mass), len(rows)))
        for target, mass in found.items()
        if mass is not None
    }
    answers["log_force"] = np.log(answer.force[:, rows])
    sums = {}
    for target, values in answers.items():
        true = truth[target][..., 0]
        errors = (values - true) ** 2, (true - true.mean()) ** 2
        sums[target] = np.stack([np.sum(error, axis=1) for error in errors], axis=-1)
    return sums


def _examples(
    task: OrbitTask, protocol: Protocol, seed: int, split: str, n: int
) -> tuple[list[Array], dict[str, Array]]:
    """Return hidden states by layer, [n, R, width], and targets by name, [n, R, 1 or 2]."""
    # Whatever defects a protocol publishes, what is read is the true state.
    world = dataclasses.replace(protocol, as_published=False)
    sequences = OrbitSequences(world, "force", split, seed, n)
    hidden, states = [], []
    for start in range(0, n, AT_ONCE):
        batch = sequences.__getitems__(list(range(start, min(start + AT_ONCE, n))))
        rows = read_rows(batch)[0]  # the same in every sequence
        hidden.append([layer[:, rows].double().numpy() for layer in layers(task, batch)])
        states.append(batch["state"][:, rows].double().numpy())
    by_layer = [np.concatenate(parts) for parts in zip(*hidden, strict=True)]
    return by_layer, targets(protocol.law, np.concatenate(states))


def _flat(values: Array) -> Array:
    return values.reshape(-1, values.shape[-1])


class Linear:
    """The probe."""

    name = "linear"
    about = "what of the state can a linear map read from each layer?"
    uses = ("n_sequences", "seeds", "labels", "data_seed")
    trains = False
    captions: Mapping[str, str] = CAPTIONS

    def refusal(self, subject: Subject, settings: Settings) -> str | None:
        """Refuse a world without labelled two-body systems."""
        if subject.leaks:
            return subject.leaks
        if "force" not in subject.protocol.populations:
            return f"protocol {subject.protocol.name!r} has no two-body states; take fixed"
        return None

    def measure(self, subject: Subject, settings: Settings, store: Store) -> list[Line]:
        """Return a line per layer for the checkpoint, its untrained twin and shuffled labels."""
        twin, protocol = subject.untrained(settings.seeds[0]), subject.protocol
        asked = (
            (subject.model, subject.row["arm"], subject.task, False),
            (subject.model, "untrained", twin, False),
            (f"shuffled labels, {subject.model}", "control", subject.task, True),
        )
        reasons = [f"{target}: {reason}" for target, reason in left_out(protocol.law).items()]
        missing = {"left_out": "; ".join(reasons)} if reasons else {}
        lines = []
        for name, arm, task, shuffled in store.progress(asked, "read-outs"):
            sums = store.arrays({"arm": arm}, partial(read, task, protocol, settings, shuffled))
            for layer in layer_names(task):
                metrics = {
                    f"r2_{target}": r_squared(*sums[f"{layer}/{target}"].T)
                    for target in TITLES
                    if f"{layer}/{target}" in sums
                }
                line = {"name": name, "arm": arm, "setting": {"layer": layer, **missing}}
                lines.append({**line, "metrics": metrics})
        sums = store.arrays({"arm": "ceiling"}, partial(ceiling, protocol, settings))
        best = {f"r2_{target}": r_squared(*values.T) for target, values in sums.items()}
        line = {"name": "best observer", "arm": "ceiling", "setting": {"layer": "-", **missing}}
        return [*lines, {**line, "metrics": best}]

    def draw(self, lines: Sequence[Line], out: Path) -> dict[str, Path]:
        """Draw R2 by layer, one panel per target."""
        path = out / "figures" / f"{self.name}_r2.png"
        curves: dict[tuple[Any, ...], list[Line]] = {}
        for line in lines:
            if line["row"]["arm"] == "ceiling":
                continue
            curves.setdefault((*line["row"].values(), *line["subject"].values()), []).append(line)
        best = [line for line in lines if line["row"]["arm"] == "ceiling"]
        first = [curve[0] for curve in curves.values()]
        looks = Looks(first)
        deepest = max(curves.values(), key=len)
        stages = [line["setting"]["layer"] for line in deepest]
        texts = once([looks.who(line) for line in first])
        asked = [t for t in TITLES if any(f"r2_{t}" in line["metrics"] for line in lines)]
        figure, axes = plt.subplots(
            2, 4, figsize=(11, 5.8), sharex=True, sharey=True, layout="constrained"
        )
        for axis, target in zip(axes.flat, asked, strict=False):
            for curve, label in zip(curves.values(), texts, strict=True):
                shown = [line for line in curve if f"r2_{target}" in line["metrics"]]
                spans = np.array([line["metrics"][f"r2_{target}"] for line in shown]).reshape(-1, 3)
                axis.errorbar(
                    [stages.index(line["setting"]["layer"]) for line in shown],
                    spans[:, 0],
                    yerr=bars(spans),
                    ms=4,
                    lw=1.4,
                    capsize=2,
                    label=label,
                    **looks.style(curve[0]),
                )
            for line in best:
                if f"r2_{target}" in line["metrics"]:
                    height = line["metrics"][f"r2_{target}"][0]
                    axis.axhline(height, color=TRUTH, lw=1, ls=":")
            axis.set_title(TITLES[target], fontsize=9)
            axis.axhline(0, color="#999999", lw=0.8)
            axis.set_xticks(range(len(stages)), stages, rotation=35)
        for axis in axes.flat[len(asked) :]:
            axis.set_visible(False)
        # A worse answer than the mean is no information, however bad.
        axes[0, 0].set_ylim(-0.15, 1.03)
        legend(figure, world_of(lines), above=True)
        for axis in axes[:, 0]:
            axis.set_ylabel("R2 on held-out sequences")
        return {"r2": pictures.save(bare(figure), path)}


PROBE = Linear()
