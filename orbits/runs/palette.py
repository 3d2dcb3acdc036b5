"""Colours, lines and markers: one for one attention or world in every figure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#56B4E9", "#CC79A7", "#E69F00")
"""Colours of series that the colour-blind can tell apart: blue, vermilion, green, sky blue, purple,
orange, which is the Sun's where a figure has one."""
SUN = COLOURS[5]
MARKERS = ("o", "s", "^", "D", "v", "P", "X")
"""Markers of series: with six colours, seven markers make 42 series before a pair recurs."""
LINES = ("-", "--", ":")
CONTROL = "#5c6670"
"""Grey, for controls."""
ALL = (*COLOURS, CONTROL)
"""Colours of families; grey where the others are taken."""
PALE = "#bcc3ca"
"""Light grey, for the background: prompts, zero lines, paths."""
SHADES = ((-1.0, "#D55E00"), (0.0, "#FFFFFF"), (1.0, "#0072B2"))
"""Grounds of shares: white for none, blue up to all, vermilion where the sign is wrong."""
CONTROL_MARKERS = ("x", "+", "*", "1")
TRUTH = "#222222"
OWN = {
    **dict.fromkeys(("softmax", "softmax_reweighted", "newton"), 0),
    **dict.fromkeys(("lssar", "power_1_5"), 1),
    **dict.fromkeys(("lssa", "power_2_5"), 2),
    **dict.fromkeys(("sigmoid", "sigmoid_reweighted", "harmonic"), 3),
    **dict.fromkeys(("lazy", "elastic", "softened"), 4),
    **dict.fromkeys(("zeros", "zeros_sm", "yukawa"), 5),
}
"""Numbers of the colours of attentions by the first word of their label, and of worlds."""
FIRST = {"softmax": 0, "lssar p=15": 1, "lssa": 2, "sigmoid": 3, "lazy": 4, "zeros": 5}
"""Numbers of the markers of attentions that most figures have; their lines are solid."""


def looks(names: Sequence[str], families: Sequence[str] | None = None) -> dict[str, dict[str, Any]]:
    """Return colour, line and marker of each series, as arguments of matplotlib.

    A family has one colour, which for known attentions and worlds is the same in every figure.
    Lines and markers tell its members apart.

    Args:
        names: Names of the series.
        families: Family of each series, which decides its colour; None for the attention that its
            name begins with, or the whole name.
    """
    families = families or list(map(attention_of, names))
    own = {family: OWN[family] for family in dict.fromkeys(families) if family in OWN}
    for family in dict.fromkeys(families):
        if family not in own:
            used = list(own.values())
            own[family] = min(range(len(ALL)), key=lambda number: (used.count(number), number))
    found: dict[str, dict[str, Any]] = {}
    for name, family in sorted(
        zip(names, families, strict=True), key=lambda pair: pair[0] not in FIRST
    ):
        if name not in found:
            number = own[family]
            first = FIRST.get(name, number)
            found[name] = _free(ALL[number], first, list(found.values()))
    return {name: found[name] for name in names}


def own_colour(name: str) -> str:
    """Return the colour that an attention has in every figure; grey for any other."""
    return COLOURS[OWN[family]] if (family := attention_of(name)) in OWN else CONTROL


def attention_of(name: str) -> str:
    """Return the attention that a label begins with, if it has a colour; else the label."""
    first = re.split(r"[ ,]", name, maxsplit=1)[0]
    return first if first in OWN else name


def shade(colour: str, number: int) -> str:
    """Return a colour as it is, darker or lighter, in turn by number.

    >>> [shade("#0072B2", number) for number in range(3)]
    ['#0072B2', '#003959', '#80b8d8']
    """
    if number % 3 == 0:
        return colour
    ground, share = ((0, 0.5), (255, 0.5))[number % 3 - 1]
    parts = (int(colour[place : place + 2], 16) for place in (1, 3, 5))
    return "#" + "".join(f"{round((1 - share) * x + share * ground):02x}" for x in parts)


def _free(colour: str, first: int, taken: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Return the look of a colour with the first line and marker that none of its series has."""
    lines, markers = ({x[key] for x in taken if x["color"] == colour} for key in ("ls", "marker"))
    free_lines = [line for line in LINES if line not in lines]
    free_markers = [x for x in (*MARKERS[first:], *MARKERS[:first]) if x not in markers]
    return {
        "color": colour,
        "ls": (free_lines or LINES[-1:])[0],
        "marker": (free_markers or MARKERS)[0],
    }
