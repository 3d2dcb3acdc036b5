"""Figures of rollouts: errors, conservation, orbits, and one system in motion."""

from __future__ import annotations

import io
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.ticker import MaxNLocator
from PIL import Image

from orbits.runs import artefact, folder
from orbits.runs.figure import COLOURS, TRUTH, as_written, canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.controls.linear_autoregression import FILTER
from worldmodel.probes.looks import SUN, Looks, is_control, world_of

Arrays = dict[str, npt.NDArray]
PALE = "#aaaaaa"
STYLES: dict[str, dict[str, Any]] = {
    "copy last": {"linestyle": "-.", "color": "#999999"},
    "linear extrapolation": {"linestyle": (0, (7, 2, 1, 2, 1, 2)), "color": "#666666"},
    FILTER: {"linestyle": (0, (1, 2)), "color": "#444444"},
    "true orbit in bins": {"linestyle": ":", "color": TRUTH},
    "orbit fit": {"linestyle": "--", "color": TRUTH},
}
"""Looks of references."""

CAPTIONS = {
    "rollout_error": (
        "Distance in AU between predicted and true place against the number of steps ahead, free "
        "rollouts by the likeliest bins from the first half of held-out sequences; mean over "
        "sequences, band: 1.96 standard errors. Hollow: random weights. Grey and black: a body "
        "that rests or goes straight on, a linear autoregression (one planet), the orbit that fits "
        "the prompt best (ceiling), and the truth to within a bin."
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
    with canvas(9, 4.4, ncols=len(metrics)) as (figure, axes):
        for axis, name in zip(axes, metrics, strict=True):
            labels: set[str] = set()
            for result in results:
                if name in result.details["curves"]:
                    _curve(axis, result, name, looks, labels)
            axis.set_yscale("log")
            axis.set(title=name.replace("_", " "), xlabel="steps ahead", ylabel=unit)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
            axis.grid(alpha=0.3)
        legend(figure, world_of(results))
        return save_figure(figure, path)


def _curve(axis: Axes, result: Result, name: str, looks: Looks, labels: set[str]) -> None:
    """Draw one curve; those of controls and twins of several checkpoints are drawn once."""
    label, curve = looks.name(result), result.details["curves"][name]
    trained = not is_control(result) and result.case.arm != "untrained"
    if label in labels and not trained:
        return
    mean, half = np.asarray(curve["mean"]), np.asarray(curve["half_width"])
    steps = np.arange(1, 1 + len(mean))
    style = STYLES.get(result.case.variant, {}) if is_control(result) else looks.style(result)
    axis.plot(
        steps,
        mean,
        lw=1.8 if trained else 1.2,
        markevery=-(-len(mean) // 12),
        label=None if label in labels else label,
        **style,
    )
    if trained:
        colour = looks.colour(result)
        axis.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
    labels.add(label)


def _orbits(orbits: Mapping[str, Arrays], world: str, path: Path) -> Path | None:
    """Draw true and rolled-out orbits: a row per model, a column per sequence."""
    if not orbits:
        return None
    columns = max(len(arrays["true"]) for arrays in orbits.values())
    shape = {"nrows": len(orbits), "ncols": columns, "squeeze": False}
    with canvas(2.6 * columns, 0.4 + 2.7 * len(orbits), **shape) as (figure, axes):
        for row, (model, arrays) in zip(axes, orbits.items(), strict=True):
            for axis in row[len(arrays["true"]) :]:
                axis.set_visible(False)
            shown = zip(arrays["true"], arrays["rolled"], arrays["body"], strict=True)
            for axis, (true, rolled, body) in zip(row, shown, strict=False):
                _orbit(axis, true, rolled, body, int(arrays["n_prompt"]))
            row[0].set_ylabel(textwrap.fill(model, 40), fontsize=8)
        figure.suptitle(world, fontsize=9)
        figure.supxlabel("AU", fontsize=9)
        return save_figure(figure, path)


def _orbit(
    axis: Axes, true: npt.NDArray, rolled: npt.NDArray, body: npt.NDArray, n_prompt: int
) -> None:
    """Draw one sequence: the prompt, how the bodies go on, and how the model does."""
    small = 1 if len(body) < 100 else 0.5
    for k in range(body.max() + 1):
        of_body = np.flatnonzero(body == k)
        before, after = of_body[of_body < n_prompt], of_body[of_body >= n_prompt]
        axis.plot(*rolled[after].T, "o", color=COLOURS[0] if k else SUN, ms=4 * small)
        axis.plot(*true[before].T, ".-", color=PALE, ms=2 * small, lw=0.8)
        after = np.r_[before[-1:], after]
        axis.plot(*true[after].T, ".-", color=TRUTH, ms=3 * small, lw=0.8)
    low, high = true[1:].min(axis=0), true[1:].max(axis=0)
    (x, y), reach = (low + high) / 2, 0.7 * (high - low).max()
    axis.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
    axis.tick_params(labelsize=7)


ROOT_TICKS = (-30, -15, -5, -1, 0, 1, 5, 15, 30)
"""Distances in AU, to either side, that are marked where their square root is drawn."""


def animation(orbits: Mapping[str, Arrays], most: int = 3) -> bytes:
    """Return a gif of one system in motion: the truth, and how up to ``most`` models go on."""
    film = next(iter(orbits.values()))
    n_bodies = int(film["film_body"].max()) + 1
    steps = (len(film["film_body"]) - 1) // n_bodies
    observed = -(-(int(film["n_prompt"]) - 1) // n_bodies)
    solar = bool(film["film_is_solar"])

    def tracks(points: npt.NDArray) -> npt.NDArray:
        """Return places [steps, bodies, 2], the star last."""
        places = points[1 : 1 + steps * n_bodies].reshape(steps, n_bodies, 2)
        return _root_of_distance(places - places[:, -1:]) if solar else places

    panels = {"true": tracks(film["film_true"])}
    first = itertools.islice(orbits.items(), most)
    panels |= {model: tracks(arrays["film_rolled"]) for model, arrays in first}
    with canvas(3.4 * len(panels), 3.9, ncols=len(panels), squeeze=False) as (figure, axes):
        movers = []
        for axis, (name, places) in zip(axes.flat, panels.items(), strict=True):
            axis.set_title(textwrap.fill(name, 40), fontsize=10)
            movers += _movers(axis, places, panels, solar)
        title = "the Solar System" if solar else "held-out sequence 0"
        figure.supxlabel("AU", fontsize=9)
        clock = figure.suptitle(title, fontsize=10, animated=True)
        drawing: Any = as_written(figure).canvas
        drawing.draw()
        still = drawing.copy_from_bbox(figure.bbox)  # drawn once for all frames
        frames = []
        for step in range(max(0, observed - 12), steps):
            drawing.restore_region(still)
            phase = "observed" if step < observed else "predicted"
            clock.set_text(f"{title}: {step * float(film['film_dt']):.2f} years, {phase}")
            figure.draw_artist(clock)
            for places, trail, dot in movers:
                trail.set_data(*places[max(0, step - 5) : step + 1].T)
                dot.set_data(*places[step : step + 1].T)
                for artist in (trail, dot):
                    trail.axes.draw_artist(artist)
            frames.append(Image.fromarray(np.asarray(drawing.buffer_rgba())[..., :3]).quantize(64))
    data = io.BytesIO()
    pause = int(1000 * max(0.08, min(0.4, 8 / len(frames))))  # milliseconds
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:], duration=pause, loop=0)
    return data.getvalue()


def _movers(
    axis: Axes, places: npt.NDArray, panels: Mapping[str, npt.NDArray], solar: bool
) -> list[tuple[npt.NDArray, Any, Any]]:
    """Set a panel up and return each body's places [steps, 2], its trail and its dot."""
    reach = 1.1 * np.abs(panels["true"]).max()
    n_bodies = places.shape[1]
    others = [colour for colour in COLOURS if colour != SUN]
    colours = [others[k % len(others)] for k in range(n_bodies - 1)] + [SUN]
    axis.tick_params(labelsize=7)
    if solar:
        at = np.sign(ROOT_TICKS) * np.sqrt(np.abs(ROOT_TICKS))
        axis.set_xticks(at, np.abs(ROOT_TICKS))
        axis.set_yticks(at, np.abs(ROOT_TICKS))
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    movers = []
    for k, colour in enumerate(colours):
        axis.plot(*panels["true"][:, k].T, "-", color="#dddddd", lw=0.8)
        trail = axis.plot([], [], "-", color=colour, lw=1.2, animated=True)[0]
        dot = axis.plot([], [], "o", color=colour, ms=5, animated=True)[0]
        movers.append((places[:, k], trail, dot))
    return movers


def _root_of_distance(places: npt.NDArray) -> npt.NDArray:
    """Return places at the square root of their distance, so that all planets can be seen."""
    distance = np.linalg.norm(places, axis=-1, keepdims=True)
    return places / np.sqrt(np.maximum(distance, 1e-12))
