"""Figures of rollouts: errors, conservation, orbits, and one system in motion."""

from __future__ import annotations

import io
import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator
from PIL import Image

from orbits import artefacts, pictures
from worldmodel.controls.linear_autoregression import FILTER
from worldmodel.legend import legend
from worldmodel.palette import COLOURS, SUN, TRUTH
from worldmodel.probes._style import Line, Looks, is_control, world_of

Arrays = dict[str, npt.NDArray]
PALE = "#aaaaaa"
STYLES: dict[str, dict[str, Any]] = {
    "copy last": {"linestyle": "-.", "color": "#999999"},
    "linear extrapolation": {"linestyle": (0, (7, 2, 1, 2, 1, 2)), "color": "#666666"},
    FILTER: {"linestyle": (0, (1, 2)), "color": "#444444"},
    "true orbit in bins": {"linestyle": ":", "color": TRUTH},
    "orbit fit": {"linestyle": "--", "color": TRUTH},
}
"""How what is no model is drawn."""

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
        "dots: how the model goes on by its own answers (blue planets, orange star); dots far from "
        "the orbit lie outside the panel."
    ),
    "rollout_animation": (
        "One system in motion, true and rolled out by its own answers from the first half. The "
        "Solar System where the protocol holds it, with distances from the Sun drawn as their "
        "square root."
    ),
}


def draw_all(lines: Sequence[Line], out: Path) -> dict[str, Path]:
    """Draw every figure of some rollout lines into ``out/figures``; paths by name."""
    folder = out / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    curves = {
        "rollout_error": (("planet_error", "star_error"), "AU"),
        "rollout_conservation": (("energy_error", "angular_momentum_error"), "relative error"),
    }
    looks = Looks(lines)
    figures = {name: _curves(lines, looks, *what) for name, what in curves.items()}
    kept = {
        looks.model(line): artefacts.load_arrays(out / line["files"]["orbits"])[0]
        for line in looks.first_of_each(lines, "orbits")
    }
    figures["rollout_orbits"] = _orbits(kept, world_of(lines))
    paths = {}
    for name, figure in figures.items():
        if figure is not None:
            paths[name] = pictures.save(figure, folder / f"{name}.png")
    if kept:
        paths["rollout_animation"] = folder / "rollout_animation.gif"
        artefacts.write_bytes(paths["rollout_animation"], animation(kept))
    return paths


def _curves(
    lines: Sequence[Line], looks: Looks, metrics: tuple[str, ...], unit: str
) -> Figure | None:
    """Draw curves against the steps ahead, a panel per metric."""
    if not any(name in line["curves"] for line in lines for name in metrics):
        return None
    figure, axes = plt.subplots(1, len(metrics), figsize=(9, 4.4), layout="constrained")
    for axis, name in zip(axes, metrics, strict=True):
        seen: set[str] = set()
        for line in lines:
            if name in line["curves"]:
                _curve(axis, line, name, looks, seen)
        axis.set_yscale("log")
        axis.set_title(name.replace("_", " "), fontsize=9)
        axis.set_xlabel("steps ahead", fontsize=9)
        axis.xaxis.set_major_locator(MaxNLocator(integer=True))
        axis.set_ylabel(unit, fontsize=9)
        axis.grid(alpha=0.3)
        axis.tick_params(labelsize=8)
    legend(figure, world_of(lines))
    return figure


