"""The figure of the exchange probe: where in the model a changed mass takes effect."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orbits.runs.figure import WIDTH, canvas, headline, save_figure
from orbits.runs.page import Picture
from orbits.runs.plots import shares
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from worldmodel.probes.donors import CHANGED
from worldmodel.probes.looks import Looks, is_control, own_setting, rank, together
from worldmodel.probes.motion.residual import ROWS

CAPTION = (
    "How much of a mass's part of the true change an exchange brings about (slope; 1: all, 0: "
    "nothing), by the place in the model and the rows that are given the residual stream of the "
    "same system with another mass. The rest of the change, which the bodies' places account for, "
    "is taken off. Every row: the model as it answers for the other system. Grey numbers: the 95% "
    "interval holds 0, over trainings where there are three, else over sequences. Controls: random "
    "weights, a linear filter of places for motion, and for forces whoever takes the total mass "
    "from the planet's rows and its shares from the star's."
)
TITLE = "Where in the model does a changed mass act? (1: all of its effect, 0: none)"
WHAT = {"force": "the force", "planet": "the planet's next place", "star": "the star's next place"}


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a panel for each quantity and changed mass; seeds of one model together."""
    shown = [x for x in results if own_setting(x)["donor"] == CHANGED]
    looks = Looks(shown)
    stages = list(dict.fromkeys(str(x.case.setting["after"]) for x in shown))
    places = [(stage, rows) for stage in stages for rows in ROWS]
    panels = dict.fromkeys((str(x.case.setting["of"]), x.case.setting["changed"]) for x in shown)
    tables = {
        f"{changed} changed, effect on {WHAT.get(of, of)}": _table(
            [x for x in shown if {"of": of, "changed": changed}.items() <= own_setting(x).items()],
            looks,
            places,
        )
        for of, changed in panels
    }
    heights = [len(table) for table in tables.values()]
    shape = {"nrows": len(tables), "height_ratios": heights, "squeeze": False, "sharex": True}
    with canvas(WIDTH + 0.6, 0.9 + 0.4 * len(tables) + 0.2 * sum(heights), **shape) as (
        figure,
        axes,
    ):
        headline(figure, TITLE)
        for (axis,), (title, table) in zip(axes, tables.items(), strict=True):
            shares(axis, table)
            axis.set_title(title, loc="left")
        labels = [f"{'input' if s == 'embedding' else s}\n{rows}" for s, rows in places]
        axes[-1, 0].set_xticks(range(len(places)), labels, fontsize=8)
        axes[-1, 0].set_xlabel("after which block, and whose rows are exchanged")
        path = save_figure(figure, out / "figures" / "exchange.png")
        return [Picture(CAPTION, [path])]


def _table(
    results: Sequence[Result], looks: Looks, places: Sequence[tuple[str, str]]
) -> dict[str, list[Interval | None]]:
    """Return the shares of each model and place: trained models, random weights, controls."""
    trained = {looks.model(x): x.case.variant for x in results if rank(x) == 0}
    short = len(set(trained.values())) == len(trained)  # the panel says what each predicts
    found: dict[str, dict[tuple[str, str], list[Result]]] = {}
    for result in sorted(results, key=rank):
        setting = own_setting(result)
        where = str(setting["after"]), str(setting["rows"])
        name = result.case.variant if short or is_control(result) else looks.model(result)
        name += ", untrained" * (rank(result) == 1)
        found.setdefault(name, {}).setdefault(where, []).append(result)
    return {
        name: [together(mine[x], "slope_mass") if x in mine else None for x in places]
        for name, mine in found.items()
    }
