"""Figures of the implied-law probe: exponents by prompt, and prompts as models continue them."""

from __future__ import annotations

import textwrap
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes

from orbits.runs import artefact, folder
from orbits.runs.figure import TRUTH, canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.controls.linear_autoregression import FILTER
from worldmodel.controls.orbit_table import TABLE
from worldmodel.probes.implied.asked import SHIFT, in_words
from worldmodel.probes.implied.references import IN_BINS, TRUE
from worldmodel.probes.implied.words import by_prompt, is_own, together
from worldmodel.probes.looks import Looks, is_control

CAPTIONS = {
    "implied_law_exponents": (
        "Exponent of the distance that continuations obey along each orbit, by the law of the "
        "prompt: mean of the trainings with its 95% interval, or over sequences. Diagonal: the "
        "law of the prompt. A horizontal line is one law for all prompts: a world model's own, or "
        "that of a table of its training orbits. Right: orbits of the training's law that are "
        "closer or more eccentric than in its training. What lies beyond the panel is at its edge."
    ),
    "implied_law_orbits": (
        "The same prompts (grey), as their world goes on (black) and as models go on that were "
        "trained in other worlds (colours); AU, planets alone. A row for each law of the prompts."
    ),
}
HIGHEST, LOWEST = 1.0, -3.5
"""Exponents at which the panel ends: whatever has no attraction lies beyond."""
COLUMNS = 4
STYLES: Mapping[str, dict[str, Any]] = {
    TABLE: {"color": TRUTH, "linestyle": "-.", "marker": "s", "markerfacecolor": "white"},
    IN_BINS: {"color": TRUTH, "linestyle": ":", "marker": "."},
}
"""Looks of two references."""


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw every figure into ``out/figures``."""
    own = [result for result in results if is_own(result)]
    paths = {name: out / "figures" / f"{name}.png" for name in CAPTIONS}
    files = {
        "implied_law_exponents": _exponents(results, paths["implied_law_exponents"]),
        "implied_law_orbits": _orbits(own, out, paths["implied_law_orbits"]),
    }
    return [Picture(CAPTIONS[name], [path]) for name, path in files.items() if path]


def _exponents(results: Sequence[Result], path: Path) -> Path | None:
    """Draw the exponent of everybody against that of the prompts, and outside the training box."""
    own = [x for x in results if is_own(x)]
    truth = {
        law: together(mine).value
        for law, mine in by_prompt(x for x in own if x.case.variant == TRUE).items()
    }
    order = sorted(truth, key=truth.__getitem__)
    shifted: dict[str, list[Result]] = {}
    several = len({_trained_on(x) for x in results}) > 1
    for result in results:
        if shift := result.case.setting.get(SHIFT):
            law = in_words(result.case.setting["prompt"])
            name = shift.replace("_", "\n") + (f"\n{law}" if several else "")
            shifted.setdefault(name, []).append(result)
    looks = Looks(results)
    with canvas(9.6, 5.6, ncols=2, width_ratios=[3, 2], sharey=True) as (figure, axes):
        ends = [truth[order[0]] - 0.1, truth[order[-1]] + 0.1]
        axes[0].plot(ends, ends, "-", color=TRUTH, lw=0.9, label="the prompt's own law")
        found = by_prompt(own)
        by_law = [(truth[law], found[law]) for law in order]
        by_shift = list(enumerate(shifted.values()))
        _panel(axes[0], by_law, looks, 0.012)
        _panel(axes[1], by_shift, looks, 0.04)
        axes[0].set_xticks([truth[law] for law in order], list(map(in_words, order)))
        axes[1].set_xticks(range(len(shifted)), list(shifted), fontsize=7 if several else None)
        axes[0].set(
            xlabel="law of the prompt",
            ylabel="exponent of r along its continuations",
            ylim=(LOWEST - 0.1, HIGHEST + 0.1),
        )
        axes[1].set_xlabel("orbits outside the training box")
        axes[1].margins(x=0.1 if several else 0.3)
        legend(figure)
        return save_figure(figure, path)


def _panel(
    axis: Axes, places: Sequence[tuple[float, Sequence[Result]]], looks: Looks, apart: float
) -> None:
    """Draw everybody's exponents at each place, side by side."""
    everybody = [x for _, results in places for x in results]
    several = len({_trained_on(x) for x in everybody}) > 1

    def name_of(result: Result) -> str:
        own = several and result.case.variant in (TABLE, FILTER)
        world = f" of the world of {in_words(_trained_on(result))}" if own else ""
        return looks.name(result) + world

    names = list(dict.fromkeys(name_of(x) for x in everybody if x.case.variant != TRUE))
    for number, name in enumerate(names):
        groups = [(at, [x for x in some if name_of(x) == name]) for at, some in places]
        found = [(at, together(mine)) for at, mine in groups if mine]
        spans = np.clip([span for _, span in found], LOWEST, HIGHEST)
        first = next(x for x in everybody if name_of(x) == name)
        axis.errorbar(
            [at + apart * (number - len(names) / 2) for at, _ in found],
            spans[:, 0],
            yerr=np.maximum([spans[:, 0] - spans[:, 1], spans[:, 2] - spans[:, 0]], 0),
            label=name,
            elinewidth=1,
            lw=1.0 if is_control(first) else 1.8,
            **{**looks.style(first), **STYLES.get(first.case.variant, {})},
        )


