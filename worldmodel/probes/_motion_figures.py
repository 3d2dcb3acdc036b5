"""Figures of rollouts: errors, conservation, orbits, and one system in motion."""

from __future__ import annotations

import io
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

from orbits import artefacts
from worldmodel.probes._style import COLOURS, SUN, TRUTH, save

Line = Mapping[str, Any]
PALE = "#aaaaaa"
STYLES: dict[str, tuple[Any, str]] = {
    "copy last": ("-.", "#999999"),
    "linear extrapolation": ((0, (7, 2, 1, 2, 1, 2)), "#666666"),
    "true orbit in bins": (":", "#222222"),
    "orbit fit": ("--", "#222222"),
}
"""Line style and colour of what is no model."""

CAPTIONS = {
    "rollout_error": (
        "Distance in AU between predicted and true place against the number of steps ahead, free "
        "rollouts by the likeliest bins from the first half of held-out sequences; mean over "
        "sequences, band: 1.96 standard errors. Grey and black: a body that rests or goes straight "
        "on, the orbit that fits the prompt best (ceiling), and the truth to within a bin."
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
    figures = {name: _curves(lines, *what) for name, what in curves.items()}
    models = first_of_each_model(lines, "orbits")
    kept = [(line, artefacts.load_arrays(out / line["files"]["orbits"])[0]) for line in models]
    figures["rollout_orbits"] = _orbits(kept)
    paths = {}
    for name, figure in figures.items():
        if figure is not None:
            paths[name] = save(figure, folder / f"{name}.png")
    if kept:
        paths["rollout_animation"] = folder / "rollout_animation.gif"
        artefacts.write_bytes(paths["rollout_animation"], animation(kept))
    return paths


def _curves(lines: Sequence[Line], metrics: tuple[str, ...], unit: str) -> Figure | None:
    """Draw curves against the steps ahead: a row of panels per world, a panel per metric."""
    drawn = [line for line in lines if any(name in line["curves"] for name in metrics)]
    worlds = list(dict.fromkeys(world_of(line) for line in drawn))
    if not worlds:
        return None
    figure, axes = plt.subplots(
        len(worlds),
        len(metrics),
        figsize=(9, 0.6 + 3.4 * len(worlds)),
        squeeze=False,
        layout="constrained",
    )
    models = list(dict.fromkeys(x["row"]["model"] for x in drawn if _is_model(x)))
    for row, world in zip(axes, worlds, strict=True):
        mine = [line for line in drawn if world_of(line) == world]
        for axis, name in zip(row, metrics, strict=True):
            seen: set[str] = set()
            for line in mine:
                if name in line["curves"]:
                    _curve(axis, line, name, models, seen)
            axis.set_yscale("log")
            axis.set_title(f"{name.replace('_', ' ')}\n{world}", fontsize=9)
            axis.set_xlabel("steps ahead", fontsize=9)
            axis.xaxis.set_major_locator(MaxNLocator(integer=True))
            axis.set_ylabel(unit, fontsize=9)
            axis.grid(alpha=0.3)
            axis.tick_params(labelsize=8)
    handles = {
        label: handle
        for axis in axes.flat
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles.keys(), fontsize=8, loc="outside lower center", ncols=4)
    return figure


def _curve(axis: Axes, line: Line, name: str, models: list[str], seen: set[str]) -> None:
    """Draw one line's curve; what controls say of several checkpoints is drawn once."""
    row, curve = line["row"], line["curves"][name]
    label = f"{row['model']}, {row['arm']}"
    if label in seen and not _is_model(line):
        return
    style, colour = STYLES.get(row["model"], ("-", ""))
    if row["model"] in models:
        colour = COLOURS[models.index(row["model"]) % len(COLOURS)]
    if row["arm"] == "untrained":
        style = (0, (1, 3))
    mean, half = np.asarray(curve["mean"]), np.asarray(curve["half_width"])
    steps = np.arange(1, 1 + len(mean))
    axis.plot(
        steps,
        mean,
        linestyle=style,
        color=colour,
        lw=1.8 if _is_model(line) else 1.2,
        label=None if label in seen else label,
    )
    if _is_model(line):
        axis.fill_between(steps, mean - half, mean + half, color=colour, alpha=0.2, lw=0)
    seen.add(label)


def _orbits(kept: Sequence[tuple[Line, dict[str, npt.NDArray]]]) -> Figure | None:
    """Draw true and rolled-out orbits: a row per model, a column per sequence."""
    if not kept:
        return None
    columns = max(len(arrays["true"]) for _, arrays in kept)
    figure, axes = plt.subplots(
        len(kept),
        columns,
        figsize=(2.6 * columns, 0.4 + 2.7 * len(kept)),
        squeeze=False,
        layout="constrained",
    )
    for row, (line, arrays) in zip(axes, kept, strict=True):
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
        row[0].set_ylabel(f"{line['row']['model']}\n{world_of(line)}", fontsize=8)
    figure.supxlabel("AU", fontsize=9)
    return figure


def animation(kept: Sequence[tuple[Line, dict[str, npt.NDArray]]], most: int = 3) -> bytes:
    """Return a gif of one system in motion: the truth, and how up to ``most`` models go on.

    Models of another world than the first one's are left out.
    """
    world = world_of(kept[0][0])
    alike = [(line, arrays) for line, arrays in kept if world_of(line) == world][:most]
    film = alike[0][1]
    n_bodies = int(film["film_body"].max()) + 1
    steps = (len(film["film_body"]) - 1) // n_bodies
    seen = -(-(int(film["n_prompt"]) - 1) // n_bodies)
    solar = bool(film["film_is_solar"])

    def tracks(points: npt.NDArray) -> npt.NDArray:
        """Return places [steps, bodies, 2], the star last."""
        places = points[1 : 1 + steps * n_bodies].reshape(steps, n_bodies, 2)
        return _root_of_distance(places - places[:, -1:]) if solar else places

    panels = {"true": tracks(film["film_true"])}
    panels |= {line["row"]["model"]: tracks(arrays["film_rolled"]) for line, arrays in alike}
    figure, axes = plt.subplots(
        1, len(panels), figsize=(3.4 * len(panels), 3.9), squeeze=False, layout="constrained"
    )
    reach = 1.1 * np.abs(panels["true"]).max()
    colours = [COLOURS[k % len(COLOURS)] for k in range(n_bodies - 1)] + [SUN]
    movers = []
    for axis, (title, places) in zip(axes.flat, panels.items(), strict=True):
        axis.set_title(title, fontsize=10)
        axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
        axis.tick_params(labelsize=7, labelbottom=not solar, labelleft=not solar)
        for k, colour in enumerate(colours):
            axis.plot(*panels["true"][:, k].T, "-", color="#dddddd", lw=0.8)
            trail = axis.plot([], [], "-", color=colour, lw=1.2, animated=True)[0]
            dot = axis.plot([], [], "o", color=colour, ms=5, animated=True)[0]
            movers.append((places[:, k], trail, dot))
    title = "the Solar System" if solar else "held-out sequence 0"
    clock = figure.suptitle(title, fontsize=10, animated=True)
    canvas: Any = figure.canvas
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


def first_of_each_model(lines: Sequence[Line], role: str) -> list[Line]:
    """Return one line with a file of this role for each world and model: of its first seed."""
    first: dict[tuple[str, str], Line] = {}
    for line in sorted(lines, key=lambda line: line["row"]["seed"]):
        if role in line["files"]:
            first.setdefault((world_of(line), line["row"]["model"]), line)
    return list(first.values())


def world_of(line: Line) -> str:
    row = line["row"]
    elsewhere = "" if row["trained_on"] == row["law"] else f", trained on {row['trained_on']}"
    return f"{row['protocol']}, {row['law']}{elsewhere}"


def _is_model(line: Line) -> bool:
    return line["row"]["model"] not in STYLES and line["row"]["arm"] != "untrained"
