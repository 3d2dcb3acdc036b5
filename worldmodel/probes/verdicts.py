"""The verdict of each probe: trained models beside random weights and other controls.

A number of a trained model is no evidence by itself: the sentence says what the same model with
random weights has, and the best control, which is no model of orbits at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from orbits.runs.result import Result, grouped
from orbits.runs.statistics import Comparison, compare
from orbits.runs.verdict import Seeds, shown
from worldmodel.controls.names import TABLE
from worldmodel.probes.implied.names import in_words
from worldmodel.probes.looks import own_setting, trained_on
from worldmodel.probes.quantities import QUANTITIES, UNDECLARED

TRAINED = ("pretrained", "outside")
"""Arms of world models, ours and those from outside; probes of heads have others."""
UNTRAINED = ("untrained", "untrained + ridge")
TABLES = ("k-NN on the true state", "2-NN on the true state")
"""Look-up tables of the true state, of which some stand among the oracles."""

NEAR = 0.25
"""Largest difference of exponents that counts as equal; laws are 0.5 apart."""


@dataclass(frozen=True)
class Asked:
    """The question that a probe's verdict answers.

    Attributes:
        words: The question that the metric answers, before the numbers.
        metric: Name of the metric.
        where: The setting of the results that are looked at.
        unit: Unit, written behind a number.
        lower: Whether a lower value is better.
        form: Format of a number.
        beside: The setting of the controls; that of ``where`` if None.
    """

    words: str
    metric: str
    where: Mapping[str, Any] = field(default_factory=dict)
    unit: str = ""
    lower: bool = False
    form: str = ".3g"
    beside: Mapping[str, Any] | None = None


ASKED: Mapping[str, Sequence[Asked]] = {
    "rollout": (
        Asked(
            "How far from its true place is the planet put, one step ahead?",
            "planet_error",
            {"asked": "next point"},
            " AU",
            lower=True,
        ),
    ),
    "causal": tuple(
        Asked(
            f"Does the planet's path bend as it should when {mass} is changed (1: yes, 0: it does "
            "not change)?",
            "agreement",
            {"changed": mass, "of": "planet bend"},
        )
        for mass in ("m1", "m2")
    ),
    "exchange": tuple(
        Asked(
            f"How much of {mass}'s effect on the planet's next place comes with {words}, when they "
            "are exchanged (1: all, 0: none)?",
            "slope_mass",
            {
                "changed": mass,
                "of": "planet",
                "after": after,
                "rows": rows,
                "donor": "changed system",
            },
            form=".2f",
        )
        for after, rows, words in (
            ("block 1", "star", "the star's rows, which predict it, after block 1"),
            ("embedding", "planet", "the planet's rows of the input"),
        )
        for mass in ("m1", "m2")
    ),
    "linear": (
        Asked(
            "How well does a linear map read ln F after the last block (R²)?",
            "r2_log_force",
            {"layer": "final norm"},
            beside={"layer": "last 24 places"},
        ),
    ),
    "force_vector": (
        Asked(
            "By what angle do fine-tuned force arrows miss the Sun?",
            "angle_deg",
            {"planet": "all"},
            "°",
            lower=True,
        ),
    ),
    "force_magnitude": tuple(
        Asked(
            f"Does a force head know ln F on {words} (R²)?",
            "r2_log",
            {"rows": rows, "leak": leak},
        )
        for words, rows, leak in (
            ("new sequences, test labels leaked", "fresh sequences", 2),
            ("those leaked labels", "leaked labels", 2),
            ("new sequences, where none leaked", "fresh sequences", 0),
        )
    ),
    "inductive_bias": (
        Asked(
            "Do equal states get equal answers from a model that learns new functions (R-IB, 1: "
            "always)?",
            "r_ib",
        ),
    ),
}
"""Verdict questions of the probes that say no sentence of their own."""


def verdict(name: str, results: Sequence[Result]) -> list[str]:
    """Return the verdict of a probe in a sentence for each thing asked; none for other probes."""
    if name == "implied_law":
        return _implied(results)
    return [said for asked in ASKED.get(name, ()) for said in _sentences(asked, results)]


def speaks_of(name: str, result: Result) -> bool:
    """Return whether the first sentence of a probe's verdict is about results such as this one."""
    setting = own_setting(result)
    where = next((asked.where for asked in ASKED.get(name, ())), {})
    return bool(where) and all(setting.get(key) == value for key, value in where.items())


