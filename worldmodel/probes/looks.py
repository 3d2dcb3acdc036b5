"""Names, colours and markers of models and controls in the figures of probes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from orbits.runs import trainings
from orbits.runs.palette import CONTROL, CONTROL_MARKERS, attention_of, looks, shade
from orbits.runs.result import Result, grouped
from orbits.runs.statistics import Interval

Array = npt.NDArray[np.float64]

NO_MODEL = ("oracle", "ceiling", "control")
"""Arms of controls, oracles and ceilings."""
OF_CHECKPOINT = ("trained_on", "size", "trained_steps", "trained_labels")
"""Names in a setting that tell checkpoints apart; ``steps`` and ``labels`` beside them are those
of a probe's own trainings."""


class Looks:
    """Names, colours and markers of the models and controls of some results.

    Seeds of one model have one look. What tells a model from others among these results, be it the
    law that it was trained on, its size, its steps or its labels, stands in its name. An untrained
    twin has the look of its model, but is hollow and dashed; controls are grey and dotted.
    """

    def __init__(self, results: Sequence[Result]) -> None:
        models = [result for result in results if not is_control(result)]
        facts = [set(_facts(result)) for result in models]
        self._shared = set.intersection(*facts) if facts else set()
        self._models = list(dict.fromkeys(_identity(result) for result in models))
        self._styles = looks(list(map(str, self._models)), self._families())
        self._shades = self._own_shades()
        controls = [result for result in results if is_control(result)]
        self._controls = list(dict.fromkeys(self.model(result) for result in controls))

    def model(self, result: Result) -> str:
        """Return the name of the model, or of the control."""
        name, arm = result.case.variant, result.case.arm
        if is_control(result):
            return name
        own = [fact for fact in _facts(result) if fact not in (*self._shared, arm)]
        return f"{name} ({', '.join(own)})" if own else name

    def name(self, result: Result) -> str:
        """Return the name of the model with its arm, or of the control."""
        return self.model(result) + ("" if is_control(result) else f", {result.case.arm}")

    def colour(self, result: Result) -> str:
        """Return the colour of the model."""
        return self._shades[str(_identity(result))]

    def style(self, result: Result) -> dict[str, Any]:
        """Return the look of a curve through points, as arguments of matplotlib."""
        if is_control(result):
            number = self._controls.index(self.model(result))
            marker = CONTROL_MARKERS[number % len(CONTROL_MARKERS)]
            return {"color": CONTROL, "linestyle": ":", "marker": marker}
        twin, style = result.case.arm.startswith("untrained"), self._styles[str(_identity(result))]
        return {
            "color": self.colour(result),
            "linestyle": "--" if twin else "-",
            "marker": style["marker"],
            "markerfacecolor": "white" if twin else self.colour(result),
        }

    def first_of_each(self, results: Sequence[Result], role: str) -> list[Result]:
        """Return a result with a file of this role for each model: that of its first seed."""
        with_file = [result for result in results if role in result.files]
        first: dict[str, Result] = {}
        for result in sorted(with_file, key=lambda x: (self._number(x), x.case.seed or 0)):
            first.setdefault(self.name(result), result)
        return list(first.values())

    def _families(self) -> list[str]:
        """Return the name that decides the colour of each model: its attention, or else its world.

        Where several share an attention, the worlds of their training tell them apart; models that
        share both have shades of their attention's colour.
        """
        variants, worlds = ([x[part] for x in self._models] for part in (0, 2))
        if len(set(variants)) == len(variants):
            return [attention_of(variant) for variant in variants]
        if len({*zip(variants, worlds, strict=True)}) == len(variants):
            return [world.removeprefix("trained on ") for world in worlds]
        return [attention_of(variant) for variant in variants]

    def _own_shades(self) -> dict[str, str]:
        """Return the colour of each model, in shades where attention and world are shared."""
        in_shades = len({(x[0], x[2]) for x in self._models}) < len(self._models)
        found: dict[str, str] = {}
        for name in map(str, self._models):
            colour = self._styles[name]["color"]
            alike = sum(self._styles[each]["color"] == colour for each in found)
            found[name] = shade(colour, alike * in_shades)
        return found

    def _number(self, result: Result) -> int:
        return self._models.index(_identity(result))


def own_setting(result: Result) -> dict[str, Any]:
    """Return the part of a setting that does not describe the checkpoint."""
    return {k: v for k, v in result.case.setting.items() if k not in OF_CHECKPOINT}


def is_control(result: Result) -> bool:
    """Return whether a result is of a control, an oracle or a ceiling."""
    return result.case.arm in NO_MODEL


def rank(result: Result) -> int:
    """Return 0 for trained models, 1 for random weights, 2 for controls."""
    return 2 if is_control(result) else int(result.case.arm.startswith("untrained"))


def trained_models(results: Sequence[Result]) -> dict[str, list[Result]]:
    """Return the results of trained models by the names that the models have in figures."""
    return grouped([x for x in results if rank(x) == 0], Looks(results).model)


def trained_on(result: Result) -> str:
    """Return the law of the world that a result's checkpoint was trained on."""
    return str(_checkpoint(result)["trained_on"])


def together(seeds: Sequence[Result], metric: str) -> Interval:
    """Return a metric over the seeds of a model (:func:`orbits.runs.trainings.together`)."""
    return trainings.together([result.metrics[metric] for result in seeds])


def world_of(results: Sequence[Result]) -> str:
    """Return the world of a run's results, and that of the training if all models share another."""
    case = results[0].case
    (law, *others) = set(map(trained_on, results))
    elsewhere = "" if others or law == case.law else f", trained on {law}"
    return f"{case.protocol}, {case.law}{elsewhere}"


def without_repeats(results: Sequence[Result]) -> list[Result]:
    """Return the results without those of a control for one checkpoint more."""
    names = once([result.case.variant if is_control(result) else None for result in results])
    return [x for x, name in zip(results, names, strict=True) if name or not is_control(x)]


def once(names: Sequence[str | None]) -> list[str | None]:
    """Return labels for a legend: None where a name has had its entry."""
    return [None if name in names[:number] else name for number, name in enumerate(names)]


def bars(spans: Array) -> Array:
    """Return lengths of error bars, [2, n], for rows of value, low, high."""
    # Rounding may leave a value a hair outside its interval, which matplotlib refuses.
    return np.maximum([spans[:, 0] - spans[:, 1], spans[:, 2] - spans[:, 0]], 0.0)


def _checkpoint(result: Result) -> Mapping[str, Any]:
    row: Mapping[str, Any] = result.details["checkpoint"]
    return row


def _facts(result: Result) -> list[str]:
    """Return the facts that tell models of one name apart."""
    row = _checkpoint(result)  # its arm is that of the model, also for an untrained twin
    facts = [row["arm"], f"trained on {trained_on(result)}", *row["size"].split(", ")]
    facts += [f"{row[name]} {name}" for name in ("steps", "labels") if row.get(name) is not None]
    return facts


def _identity(result: Result) -> tuple[str, ...]:
    return (result.case.variant, *_facts(result))