def _curve(axis: Axes, line: Line, name: str, looks: Looks, seen: set[str]) -> None:
    """Draw one line's curve; what controls and twins say of several checkpoints is drawn once."""
    label, curve = looks.who(line), line["curves"][name]
    trained = not is_control(line) and line["row"]["arm"] != "untrained"
    if label in seen and not trained:
        return
    mean, half = np.asarray(curve["mean"]), np.asarray(curve["half_width"])
    steps = np.arange(1, 1 + len(mean))
    style = STYLES.get(line["row"]["model"], {}) if is_control(line) else looks.style(line)
    axis.plot(
        steps,
        mean,
        lw=1.8 if trained else 1.2,
        ms=4,
        markevery=-(-len(mean) // 12),
        label=None if label in seen else label,
        **style,
    )
    if trained:
        axis.fill_between(
            steps, mean - half, mean + half, color=looks.colour(line), alpha=0.2, lw=0
        )
    seen.add(label)


def _orbits(kept: Mapping[str, Arrays], world: str) -> Figure | None:
    """Draw true and rolled-out orbits: a row per model, a column per sequence."""
    if not kept:
        return None
    columns = max(len(arrays["true"]) for arrays in kept.values())
    figure, axes = plt.subplots(
        len(kept),
        columns,
        figsize=(2.6 * columns, 0.4 + 2.7 * len(kept)),
        squeeze=False,
        layout="constrained",
    )
    for row, (model, arrays) in zip(axes, kept.items(), strict=True):
        for axis in row[len(arrays["true"]) :]:
            axis.set_visible(False)
        n_prompt = int(arrays["n_prompt"])
        shown = zip(arrays["true"], arrays["rolled"], arrays["body"], strict=True)
        for axis, (true, rolled, body) in zip(row, shown, strict=False):
            small = 1 if len(body) < 100 else 0.5
            for k in range(body.max() + 1):
                of_body = np.flatnonzero(body == k)
                before, after = of_body[of_body < n_prompt], of_body[of_body >= n_prompt]
                colour = COLOURS[0] if k else SUN
                axis.plot(*rolled[after].T, "o", color=colour, ms=4 * small)
                axis.plot(*true[before].T, ".-", color=PALE, ms=2 * small, lw=0.8)
                after = np.r_[before[-1:], after]
                axis.plot(*true[after].T, ".-", color=TRUTH, ms=3 * small, lw=0.8)
            low, high = true[1:].min(axis=0), true[1:].max(axis=0)
            (x, y), reach = (low + high) / 2, 0.7 * (high - low).max()
            axis.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
            axis.tick_params(labelsize=7)
        row[0].set_ylabel(textwrap.fill(model, 40), fontsize=8)
    figure.suptitle(world, fontsize=9)
    figure.supxlabel("AU", fontsize=9)
    return figure


ROOT_TICKS = (-30, -15, -5, -1, 0, 1, 5, 15, 30)
"""Distances in AU, to either side, that are marked where their square root is drawn."""


def animation(kept: Mapping[str, Arrays], most: int = 3) -> bytes:
    """Return a gif of one system in motion: the truth, and how up to ``most`` models go on."""
    film = next(iter(kept.values()))
    n_bodies = int(film["film_body"].max()) + 1
    steps = (len(film["film_body"]) - 1) // n_bodies
    seen = -(-(int(film["n_prompt"]) - 1) // n_bodies)
    solar = bool(film["film_is_solar"])

    def tracks(points: npt.NDArray) -> npt.NDArray:
        """Return places [steps, bodies, 2], the star last."""
        places = points[1 : 1 + steps * n_bodies].reshape(steps, n_bodies, 2)
        return _root_of_distance(places - places[:, -1:]) if solar else places

    panels = {"true": tracks(film["film_true"])}
    first = itertools.islice(kept.items(), most)
    panels |= {model: tracks(arrays["film_rolled"]) for model, arrays in first}
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.4 * len(panels), 3.9), squeeze=False, layout="constrained"
    )
    reach = 1.1 * np.abs(panels["true"]).max()
    others = [colour for colour in COLOURS if colour != SUN]
    colours = [others[k % len(others)] for k in range(n_bodies - 1)] + [SUN]
    movers = []
    for axis, (title, places) in zip(axes.flat, panels.items(), strict=True):
        axis.set_title(textwrap.fill(title, 40), fontsize=10)
        axis.tick_params(labelsize=7)
        if solar:
            at = np.sign(ROOT_TICKS) * np.sqrt(np.abs(ROOT_TICKS))
            axis.set_xticks(at, np.abs(ROOT_TICKS))
            axis.set_yticks(at, np.abs(ROOT_TICKS))
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        for k, colour in enumerate(colours):
            axis.plot(*panels["true"][:, k].T, "-", color="#dddddd", lw=0.8)
            trail = axis.plot([], [], "-", color=colour, lw=1.2, animated=True)[0]
            dot = axis.plot([], [], "o", color=colour, ms=5, animated=True)[0]
            movers.append((places[:, k], trail, dot))
    title = "the Solar System" if solar else "held-out sequence 0"
    figure.supxlabel("AU", fontsize=9)
    clock = figure.suptitle(title, fontsize=10, animated=True)
    canvas: Any = pictures.as_written(figure).canvas
    canvas.draw()
    still = canvas.copy_from_bbox(figure.bbox)  # drawn once for all frames
    frames = []
    for step in range(max(0, seen - 12), steps):
        canvas.restore_region(still)
        phase = "observed" if step < seen else "predicted"
        clock.set_text(f"{title}: {step * float(film['film_dt']):.2f} years, {phase}")
        figure.draw_artist(clock)
        for places, trail, dot in movers:
            trail.set_data(*places[max(0, step - 5) : step + 1].T)
            dot.set_data(*places[step : step + 1].T)
            for artist in (trail, dot):
                trail.axes.draw_artist(artist)
        frames.append(Image.fromarray(np.asarray(canvas.buffer_rgba())[..., :3]).quantize(64))
    plt.close(figure)
    data = io.BytesIO()
    pause = int(1000 * max(0.08, min(0.4, 8 / len(frames))))  # milliseconds
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:], duration=pause, loop=0)
    return data.getvalue()


def _root_of_distance(places: npt.NDArray) -> npt.NDArray:
    """Return places at the square root of their distance, so that all planets can be seen."""
    distance = np.linalg.norm(places, axis=-1, keepdims=True)
    return places / np.sqrt(np.maximum(distance, 1e-12))
