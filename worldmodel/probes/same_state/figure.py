"""The figure of exchanges between systems in the same state: what each place in a model brings."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from orbits.runs.figure import WIDTH, canvas, headline, save_figure
from orbits.runs.page import Picture
from orbits.runs.plots import shares
from orbits.runs.result import Result, grouped
from orbits.runs.statistics import Interval
from worldmodel.probes.donors import ANOTHER_MASS, OTHER_LAW, RANDOM, SAME_LAW, WHOLE
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.looks import Looks, own_setting, rank, together

GREY = (
    "Grey numbers: the 95% interval holds 0, over trainings where there are three, else over "
    "sequences."
)


@dataclass(frozen=True)
class Drawing:
    """Contents of a figure.

    Attributes:
        name: Name of its file.
        title: Its headline.
        caption: What stands below it.
        panels: Setting of which each value has a panel.
        panel: Function of that value's title.
        donors: Donors of the lines.
        metric: Metric of the shares.
    """

    name: str
    title: str
    caption: str
    panels: str
    panel: Callable[[str], str]
    donors: tuple[str, ...]
    metric: str


LAW = Drawing(
    "exchange_law",
    "Where in the model is the law of the past kept? (1: all of its effect, 0: none)",
    "How much of the world's own change of the exponent an exchange of the residual stream brings "
    "about (1: all, 0: nothing), by the place in the model and the rows that are exchanged; first "
    "the model that is shown the other past itself. From a system of another law in the same "
    f"state, and below it of the same law, with masses that pull as hard there. {GREY}",
    "law",
    lambda law: f"{in_words(law)} in place of the own law",
    (OTHER_LAW, SAME_LAW),
    "share_exponent",
)
MASS = Drawing(
    "exchange_mass",
    "Where in the model is a mass kept that paths follow? (1: all of its effect, 0: none)",
    "How much of a mass's effect on both bodies' paths an exchange of the residual stream brings "
    "about (1: all, 0: nothing), by the place in the model and the rows that are exchanged; first "
    "the model that is shown the other past itself. The donor has another mass and is in the same "
    "state; what goes straight on through the last places is taken off. Below it, at the last "
    f"step and every row, a step of the same length in a random direction. {GREY}",
    "changed",
    lambda changed: f"another {changed}",
    (ANOTHER_MASS, RANDOM),
    "slope_mass",
)


def draw_all(results: Sequence[Result], out: Path, drawing: Drawing = LAW) -> list[Picture]:
    """Draw a panel for each law or mass; seeds of one model together."""
    donors = drawing.donors
    shown = [x for x in results if rank(x) == 0 and own_setting(x)["donor"] in donors]
    looks = Looks(shown)
    alike = grouped(shown, lambda x: (looks.model(x), *_place(x, drawing)))
    panels = list(dict.fromkeys(str(own_setting(x)[drawing.panels]) for x in shown))
    places = list(dict.fromkeys((own_setting(x)["after"], own_setting(x)["rows"]) for x in shown))
    lines = len(donors) * len({key[0] for key in alike})
    shape = {"nrows": len(panels), "sharex": True, "squeeze": False}
    height = 1.6 + (0.4 + 0.22 * lines) * len(panels)
    with canvas(max(WIDTH, 2.4 + 0.5 * len(places)), height, **shape) as (figure, axes):
        headline(figure, drawing.title)
        for (axis,), panel in zip(axes, panels, strict=True):
            table: dict[str, list[Interval | None]] = {}
            for model in dict.fromkeys(key[0] for key in alike):
                for donor in donors:
                    table[f"{model}, {donor}"] = [
                        _share(alike.get((model, panel, donor, *place), []), drawing.metric)
                        for place in places
                    ]
            shares(axis, table)
            axis.set_title(drawing.panel(panel), loc="left")
        labels = ["shown" if WHOLE in place else f"{place[0]}, {place[1]}" for place in places]
        axes[-1, 0].set_xticks(range(len(places)), labels, fontsize=8, rotation=90)
        return [
            Picture(drawing.caption, [save_figure(figure, out / "figures" / f"{drawing.name}.png")])
        ]


def _place(result: Result, drawing: Drawing) -> tuple[Any, ...]:
    """Return the panel of a result, its donor, and where in the model it was put in."""
    setting = own_setting(result)
    return (str(setting[drawing.panels]), *(setting[name] for name in ("donor", "after", "rows")))


def _share(alike: Sequence[Result], metric: str) -> Interval | None:
    return together(alike, metric) if alike else None
