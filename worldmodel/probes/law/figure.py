"""The figure of the exchange-law probe: where in the model the law that a past obeyed is kept."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from orbits.runs.figure import TRUTH, canvas, legend, save_figure
from orbits.runs.page import Picture
from orbits.runs.result import Result
from worldmodel.probes.implied.asked import in_words
from worldmodel.probes.law.exchange import OTHER_LAW, SAME_LAW, WHOLE
from worldmodel.probes.looks import Looks, bars, is_control, own_setting, together, world_of

CAPTION = (
    "How much of the world's own change of the exponent an exchange of the residual stream brings "
    "about (1: all, 0: nothing), by the place in the model and the rows that are exchanged; first "
    "the model that is shown the other past itself. Filled: from a system of another law in the "
    "same state; hollow: of the same law, with masses that pull as hard there. Bars: 95% over "
    "trainings where there are three, else over sequences."
)


def draw_all(results: Sequence[Result], out: Path) -> list[Picture]:
    """Draw a panel for each other law; seeds of one model together."""
    shown = [
        x
        for x in results
        if not is_control(x)
        and x.case.arm != "untrained"
        and own_setting(x)["donor"] in (OTHER_LAW, SAME_LAW)
    ]
    looks = Looks(shown)
    names = list(dict.fromkeys(looks.name(x) for x in shown))
    worlds = list(dict.fromkeys(str(own_setting(x)["law"]) for x in shown))
    places = list(dict.fromkeys((own_setting(x)["after"], own_setting(x)["rows"]) for x in shown))
    shape = {"nrows": len(worlds), "sharex": True, "squeeze": False}
    with canvas(1.6 + 0.4 * len(places), 1.8 + 2.4 * len(worlds), **shape) as (figure, axes):
        for (axis,), law in zip(axes, worlds, strict=True):
            for number, place in enumerate(places):
                for k, (name, donor) in enumerate(
                    (name, donor) for name in names for donor in (OTHER_LAW, SAME_LAW)
                ):
                    wanted = {"law": law, "after": place[0], "rows": place[1], "donor": donor}
                    alike = [
                        x
                        for x in shown
                        if looks.name(x) == name and wanted.items() <= own_setting(x).items()
                    ]
                    shift = 0.7 * (k + 0.5) / (2 * len(names)) - 0.35
                    span = np.array([together(alike, "share_exponent")])
                    look = {**looks.style(alike[0]), "linestyle": "none", "ms": 4}
                    if donor == SAME_LAW:
                        look["markerfacecolor"] = "white"
                    x, y = number + shift, span[:, 0]
                    label = f"{name}: {donor}"
                    axis.errorbar(x, y, bars(span), capsize=2, label=label, **look)
            for height in (0, 1):
                axis.axhline(height, color=TRUTH if height else "#999999", lw=0.8, ls=":")
            axis.set_title(f"{in_words(law)} in place of the own law", fontsize=10)
            axis.set_ylabel("share of the exponent's change", fontsize=8)
        labels = ["shown" if WHOLE in place else f"{place[0]}, {place[1]}" for place in places]
        axes[-1, 0].set_xticks(range(len(places)), labels, fontsize=7, rotation=90)
        legend(figure, world_of(results))
        return [Picture(CAPTION, [save_figure(figure, out / "figures" / "exchange_law.png")])]
