"""How the figures of probes look: who is named and drawn how."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import matplotlib

matplotlib.use("Agg")
import numpy as np
import numpy.typing as npt
from matplotlib.figure import Figure

from worldmodel.palette import COLOURS, CONTROL, CONTROL_MARKERS, MARKERS

Array = npt.NDArray[np.float64]
Line = Mapping[str, Any]

NO_MODEL = ("oracle", "ceiling", "control")
"""Arms whose lines no checkpoint answered."""


class Looks:
    """Names, colours and markers of those who answered some lines.

    Seeds of one model have one look. What tells a model from others among these lines, be it the
    law that it was trained on, its size, its steps or its labels, stands in its name. An untrained
    twin has the look of its model, but is hollow and dashed; controls are grey and dotted.
    """

    def __init__(self, lines: Sequence[Line]) -> None:
        models = [line for line in lines if not is_control(line)]
        facts = [set(_facts(line)) for line in models]
        self._shared = set.intersection(*facts) if facts else set()
        self._models = list(dict.fromkeys(_identity(line) for line in models))
        controls = [line for line in lines if is_control(line)]
        self._controls = list(dict.fromkeys(self.model(line) for line in controls))

    def model(self, line: Line) -> str:
        """Return the name of the model, or of the control, that a line is of."""
        row = line["row"]
        if is_control(line):
            return str(row["model"])
        own = [fact for fact in _facts(line) if fact not in (*self._shared, row["arm"])]
        return f"{row['model']} ({', '.join(own)})" if own else str(row["model"])

    def who(self, line: Line) -> str:
        """Return who answered a line: the model and its arm."""
        return self.model(line) + ("" if is_control(line) else f", {line['row']['arm']}")

    def colour(self, line: Line) -> str:
        """Return the colour of the model."""
        return COLOURS[self._number(line) % len(COLOURS)]

    def style(self, line: Line) -> dict[str, Any]:
        """Return the look of a curve through points, as arguments of matplotlib."""
        if is_control(line):
            number = self._controls.index(self.model(line))
            marker = CONTROL_MARKERS[number % len(CONTROL_MARKERS)]
            return {"color": CONTROL, "linestyle": ":", "marker": marker}
        twin, colour = line["row"]["arm"] == "untrained", self.colour(line)
        return {
            "color": colour,
            "linestyle": "--" if twin else "-",
            "marker": MARKERS[self._number(line) % len(MARKERS)],
            "markerfacecolor": "white" if twin else colour,
        }

    def first_of_each(self, lines: Sequence[Line], role: str) -> list[Line]:
        """Return a line with a file of this role for each model: that of its first seed."""
        drawn = [line for line in lines if role in line["files"]]
        first: dict[str, Line] = {}
        for line in sorted(drawn, key=lambda line: (self._number(line), line["row"]["seed"])):
            first.setdefault(self.who(line), line)
        return list(first.values())

    def _number(self, line: Line) -> int:
        return self._models.index(_identity(line))


def is_control(line: Line) -> bool:
    """Return whether no checkpoint answered."""
    return line["row"]["arm"] in NO_MODEL


def world_of(lines: Sequence[Line]) -> str:
    """Return the world of the lines of a run, and where all models come from if from elsewhere."""
    row = lines[0]["row"]
    (law, *others) = {line["row"]["trained_on"] for line in lines}
    elsewhere = "" if others or law == row["law"] else f", trained on {law}"
    return f"{row['protocol']}, {row['law']}{elsewhere}"


def without_repeats(lines: Sequence[Line]) -> list[Line]:
    """Return the lines without what a control says of one checkpoint more."""
    names = once([line["row"]["model"] if is_control(line) else None for line in lines])
    return [line for line, name in zip(lines, names, strict=True) if name or not is_control(line)]


def once(names: Sequence[str | None]) -> list[str | None]:
    """Return labels for a legend: None where a name has had its entry."""
    return [None if name in names[:number] else name for number, name in enumerate(names)]


def bars(spans: Array) -> Array:
    """Return lengths of error bars, [2, n], for rows of value, low, high."""
    # Rounding may leave a value a hair outside its interval, which matplotlib refuses.
    return np.maximum([spans[:, 0] - spans[:, 1], spans[:, 2] - spans[:, 0]], 0.0)


def bare(figure: Figure) -> Figure:
    """Return a figure without the frames of its panels."""
    for axis in figure.axes:
        axis.spines[["top", "right"]].set_visible(False)
        axis.tick_params(labelsize=8)
    return figure


def _facts(line: Line) -> list[str]:
    """Return in what a model may differ from another one of its name."""
    row, arm = line["row"], line["subject"]["arm"]  # of a twin, what its model was trained for
    facts = [arm, f"trained on {row['trained_on']}", *row["size"].split(", ")]
    facts += [f"{row[name]} {name}" for name in ("steps", "labels") if row.get(name) is not None]
    return facts


def _identity(line: Line) -> tuple[str, ...]:
    return (line["row"]["model"], *_facts(line))
