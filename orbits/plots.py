"""Pictures of a dataset: a few orbits, and the distributions they come from."""

from __future__ import annotations

from pathlib import Path

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import numpy as np
from matplotlib.ticker import NullFormatter

from orbits.dataset import SHARD, OrbitDataset
from orbits.protocols import DT_ROW, STAR


def plot_dataset(dataset: OrbitDataset, out: str | Path, n_orbits: int = 6) -> Path:
    """Draw observed orbits and, where there are labels, the distributions of r, m1, m2 and F.

    Args:
        dataset: An exported split.
        out: The ``.png`` to write.
        n_orbits: How many sequences to draw.

    Returns:
        The path of the picture.
    """
    columns = min(n_orbits, len(dataset), 6)
    labelled = "state" in dataset[0]
    figure, axes = plt.subplots(
        1 + labelled,
        max(columns, 4),
        figsize=(2.6 * max(columns, 4), 2.7 * (1 + labelled)),
        squeeze=False,
        layout="constrained",
    )
    for axis in axes.flat:
        axis.set_visible(False)
    for k in range(columns):
        _draw_orbit(axes[0, k], dataset[k], f"sequence {k}")
    if labelled:
        for axis, (label, values) in zip(axes[1], _labels(dataset).items(), strict=False):
            axis.set_visible(True)
            low, high = np.percentile(values, [0.1, 99.9])
            bins = np.geomspace(low, max(high, low * 1.01), 40)
            axis.hist(values, bins=bins, color="#3b6ea5")
            axis.set_xscale("log")
            axis.xaxis.set_minor_formatter(NullFormatter())
            axis.set_xlabel(label)
    figure.suptitle(f"{dataset.path.name}, {dataset.split}: {len(dataset)} sequences")
    out = Path(out)
    out.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(out, dpi=120)
    plt.close(figure)
    return out


def _draw_orbit(axis: plt.Axes, sequence: dict[str, np.ndarray], title: str) -> None:
    axis.set_visible(True)
    for body in np.unique(sequence["body"]):
        if body == DT_ROW:
            continue
        points = sequence["coordinates"][sequence["body"] == body]
        star = body == STAR
        axis.plot(*points.T, ".-", lw=0.5, ms=6 if star else 3, color="#d98e04" if star else None)
    axis.set_aspect("equal", adjustable="datalim")
    axis.set_title(f"{title}, dt {float(sequence['dt']):.3g} yr", fontsize=8)
    axis.set_xlabel("AU", fontsize=7)
    axis.tick_params(labelsize=6)


def _labels(dataset: OrbitDataset) -> dict[str, np.ndarray]:
    shard = dataset.shard(0)
    planet = np.isfinite(shard["state"][..., 0])
    state, force = shard["state"][planet], shard["force"][planet]
    shown = min(len(dataset), SHARD)
    return {
        f"distance r (AU), {shown} sequences": np.hypot(state[:, 0], state[:, 1]),
        "planet mass m1 (solar masses)": state[:, 4],
        "star mass m2 (solar masses)": state[:, 5],
        "force (solar mass AU / year²)": np.hypot(force[:, 0], force[:, 1]),
    }