def _implied(results: Sequence[Result]) -> list[str]:
    """Say by which exponents models go on over all prompts, beside a table of training orbits."""
    said = []
    for law, of_law in grouped(results, trained_on).items():
        here = [
            x
            for x in of_law
            if "exponent_within" in x.metrics
            and own_setting(x).keys() <= {"asked", "prompt", "trained_on"}
            and own_setting(x).get("asked") == "rollout"
        ]
        models = _over_prompts([x for x in here if x.case.arm in TRAINED])
        tables = _over_prompts([x for x in here if x.case.variant == TABLE])
        if models:
            said.append(
                f"Trained in the world of {in_words(law)}, models continue orbits of every law "
                f"that prompts them by powers of r of {_range(models)}{_pasted(models, tables)}."
            )
    return said


def _over_prompts(results: Sequence[Result]) -> list[float]:
    """Return the exponents of each variant and prompt, means over trainings."""
    found: dict[tuple[str, Any], list[float]] = {}
    for result in results:
        key = result.case.variant, own_setting(result).get("prompt")
        found.setdefault(key, []).append(result.metrics["exponent_within"].value)
    return [fmean(values) for values in found.values()]


def _range(values: Sequence[float]) -> str:
    ends = f"{max(values):.2f}", f"{min(values):.2f}"
    return " to ".join(dict.fromkeys(ends))


def _pasted(models: Sequence[float], tables: Sequence[float]) -> str:
    """Say by which powers a table of training orbits goes on, and whether models go on alike."""
    if not tables:
        return ""
    near = all(min(abs(model - table) for table in tables) < NEAR for model in models)
    alike = ", so that this tells no law from a table" if near else ""
    return f"; the {TABLE}, pasted, goes on by {_range(tables)}{alike}"


def _sentences(asked: Asked, results: Sequence[Result]) -> list[str]:
    here = _at(results, asked.metric, asked.where)
    beside = here if asked.beside is None else _at(results, asked.metric, asked.beside)
    trained, random = (_rows(here, asked.metric, arms) for arms in (TRAINED, UNTRAINED))
    if not trained:
        return []
    pairs = {name: (seeds, random[name]) for name, seeds in trained.items() if name in random}
    found = compare(pairs)
    each = []
    for name, seeds in trained.items():
        bounds = QUANTITIES.get(asked.metric, UNDECLARED).bounds
        said = f"{name} {shown(seeds, asked.form, asked.unit, bounds)}"
        if name in random:
            value = f"{fmean(random[name].values()):z{asked.form}}{asked.unit}"
            said += f" (random weights {value}, {_compared(found.get(name))})"
        each.append(said)
    return [f"{asked.words} {'; '.join(each)}.{_control(asked, beside, trained)}"]


def _at(results: Sequence[Result], metric: str, where: Mapping[str, Any]) -> list[Result]:
    """Return the results with a metric at a setting."""
    return [
        x
        for x in results
        if metric in x.metrics
        and all(own_setting(x).get(key) == value for key, value in where.items())
    ]


def _compared(found: Comparison | None) -> str:
    if found is None:
        return "too few trainings to compare"
    if not found.differs:
        return "no difference is shown"
    return "less" if found.difference.value > 0 else "more"


def _rows(results: Sequence[Result], metric: str, arms: Sequence[str]) -> dict[str, Seeds]:
    """Return the values of each variant by seed, means where a seed was asked several times."""
    found: dict[str, dict[int | None, list[float]]] = {}
    for result in results:
        if result.case.arm in arms:
            seeds = found.setdefault(result.case.variant, {})
            seeds.setdefault(result.case.seed, []).append(result.metrics[metric].value)
    return {
        name: {seed: fmean(values) for seed, values in seeds.items()}
        for name, seeds in found.items()
    }


def _control(asked: Asked, results: Sequence[Result], trained: Mapping[str, Seeds]) -> str:
    """Name the best control, and say whether it does as well as any trained model."""
    rows = _rows(results, asked.metric, ("control",))
    oracles = _rows(results, asked.metric, ("oracle",))
    rows |= {name: seeds for name, seeds in oracles.items() if name in TABLES}
    rows = {name: seeds for name, seeds in rows.items() if not name.startswith("shuffled")}
    if not rows:
        return ""
    sign = -1 if asked.lower else 1
    means = {name: fmean(seeds.values()) for name, seeds in rows.items()}
    best = max(means, key=lambda name: sign * means[name])
    top = max(sign * fmean(seeds.values()) for seeds in trained.values())
    name = f"{best} ({'a look-up table' if best in TABLES else 'without a network'})"
    value = f"{means[best]:z{asked.form}}{asked.unit}"
    as_well = sign * means[best] >= top
    return f" But {name} does no worse: {value}." if as_well else f" Best control: {name}, {value}."
