"""Figures of rollouts: errors, conservation, orbits, and one system in motion."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator

from orbits.runs import artefact, folder
from orbits.runs.figure import TICKS, End, canvas, label_ends, legend, save_figure
from orbits.runs.naming import display
from orbits.runs.page import Picture
from orbits.runs.palette import COLOURS, CONTROL, PALE, SUN, TRUTH
from orbits.runs.result import Result
from worldmodel.controls.names import FILTER, FIT, IN_BINS
from worldmodel.probes.looks import Looks, is_control, rank, world_of
from worldmodel.probes.motion.film import film, tracks

Arrays = dict[str, npt.NDArray]
STYLES: dict[str, dict[str, Any]] = {
    "copy last": {"linestyle": "-.", "color": "#999999"},
    "linear extrapolation": {"linestyle": (0, (7, 2, 1, 2, 1, 2)), "color": "#666666"},
    FILTER: {"linestyle": (0, (1, 2)), "color": "#444444"},
    IN_BINS: {"linestyle": ":", "color": TRUTH},
    FIT: {"linestyle": "--", "color": TRUTH},
}
"""Looks of references."""

CAPTIONS = {
    "rollout_error": (
        "Distance in AU between predicted and true place against the number of steps ahead, free "
        "rollouts by the likeliest bins from the first half of held-out sequences; mean over "
        "sequences, band: 1.96 standard errors. Hollow: random weights. Grey and black: a body "
        "that rests or goes straight on, a linear autoregression (as many bodies in all systems), "
        "the orbit that fits the prompt of one planet best (ceiling), and the truth in bins."
    ),
    "rollout_conservation": (
        "By how much energy and angular momentum of a rollout miss those of the true orbit: mean "
        "size of the relative error, cut at 1. Energy counts in the kinetic energy of the circular "
        "orbit of the same semi-major axis, velocities are central differences. Dotted: the true "
        "orbit in bins, measured in the same way, which shows what differences and bins do alone."
    ),
    "rollout_orbits": (
        "The first held-out sequences in AU. Grey: the prompt; black: how the bodies go on; large "
        "dots: how the model goes on by its own predictions (blue planets, orange star); dots far "
        "from the orbit lie outside the panel."
    ),
    "rollout_animation": (
        "One system in motion, true and rolled out by its own predictions from the first half. The "
        "Solar System where the protocol holds it, with distances from the Sun drawn as their "
        "square root."
    ),
}


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw every figure of some rollouts into ``out/figures``."""
    looks = Looks(results)
    arrays = {
        looks.model(result): artefact.load_arrays(file)[0]
        for result in looks.first_of_each(results, "orbits")
        if (file := folder.file(out, result, "orbits"))
    }
    paths = {name: out / "figures" / f"{name}.png" for name in CAPTIONS}
    files = {
        "rollout_error": _curves(
            results, ("planet_error", "star_error"), "AU", paths["rollout_error"]
        ),
        "rollout_conservation": _curves(
            results,
            ("energy_error", "angular_momentum_error"),
            "relative error",
            paths["rollout_conservation"],
        ),
        "rollout_orbits": _orbits(arrays, world_of(results), paths["rollout_orbits"]),
    }
    if arrays:
        film = paths["rollout_animation"].with_suffix(".gif")
        artefact.write_bytes(film, animation(arrays))
        files["rollout_animation"] = film
    return [Picture(CAPTIONS[name], [path]) for name, path in files.items() if path]


def _curves(
    results: Sequence[Result], metrics: tuple[str, ...], unit: str, path: Path
) -> Path | None:
    """Draw curves against the steps ahead, a panel per metric."""
    looks = Looks(results)
    curves = [set(result.details["curves"]) for result in results]
    if not set(metrics) & set().union(*curves):
        return None
    with canvas(8.6, 3.6, ncols=len(metrics)) as (figure, axes):
        for axis, name in zip(axes, metrics, strict=True):
            ends: dict[str, End] = {}
            for result in results:
                if name in result.details["curves"]:
                    _curve(axis, result, name, looks, ends)
            axis.set_yscale("log")
            axis.set(title=name.replace("_", " "), xlabel="steps ahead", ylabel=unit)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
            axis.grid(axis="y")
        label_ends(axis, list(ends.values()))
        figure.suptitle(world_of(results))
        return save_figure(figure, path)


