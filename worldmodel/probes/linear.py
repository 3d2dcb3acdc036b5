"""The linear probe: ridge regressions on the hidden states of each layer.

The targets are the true state of the planet and what follows from it under the law of the world.
A probe shows what is there to be read, not what the model uses (Hewitt & Liang 2019, who also
give the control: labels that belong to other inputs). Untrained backbones mix the observed
coordinates too, so their twin is the second control; the third reads the exact places of the last
rows and the time step, without a model.
"""

from __future__ import annotations

import dataclasses
import textwrap
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from orbits.best_observer import best_observer
from orbits.labels import first_asked
from orbits.protocols import Protocol
from orbits.runs.cell import Outcome
from orbits.runs.figure import canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import PALE, TRUTH
from orbits.runs.result import Result
from orbits.runs.statistics import r_squared
from worldmodel.probes.base import Pieces, Probe, without_states
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.looks import Looks, bars, together, world_of
from worldmodel.probes.orbit_targets import Array, left_out, targets
from worldmodel.probes.quantities import READ_OUTS
from worldmodel.probes.read_out import hidden_states, read, recent_name, recent_places
from worldmodel.probes.settings import Settings

RECENT = 24
"""Rows whose exact places are read as a control: twelve steps of both bodies."""
NO_LAYER = "-"
LAYERLESS = (NO_LAYER, recent_name(RECENT))
FLAT = {"ceiling": ":", "control": "--"}
"""Line styles of controls, which have no layers."""
COLUMNS, SHARED = 4, {"sharex": True, "sharey": True, "squeeze": False}
TITLE_LETTERS = 26
"""Letters of a line of a panel's title."""
CAPTION = (
    "R² of ridge read-outs on held-out sequences, by layer; 1 is perfect, 0 is no better than "
    "the mean. Bars: 95% over trainings where there are three, else over sequences. Dotted: what "
    "an observer with perfect knowledge makes of a whole sequence; dashed: the exact places of the "
    "last rows and the time step, without a model. Controls: the same model with random weights, "
    "and labels of other sequences."
)


def ceiling(protocol: Protocol, settings: Settings) -> dict[str, Array]:
    """Return sums of squares, as read-outs have them, of the best observer's masses and force.

    It sees whole sequences and is not bound to be linear. A mass that it is told is left out.
    """
    indices = np.arange(settings.n_sequences)
    protocol = dataclasses.replace(protocol, as_published=False)  # as for the read-outs
    best = best_observer(protocol, settings.data_seed, "test", indices)
    state = protocol.batch(settings.data_seed, "test", indices, "force")["state"]
    rows = np.flatnonzero(np.isfinite(state[0, :, 0]))
    rows = rows[rows >= first_asked(state.shape[1])]
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


class Linear(Probe):
    """The linear probe."""

    name = "linear"
    about = "what of the state can a linear map read from each layer?"
    uses = ("n_sequences", "seeds", "labels", "data_seed")
    asks = ("hidden",)

    def refusal(self, checkpoint: Checkpoint, settings: Settings) -> str | None:
        """Refuse a world without labelled two-body systems."""
        return without_states(checkpoint)

    def measure(self, checkpoint: Checkpoint, settings: Settings, pieces: Pieces) -> list[Outcome]:
        """Return R2 by layer of the checkpoint and of its controls."""
        twins, protocol = checkpoint.twins(settings.seeds[0]), checkpoint.protocol
        model, places = hidden_states(checkpoint.model), recent_places(protocol.tokens, RECENT)
        read_out = (
            (None, checkpoint.arm, model, False),
            *((None, arm, hidden_states(twin), False) for arm, twin in twins.items()),
            (f"shuffled labels, {checkpoint.variant}", "control", model, True),
            (recent_name(RECENT), "control", places, False),
        )
        reasons = [f"{target}: {reason}" for target, reason in left_out(protocol.law).items()]
        missing = {"left_out": "; ".join(reasons)} if reasons else {}
        outcomes = []
        for name, arm, features, shuffled in pieces.progress(read_out):
            fit = partial(read, features, protocol, settings, shuffled)
            sums = pieces.arrays({"arm": arm, "name": name}, fit)
            for layer in dict.fromkeys(place.partition("/")[0] for place in sums):
                metrics = {
                    f"r2_{target}": r_squared(*sums[f"{layer}/{target}"].T)
                    for target in READ_OUTS
                    if f"{layer}/{target}" in sums
                }
                setting = {"layer": layer, **missing}
                outcomes.append(Outcome(metrics, variant=name, arm=arm, setting=setting))
        sums = pieces.arrays({"arm": "ceiling"}, partial(ceiling, protocol, settings))
        best = {f"r2_{target}": r_squared(*values.T) for target, values in sums.items()}
        setting = {"layer": NO_LAYER, **missing}
        return [*outcomes, Outcome(best, variant="best observer", arm="ceiling", setting=setting)]

    def draw(self, results: Sequence[Result], out: Path) -> list[Picture]:
        """Draw R2 by layer, one panel per target; seeds of one model together."""
        layered = [x for x in results if x.case.setting["layer"] not in LAYERLESS]
        flat = [result for result in results if result.case.setting["layer"] in LAYERLESS]
        looks = Looks(layered)
        curves: dict[str, dict[str, list[Result]]] = {}
        for result in layered:
            curve = curves.setdefault(looks.name(result), {})
            curve.setdefault(str(result.case.setting["layer"]), []).append(result)
        longest = max(curves.values(), key=len)
        stages = list(longest)
        shown = [t for t in READ_OUTS if any(f"r2_{t}" in result.metrics for result in results)]
        n_rows = -(-len(shown) // COLUMNS)
        with canvas(8.6, 0.8 + 2.0 * n_rows, nrows=n_rows, ncols=COLUMNS, **SHARED) as (
            figure,
            axes,
        ):
            for axis, target in zip(axes.flat, shown, strict=False):
                metric = f"r2_{target}"
                for name, curve in curves.items():
                    there = {k: [x for x in v if metric in x.metrics] for k, v in curve.items()}
                    groups = [(stages.index(stage), mine) for stage, mine in there.items() if mine]
                    if not groups:
                        continue
                    spans = np.array([together(mine, metric) for _, mine in groups])
                    look = {**looks.style(groups[0][1][0]), "elinewidth": 1, "label": name}
                    axis.errorbar([x for x, _ in groups], spans[:, 0], yerr=bars(spans), **look)
                for result in flat:
                    if metric in result.metrics:
                        style, value = FLAT[result.case.arm], result.metrics[metric].value
                        axis.axhline(value, color=TRUTH, lw=1, ls=style, label=result.case.variant)
                axis.set_title(textwrap.fill(READ_OUTS[target], TITLE_LETTERS))
                axis.axhline(0, color=PALE, lw=0.8, zorder=0)
                axis.set_xticks(range(len(stages)), stages, rotation=35, ha="right")
            for axis in axes.flat[len(shown) :]:
                axis.set_visible(False)
            # A worse prediction than the mean is no information, however bad.
            axes[0, 0].set_ylim(-0.15, 1.03)
            figure.supylabel("R² on held-out sequences")
            legend(figure, world_of(results))
            path = save_figure(figure, out / "figures" / f"{self.name}_r2.png")
        return [Picture(CAPTION, [path])]


PROBE = Linear()
