"""Films: one system in motion, as it was and as models go on with it, side by side."""

from __future__ import annotations

import io
import textwrap
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from PIL import Image

from orbits.runs.figure import TICKS, as_written, canvas
from orbits.runs.naming import display
from orbits.runs.palette import COLOURS, CONTROL, PALE, SUN, TRUTH

ACROSS = 3
"""Most panels side by side in a film."""
INKS = (TRUTH, CONTROL, PALE, "#000000", *COLOURS)
"""Colours of a film, beside white; each is mixed with white too, for edges."""
MIXED = (1.0, 0.75, 0.5, 0.25)
ROOT_TICKS = (-30, -15, -5, -1, 0, 1, 5, 15, 30)
"""Distances in AU, to either side, that have a tick on an axis of square roots."""


def tracks(points: npt.NDArray, n_bodies: int) -> npt.NDArray:
    """Return rows [1 + points, 2] as places [steps, bodies, 2], the star last."""
    steps = (len(points) - 1) // n_bodies
    return points[1 : 1 + steps * n_bodies].reshape(steps, n_bodies, 2)


def film(
    panels: Mapping[str, npt.NDArray], observed: int, dt: float, title: str, rooted: bool = False
) -> bytes:
    """Return a gif of one system: a panel for the truth, which comes first, and for each model.

    Args:
        panels: Places in AU by name, each [steps, bodies, 2], the star last.
        observed: Steps that models are given; the film begins twelve before they end.
        dt: Time step in years.
        title: Title of the film.
        rooted: Draw the square root of distances from the star, so that all planets can be seen.
    """
    if rooted:
        panels = {name: _rooted(places) for name, places in panels.items()}
    steps = len(next(iter(panels.values())))
    down = -(-len(panels) // ACROSS)
    across = -(-len(panels) // down)
    shape = {"nrows": down, "ncols": across, "squeeze": False}
    with canvas(2.6 * across, 0.5 + 2.8 * down, **shape) as (figure, axes):
        movers = []
        for axis in axes.flat[len(panels) :]:
            axis.set_visible(False)
        for axis, (name, places) in zip(axes.flat, panels.items(), strict=False):
            axis.set_title(textwrap.fill(display(name), 30))
            movers += _movers(axis, places, panels, rooted)
        figure.supxlabel("AU", fontsize=9)
        clock = figure.suptitle(title, fontsize=10, animated=True)
        drawing: Any = as_written(figure).canvas
        drawing.draw()
        still = drawing.copy_from_bbox(figure.bbox)  # drawn once for all frames
        frames = []
        for step in range(max(0, observed - 12), steps):
            drawing.restore_region(still)
            phase = "observed" if step < observed else "predicted"
            clock.set_text(f"{title}: {step * dt:.2f} years, {phase}")
            figure.draw_artist(clock)
            for places, trail, dot in movers:
                trail.set_data(*places[max(0, step - 5) : step + 1].T)
                dot.set_data(*places[step : step + 1].T)
                for artist in (trail, dot):
                    trail.axes.draw_artist(artist)
            frames.append(Image.fromarray(np.asarray(drawing.buffer_rgba())[..., :3]))
    # With one palette for all frames only what has moved is written.
    colours = _palette()
    frames = [x.quantize(palette=colours, dither=Image.Dither.NONE) for x in frames]
    data = io.BytesIO()
    pause = int(1000 * max(0.08, min(0.4, 8 / len(frames))))  # milliseconds
    frames[0].save(data, "GIF", save_all=True, append_images=frames[1:], duration=pause, loop=0)
    return data.getvalue()


def _palette() -> Image.Image:
    """Return an image that has the colours of a film."""
    whites = 255 * np.ones(3)
    inks = np.array([[int(ink[k : k + 2], 16) for k in (1, 3, 5)] for ink in INKS])
    mixed = [whites, *(share * ink + (1 - share) * whites for share in MIXED for ink in inks)]
    made = Image.new("P", (1, 1))
    made.putpalette(np.array(mixed).round().astype(np.uint8).tobytes())
    return made


def _movers(
    axis: Axes, places: npt.NDArray, panels: Mapping[str, npt.NDArray], rooted: bool
) -> list[tuple[npt.NDArray, Any, Any]]:
    """Set a panel up and return each body's places [steps, 2], its trail and its dot."""
    truth = next(iter(panels.values()))
    reach = 1.1 * np.abs(truth).max()
    n_bodies = places.shape[1]
    others = [colour for colour in COLOURS if colour != SUN]
    colours = [others[k % len(others)] for k in range(n_bodies - 1)] + [SUN]
    if rooted:
        at = np.sign(ROOT_TICKS) * np.sqrt(np.abs(ROOT_TICKS))
        axis.set_xticks(at, np.abs(ROOT_TICKS))
        axis.set_yticks(at, np.abs(ROOT_TICKS))
    else:
        axis.locator_params(nbins=TICKS)
    axis.set(xlim=(-reach, reach), ylim=(-reach, reach), aspect="equal")
    movers = []
    for k, colour in enumerate(colours):
        axis.plot(*truth[:, k].T, "-", color=PALE, lw=0.8)
        trail = axis.plot([], [], "-", color=colour, lw=1.2, animated=True)[0]
        dot = axis.plot([], [], "o", color=colour, ms=5, animated=True)[0]
        movers.append((places[:, k], trail, dot))
    return movers


def _rooted(places: npt.NDArray) -> npt.NDArray:
    """Return places at the square root of their distance from the star, [steps, bodies, 2]."""
    places = places - places[:, -1:]
    distance = np.linalg.norm(places, axis=-1, keepdims=True)
    return places / np.sqrt(np.maximum(distance, 1e-12))
