"""Tables and sentences of bigram-backcopy."""

from __future__ import annotations

from collections.abc import Sequence

from benchmarks.recall.base import BASELINE
from orbits.runs.result import Result
from orbits.runs.statistics import paired
from orbits.runs.study import Study
from orbits.runs.table import Table, by_variant
from orbits.runs.verdict import against, beside, shown

UNMARKED = "unmarked"
"""The test on rows without the marker."""
UNTRAINED, CUT = "untrained", "cut afterwards"
"""Arms: a model before its training, and a trained softmax with the elastic offset put in."""
SHARE = (0, 100)
"""Bounds of a share, in %."""
EMPTY = 90
"""Mass that all but empty rows lack at least, in %."""
PARTS = {"share_idle": "where nothing is copied", "share_copying": "at copies"}
"""Shares of a row's mass on the first key in rows of two kinds, in words."""
COMPARED = {
    "sink": ("Weight on the first token", ".1f", " points"),
    "share": ("Its share of a row's own mass", ".1f", " points"),
    "excess": ("Loss above the least", ".4f", " nats"),
    "excess_copy": ("Loss after triggers", ".4f", " nats"),
}
"""Metrics that are compared with softmax's: what they are, their digits and their unit."""
CONTROLS = {
    ("triggers", 0): "Without triggers",
    ("marker", "none"): "Without a marker",
    ("chain", 1): "On another chain",
}
"""Settings of the controls, in words."""


def tables(study: Study, results: Sequence[Result]) -> list[Table]:
    """Return tables of the losses, of the attention, of other arms, and of controls.

    Args:
        study: The study.
        results: Results, each row's at its best rate.
    """
    mine, arms = asked(results), [x for x in results if _is_asked(x) and x.case.arm != "-"]
    controls = [x for x in results if not _is_asked(x) and x.case.arm == "-"]
    loss = ("excess", "excess_copy", "copied", f"excess@{UNMARKED}", "reweighted")
    weights = ("sink", "share_idle", "share_copying", "missing_idle", "norm_v", "tau")
    shape = ("uniform", "share", "density", "missing", "zeros", "entropy")
    of_arms, chain = (
        ("sink", "share", "missing", "norm_v", "excess"),
        ("triggers", "marker", "chain"),
    )
    return [
        study.seed_table("What is learned", mine, ("variant",), loss),
        study.seed_table("Where the mass of rows goes", mine, ("variant",), weights),
        study.seed_table("The shape of rows", mine, ("variant",), shape),
        study.seed_table("Without training, and cut after it", arms, ("arm", "variant"), of_arms),
        study.seed_table(
            "The chains of the controls",
            controls,
            ("variant", *chain),
            ("excess", "sink", "received"),
        ),
    ]


def sentences(results: Sequence[Result]) -> list[str]:
    """Say whether softmax has a sink, who has less, what it costs, and what it takes.

    Args:
        results: Results, each row's at its best rate.
    """
    mine = asked(results)
    if BASELINE not in by_variant(mine, "sink"):
        return []
    said = [_of_softmax(mine)]
    for metric, (what, form, unit) in COMPARED.items():
        rows = by_variant(mine, metric)
        compared = beside(against(rows, BASELINE), BASELINE, form, unit)
        if len(rows) > 1:
            said.append(f"{what}: {compared or 'nothing is compared by three seeds'}.")
    lacking = by_variant(mine, "missing_idle")
    if empty := [name for name, seeds in lacking.items() if min(seeds.values()) > EMPTY]:
        names = ", ".join(empty)
        said.append(
            f"Where nothing is copied, rows lack {EMPTY}% of their mass or more in: {names}."
        )
    if cut := [x for x in results if _is_asked(x) and x.case.arm == CUT]:
        losses = [shown(by_variant(x, "excess")[BASELINE]) for x in (cut, mine)]
        said.append(
            f"{BASELINE} with the elastic offset put in after its training keeps "
            f"{_said(cut, BASELINE, 'sink')} there; its loss above the least is {losses[0]} nats, "
            f"without the offset {losses[1]}."
        )
    for (name, value), words in CONTROLS.items():
        where = [x for x in results if x.case.arm == "-" and x.case.get(name) == value]
        variants = by_variant(where, "sink")
        if parts := [f"{variant} {_said(where, variant, 'sink')}" for variant in variants]:
            said.append(f"{words} the weight on the first token is {', '.join(parts)}.")
    return said


def asked(results: Sequence[Result]) -> list[Result]:
    """Return the results of all variants that were trained on the same chain."""
    return [x for x in results if _is_asked(x) and x.case.arm == "-"]


def _of_softmax(mine: Sequence[Result]) -> str:
    """Return the verdict on softmax, by rows that copy and by others."""
    sink, uniform = by_variant(mine, "sink")[BASELINE], mine[0].value("uniform")
    assert uniform is not None
    gathers = paired(sink, dict.fromkeys(sink, uniform))
    forms = gathers is not None and gathers.differs and gathers.difference.value > 0
    said = [
        f"{BASELINE} puts {_said(mine, BASELINE, 'sink')} of its weight on the first token, "
        f"uniform attention {uniform:.1f}%: {'a sink' if forms else 'no sink is shown'}"
    ]
    for name, words in PARTS.items():
        if part := _said(mine, BASELINE, name):
            said.append(f"{part} {words}")
    return "; ".join(said) + "."


def _said(results: Sequence[Result], variant: str, metric: str) -> str:
    """Return a share of one variant in words; empty without one."""
    seeds = by_variant(results, metric).get(variant)
    return shown(seeds, ".1f", "%", SHARE) if seeds else ""


def _is_asked(result: Result) -> bool:
    """Return whether a result is of the chain that all variants are trained on."""
    case = result.case
    return case.get("marker") == case.get("chain") == 0 != case.get("triggers")