def _curve(axis: Axes, result: Result, name: str, looks: Looks, ends: dict[str, End]) -> None:
    """Draw one curve; those of controls and twins of several checkpoints are drawn once."""
    label, curve = looks.name(result), result.details["curves"][name]
    trained = rank(result) == 0
    if label in ends and not trained:
        return
    mean, half = np.asarray(curve["mean"]), np.asarray(curve["half_width"])
    steps = np.arange(1, 1 + len(mean))
    style = STYLES.get(result.case.variant, {}) if is_control(result) else looks.style(result)
    axis.plot(
        steps,
        mean,
        lw=1.3,
        ms=3.5,
        markevery=-(-len(mean) // 12),
        **style,
    )
    if trained:
        colour = looks.colour(result)
        axis.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
    ends.setdefault(label, End(label, steps[-1], mean[-1], style.get("color", CONTROL)))


def _orbits(orbits: Mapping[str, Arrays], world: str, path: Path) -> Path | None:
    """Draw true and rolled-out orbits: a row per model, a column per sequence."""
    if not orbits:
        return None
    columns = max(len(arrays["true"]) for arrays in orbits.values())
    shape = {"nrows": len(orbits), "ncols": columns, "squeeze": False}
    size = 8.2 / max(3, columns)
    with canvas(size * columns, 0.9 + size * len(orbits), **shape) as (figure, axes):
        for row, (model, arrays) in zip(axes, orbits.items(), strict=True):
            for axis in row[len(arrays["true"]) :]:
                axis.set_visible(False)
            shown = zip(arrays["true"], arrays["rolled"], arrays["body"], strict=True)
            for axis, (true, rolled, body) in zip(row, shown, strict=False):
                _orbit(axis, true, rolled, body, int(arrays["n_prompt"]))
            row[0].set_ylabel(textwrap.fill(display(model), 30), fontsize=8)
        figure.supxlabel("AU")
        legend(figure, world)
        return save_figure(figure, path)


def _orbit(
    axis: Axes, true: npt.NDArray, rolled: npt.NDArray, body: npt.NDArray, n_prompt: int
) -> None:
    """Draw one sequence: the prompt, how the bodies go on, and how the model does."""
    small = 1 if len(body) < 100 else 0.5
    for k in range(body.max() + 1):
        of_body = np.flatnonzero(body == k)
        before, after = of_body[of_body < n_prompt], of_body[of_body >= n_prompt]
        body_of = ("planet" if body.max() == 1 else "planets") if k else "star"
        colour = COLOURS[0] if k else SUN
        label = f"{body_of}, as the model goes on"
        axis.plot(*rolled[after].T, "o", color=colour, ms=4 * small, label=label)
        axis.plot(*true[before].T, ".-", color=PALE, ms=2 * small, lw=0.8, label="what it is given")
        after = np.r_[before[-1:], after]
        axis.plot(*true[after].T, ".-", color=TRUTH, ms=3 * small, lw=0.8, label="true path")
    low, high = true[1:].min(axis=0), true[1:].max(axis=0)
    (x, y), reach = (low + high) / 2, 0.7 * (high - low).max()
    axis.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
    axis.locator_params(nbins=TICKS)


def animation(orbits: Mapping[str, Arrays], most: int = 3) -> bytes:
    """Return a gif of one system in motion: the truth, and how up to ``most`` models go on."""
    first = next(iter(orbits.values()))
    n_bodies, solar = int(first["film_body"].max()) + 1, bool(first["film_is_solar"])
    shown = itertools.islice(orbits.items(), most)
    places = {"true": first["film_true"]} | {name: each["film_rolled"] for name, each in shown}
    return film(
        {name: tracks(points, n_bodies) for name, points in places.items()},
        observed=(int(first["n_prompt"]) - 1) // n_bodies,
        dt=float(first["film_dt"]),
        title="the Solar System" if solar else "held-out sequence 0",
        rooted=solar,
    )
