"""Figures of the implied-law probe: exponents by prompt, and prompts as models continue them."""

from __future__ import annotations

import itertools
import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from orbits import laws
from orbits.runs import artefact, folder
from orbits.runs.figure import TICKS, WIDTH, End, canvas, headline, label_ends, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.palette import CONTROL, PALE, TRUTH
from orbits.runs.result import Result
from worldmodel.controls.names import FILTER, IN_BINS, TABLE, TRUE
from worldmodel.probes.implied.names import SHIFT, in_words
from worldmodel.probes.implied.words import by_prompt, is_own, together
from worldmodel.probes.looks import Looks, bars, is_control, trained_on
from worldmodel.probes.motion.film import film, tracks

CAPTIONS = {
    "implied_law_exponents": (
        "Exponent of the distance that continuations obey along each orbit, by the law of the "
        "prompt: mean of the trainings with its 95% interval, or over sequences. Diagonal: the "
        "law of the prompt. A horizontal line is one law for all prompts: a world model's own, or "
        "that of a table of its training orbits. Below: orbits of the training's law that are "
        "closer or more eccentric than in its training. What lies beyond the panel is at its edge."
    ),
    "implied_law_film": (
        "The first prompt of each world in motion: as its world goes on, and as a model of each "
        "world does, by its own predictions. Faint: the true path. A film for each law of the "
        "prompts."
    ),
    "implied_law_orbits": (
        "The same prompts (grey), as their world goes on (thin) and as models go on that were "
        "trained in other worlds (colours); AU, planets alone. A row for each law of the prompts."
    ),
}
TITLE = "By which power of r do models continue orbits? (flat: by one law)"
HIGHEST, LOWEST = 1.0, -3.5
"""Exponents at which the panel ends: whatever has no attraction lies beyond."""
COLUMNS = 4
MOST_WORLDS = 4
"""Panels of a film beside the truth."""
STYLES: Mapping[str, dict[str, Any]] = {
    TABLE: {"color": CONTROL, "linestyle": "--", "marker": "s", "markerfacecolor": "white"},
    IN_BINS: {"color": TRUTH, "linestyle": ":", "marker": "."},
}
"""Looks of two references."""


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw every figure into ``out/figures``."""
    own, place = [result for result in results if is_own(result)], out / "figures"
    looks = Looks(own)
    drawn = {
        looks.model(result): Drawn(
            trained_on(result), artefact.load_arrays(file)[0], looks.style(result)
        )
        for result in looks.first_of_each(own, "orbits")
        if (file := folder.file(out, result, "orbits"))
    }
    found = [_exponents(results, place / "implied_law_exponents.png")]
    pictures = [Picture(CAPTIONS["implied_law_exponents"], found)]
    return pictures + continued(drawn, list(by_prompt(own)), place)


class Drawn(NamedTuple):
    """Continuations of a model, to be drawn.

    Attributes:
        world: The law of the world that it was trained in.
        arrays: For each law of prompts ``LAW true`` and ``LAW rolled``, rows [N, T, 2] in AU, and
            ``LAW dt`` in years, [N].
        style: Its look, as arguments of matplotlib.
    """

    world: str
    arrays: Mapping[str, npt.NDArray]
    style: Mapping[str, Any]


def continued(drawn: Mapping[str, Drawn], prompts: Sequence[str], place: Path) -> list[Picture]:
    """Draw the same prompts as several models continue them, standing still and in motion.

    Args:
        drawn: Models by name.
        prompts: The laws of the prompts.
        place: The folder of the figures. Kept results may lack the continuations: the pictures in
            it then stay as they are.
    """
    # Files of earlier versions lack the time step.
    there = [law for law in prompts if any(f"{law} dt" in x.arrays for x in drawn.values())]
    still = place / "implied_law_orbits.png"
    films = {law: place / f"implied_law_film_{laws.file_name(law)}.gif" for law in there or prompts}
    if not there:
        kept = {"implied_law_film": films.values(), "implied_law_orbits": [still]}
        found = {name: [path for path in paths if path.is_file()] for name, paths in kept.items()}
        return [Picture(CAPTIONS[name], paths) for name, paths in found.items() if paths]
    _orbits(drawn, there, still)
    for law, path in films.items():
        artefact.write_bytes(path, _film(drawn, law))
    return [
        Picture(CAPTIONS["implied_law_film"], list(films.values())),
        Picture(CAPTIONS["implied_law_orbits"], [still]),
    ]


def _film(drawn: Mapping[str, Drawn], law: str) -> bytes:
    """Return a gif of the first prompt of a law, as the first model of each world continues it."""
    models: dict[str, Drawn] = {}
    for each in drawn.values():
        if f"{law} dt" in each.arrays:
            models.setdefault(each.world, each)
    first = next(iter(models.values())).arrays
    panels = {f"the truth ({in_words(law)})": first[f"{law} true"][0]}
    for world, each in itertools.islice(models.items(), MOST_WORLDS):
        panels[f"model trained on {in_words(world)}"] = each.arrays[f"{law} rolled"][0]
    return film(
        {name: tracks(points, n_bodies=2) for name, points in panels.items()},
        observed=_half(first[f"{law} true"][0]),
        dt=float(first[f"{law} dt"][0]),
        title=f"prompt of {in_words(law)}",
    )


def _exponents(results: Sequence[Result], path: Path) -> Path:
    """Draw the exponent of everybody against that of the prompts, and outside the training box."""
    own = [x for x in results if is_own(x)]
    truth = {
        law: together(mine).value
        for law, mine in by_prompt(x for x in own if x.case.variant == TRUE).items()
    }
    order = sorted(truth, key=truth.__getitem__)
    shifted: dict[str, list[Result]] = {}
    several = len({trained_on(x) for x in results}) > 1
    for result in results:
        if shift := result.case.setting.get(SHIFT):
            law = in_words(result.case.setting["prompt"])
            name = shift.replace("_", "\n") + (f"\n{law}" if several else "")
            shifted.setdefault(name, []).append(result)
    looks = Looks(results)
    with canvas(WIDTH, 8.0, nrows=2, sharey=True) as (figure, axes):
        headline(figure, TITLE)
        found = by_prompt(own)
        by_law = [(truth[law], found[law]) for law in order]
        by_shift = list(enumerate(shifted.values()))
        axes[0].set_xticks([truth[law] for law in order], list(map(in_words, order)))
        axes[1].set_xticks(range(len(shifted)), list(shifted))
        axes[0].set(
            xlabel="law of the prompt",
            ylabel="exponent of r, continuations",
            ylim=(LOWEST - 0.1, HIGHEST + 0.1),
        )
        ends = _panel(axes[0], by_law, looks, 0.012)
        _panel(axes[1], by_shift, looks, 0.04, joined=False)
        diagonal = [truth[order[0]] - 0.1, truth[order[-1]] + 0.1]
        axes[0].plot(diagonal, diagonal, "-", color=TRUTH, lw=0.9)
        ends.append(End("the prompt's own law", diagonal[1], diagonal[1], TRUTH))
        axes[1].set(xlabel="outside the training box", ylabel="exponent of r, continuations")
        axes[1].margins(x=0.1 if several else 0.3)
        for axis in axes:
            axis.grid(axis="y")
        label_ends(axes[0], ends)
        return save_figure(figure, path)


def _panel(
    axis: Axes,
    places: Sequence[tuple[float, Sequence[Result]]],
    looks: Looks,
    apart: float,
    joined: bool = True,
) -> list[End]:
    """Draw everybody's exponents at each place, side by side; return where their names stand."""
    everybody = [x for _, results in places for x in results]
    several = len({trained_on(x) for x in everybody}) > 1

    def name_of(result: Result) -> str:
        own = several and result.case.variant in (TABLE, FILTER)
        world = f", {in_words(trained_on(result))}" if own else ""
        if several and not is_control(result) and alone(result):
            twin = ", untrained" * (result.case.arm == "untrained")
            return f"{result.case.variant}{twin}, trained on {in_words(trained_on(result))}"
        return looks.name(result) + world

    def alone(result: Result) -> bool:
        """Return whether the world of its training tells a model from all others."""
        mine = (result.case.variant, trained_on(result))
        alike = [x for x in everybody if (x.case.variant, trained_on(x)) == mine]
        return len({looks.model(x) for x in alike if x.case.arm == result.case.arm}) == 1

    names = list(dict.fromkeys(name_of(x) for x in everybody if x.case.variant != TRUE))
    ends: dict[str, End] = {}
    for number, name in enumerate(names):
        groups = [(at, [x for x in some if name_of(x) == name]) for at, some in places]
        found = [(at, together(mine)) for at, mine in groups if mine]
        spans = np.clip([span for _, span in found], LOWEST, HIGHEST)
        first = next(x for x in everybody if name_of(x) == name)
        is_reference = is_control(first) or first.case.arm == "untrained"
        style = {**looks.style(first), **STYLES.get(first.case.variant, {})}
        style |= {"color": CONTROL} if first.case.arm == "untrained" else {}
        style |= {} if joined else {"linestyle": "none"}
        across = [at + apart * (number - len(names) / 2) for at, _ in found]
        axis.errorbar(
            across,
            spans[:, 0],
            yerr=bars(spans),
            elinewidth=1,
            lw=1.0 if is_reference else 1.8,
            **style,
        )
        last = int(np.argmax(across))
        text = "random weights" if several and first.case.arm == "untrained" else name
        ends.setdefault(text, End(text, across[last], spans[last, 0], style["color"]))
    return list(ends.values())