def _orbits(results: Sequence[Result], out: Path, path: Path) -> Path | None:
    """Draw the same prompts as several models continue them."""
    looks = Looks(results)
    found = {
        looks.model(result): (artefact.load_arrays(file)[0], looks.style(result))
        for result in looks.first_of_each(results, "orbits")
        if (file := folder.file(out, result, "orbits"))
    }
    if not found:
        return None
    laws = list(by_prompt(results))
    shape = {"nrows": len(laws), "ncols": COLUMNS, "squeeze": False}
    with canvas(2.6 * COLUMNS, 0.8 + 2.6 * len(laws), **shape) as (figure, axes):
        for row, law in zip(axes, laws, strict=True):
            there = {name: pair for name, pair in found.items() if f"{law} true" in pair[0]}
            if not there:
                continue
            for number, axis in enumerate(row):
                _orbit(axis, {name: arrays for name, (arrays, _) in there.items()}, law, number)
                for name, (arrays, style) in there.items():
                    rolled = arrays[f"{law} rolled"][number]
                    after = _planet(rolled)[_half(rolled) - 1 :]
                    look = {**style, "markersize": 3, "lw": 0.9}
                    axis.plot(*after.T, label=textwrap.fill(name, 40), **look)
            row[0].set_ylabel(f"prompt of {in_words(law)}", fontsize=8)
        legend(figure)
        return save_figure(figure, path)


def _orbit(
    axis: Axes, found: Mapping[str, Mapping[str, npt.NDArray]], law: str, number: int
) -> None:
    """Draw one prompt and its true continuation, and set the panel up around them."""
    true = next(iter(found.values()))[f"{law} true"][number]
    planet, half = _planet(true), _half(true)
    axis.plot(*planet[:half].T, ".-", color="#aaaaaa", ms=3, lw=0.8, label="prompt")
    axis.plot(*planet[half - 1 :].T, ".-", color=TRUTH, ms=3, lw=0.8, label="as its world goes on")
    low, high = planet.min(axis=0), planet.max(axis=0)
    (x, y), reach = (low + high) / 2, 0.75 * (high - low).max()
    axis.set(xlim=(x - reach, x + reach), ylim=(y - reach, y + reach), aspect="equal")
    axis.tick_params(labelsize=7)


def _trained_on(result: Result) -> str:
    return str(result.details["checkpoint"]["trained_on"])


def _planet(rows: npt.NDArray) -> npt.NDArray:
    return np.asarray(rows[1::2])


def _half(rows: npt.NDArray) -> int:
    return (len(rows) - 1) // 4
