"""The figure of the exchange-law probe: where in the model the law that a past obeyed is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from orbits.runs.figure import WIDTH, canvas, headline, save_figure
from orbits.runs.page import Picture
from orbits.runs.plots import shares
from orbits.runs.result import Result
from orbits.runs.statistics import Interval
from worldmodel.probes.donors import OTHER_LAW, SAME_LAW, WHOLE
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.looks import Looks, own_setting, rank, together

CAPTION = (
    "How much of the world's own change of the exponent an exchange of the residual stream brings "
    "about (1: all, 0: nothing), by the place in the model and the rows that are exchanged; first "
    "the model that is shown the other past itself. From a system of another law in the same "
    "state, and below it of the same law, with masses that pull as hard there. Grey numbers: the "
    "95% interval holds 0, over trainings where there are three, else over sequences."
)
TITLE = "Where in the model is the law of the past kept? (1: all of its effect, 0: none)"


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a panel for each other law; seeds of one model together."""
    donors = (OTHER_LAW, SAME_LAW)
    shown = [x for x in results if rank(x) == 0 and own_setting(x)["donor"] in donors]
    looks = Looks(shown)
    worlds = list(dict.fromkeys(str(own_setting(x)["law"]) for x in shown))
    places = list(dict.fromkeys((own_setting(x)["after"], own_setting(x)["rows"]) for x in shown))
    lines = 2 * len({looks.model(x) for x in shown})
    shape = {"nrows": len(worlds), "sharex": True, "squeeze": False}
    height = 1.6 + (0.4 + 0.22 * lines) * len(worlds)
    with canvas(max(WIDTH, 2.4 + 0.5 * len(places)), height, **shape) as (figure, axes):
        headline(figure, TITLE)
        for (axis,), law in zip(axes, worlds, strict=True):
            table: dict[str, list[Interval | None]] = {}
            for model in dict.fromkeys(map(looks.model, shown)):
                for donor in donors:
                    wanted = {"law": law, "donor": donor}
                    table[f"{model}, {donor}"] = [
                        _share(
                            [
                                x
                                for x in shown
                                if looks.model(x) == model
                                and {**wanted, "after": after, "rows": rows}.items()
                                <= own_setting(x).items()
                            ]
                        )
                        for after, rows in places
                    ]
            shares(axis, table)
            axis.set_title(f"{in_words(law)} in place of the own law", loc="left")
        labels = ["shown" if WHOLE in place else f"{place[0]}, {place[1]}" for place in places]
        axes[-1, 0].set_xticks(range(len(places)), labels, fontsize=8, rotation=90)
        return [Picture(CAPTION, [save_figure(figure, out / "figures" / "exchange_law.png")])]


def _share(alike: Sequence[Result]) -> Interval | None:
    return together(alike, "share_exponent") if alike else None