def _orbits(drawn: Mapping[str, Drawn], laws: Sequence[str], path: Path) -> Path:
    """Draw the same prompts as several models continue them."""
    shape = {"nrows": len(laws), "ncols": COLUMNS, "squeeze": False}
    with canvas(1.9 * COLUMNS, 1.4 + 1.9 * len(laws), **shape) as (figure, axes):
        headline(figure, "The same prompts, as their world goes on and as models do")
        for row, law in zip(axes, laws, strict=True):
            there = {name: x for name, x in drawn.items() if f"{law} dt" in x.arrays}
            for number, axis in enumerate(row):
                _orbit(axis, {name: x.arrays for name, x in there.items()}, law, number)
                for name, each in there.items():
                    rolled = each.arrays[f"{law} rolled"][number]
                    after = _planet(rolled)[_half(rolled) - 1 :]
                    look = {**each.style, "markersize": 2.5, "lw": 0.9}
                    axis.plot(*after.T, label=textwrap.fill(name, 40), **look)
            row[0].set_ylabel(f"prompt: {in_words(law)}", fontsize=8)
        figure.supxlabel("AU")
        legend(figure)
        return save_figure(figure, path)


def _orbit(
    axis: Axes, found: Mapping[str, Mapping[str, npt.NDArray]], law: str, number: int
) -> None:
    """Draw one prompt and its true continuation, and set the panel up around them."""
    true = next(iter(found.values()))[f"{law} true"][number]
    planet, half = _planet(true), _half(true)
    axis.plot(*planet[:half].T, ".-", color=PALE, ms=3, lw=0.8, label="prompt")
    axis.plot(*planet[half - 1 :].T, ".-", color=TRUTH, ms=3, lw=0.8, label="as its world goes on")
    low, high = planet.min(axis=0), planet.max(axis=0)
    (x, y), reach = (low + high) / 2, 0.75 * (high - low).max()
    axis.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
    axis.locator_params(nbins=TICKS)


def _planet(rows: npt.NDArray) -> npt.NDArray:
    return np.asarray(rows[1::2])


def _half(rows: npt.NDArray) -> int:
    return (len(rows) - 1) // 4
