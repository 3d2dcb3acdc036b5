"""The score of a formula: its record, and the record in words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

from orbits import laws
from orbits.runs.notebook import html_table
from orbits.runs.statistics import Interval
from symreg.formula import dimensions, symbolic
from symreg.formula.thresholds import SNAP_SPREAD
from symreg.law_fit import LawFit


@dataclass(frozen=True, repr=False)
class LawScore:
    """Comparison of a formula with a law.

    Attributes:
        expression: The formula.
        target: The law's name.
        verdict: One of ``VERDICTS``, on the formula as a description of y: one that does not
            describe it is ``no law found``, not a wrong law. ``law`` and ``law_nooff`` judge the
            formula whatever y is, ``predictions`` judges y whatever the formula is.
        law: Local exponents agree with the law's, any additive constant kept.
        law_nooff: The same with or without its additive constant.
        laws: The laws of the registry, and ``target``, that the formula agrees with in the same
            way, whatever the world it was found in; empty where it does not describe the points.
        offset: That additive constant, solar mass AU / year^2; None if time ran out.
        offset_share: Offset over the median of y.
        r2_log: R2 of ln f against ln y; None where it is not defined, and without y.
        median_relative_difference: Median of |f/y - 1|, infinite values as in ``error_in_range``.
        exponents: For each variable the median, 5% and 95% of d ln|f| / d ln x; None where
            undefined.
        symbolic: Whether f over the law simplifies to a constant: yes, no or timeout. f is the
            formula that ``constant`` is about, so without its offset where only that is the law.
        dimensions: Whether f has the dimensions of the law (:mod:`symreg.formula.dimensions`), the
            offset kept: yes, no, not defined or timeout.
        constant: Median of f over the law's shape (for Newton m1*m2/r**2), where the law's
            own constant is ``law.magnitude(1, 1, 1)``. The offset is kept if ``law``; None
            unless law or law_nooff.
        constant_relative_error: Relative error of ``constant`` to the law's own.
        error_in_range: Median of |f/F - 1| with F the law, on the points. Where f is not finite,
            the error is infinite; None if it is so in the median.
        error_outside: The same outside: r from one to two times its largest value, masses
            below their median halved and the others doubled.
        complexity: Nodes of the expression tree; None if time ran out.
        shape: The formula with its numbers as C, or ``timeout``.
        dropped: Share of points whose y has no logarithm.
        n_points: Number of points.
        thresholds: The thresholds behind the verdict.
        opposite: The formula times -1 agrees with the law, with or without its additive constant.
            The law's magnitude is positive, so such a formula is another law.
        predictions: Whether y itself follows the law; None where no y was given.
    """

    expression: str
    target: str
    verdict: str
    law: bool
    law_nooff: bool
    laws: tuple[str, ...]
    offset: float | None
    offset_share: float | None
    r2_log: float | None
    median_relative_difference: float | None
    exponents: dict[str, Interval | None]
    symbolic: symbolic.Answer
    dimensions: dimensions.Answer | Literal["timeout"]
    constant: float | None
    constant_relative_error: float | None
    error_in_range: float | None
    error_outside: float | None
    complexity: int | None
    shape: str
    dropped: float
    n_points: int
    thresholds: dict[str, float]
    opposite: bool = False
    predictions: LawFit | None = None

    def record(self) -> dict[str, Any]:
        """Return the score as plain JSON data."""
        return asdict(self)

    def __repr__(self) -> str:
        return "\n".join(f"{name:<11} {text}" for name, text in lines(self.record()))

    def _repr_html_(self) -> str:
        return html_table(lines(self.record()))


def lines(record: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the record of a score in words: three answers and the numbers behind them.

    The formula is compared with the law, the predictions with the law, and the formula with the
    predictions; each answer is right or wrong by itself.
    """
    law = record["target"]
    found = [
        ("formula", record["expression"]),
        ("is the law", _compared(record)),
        ("predictions", _followed(record["predictions"], law)),
        ("fidelity", _described(record)),
        ("exponents", "of the formula: " + _exponents(record["exponents"])),
        ("algebra", _algebra(record)),
    ]
    return [(name, text) for name, text in found if text]


def _compared(record: Mapping[str, Any]) -> str:
    """Return whether the formula is the law, in words."""
    law = record["target"]
    if record.get("opposite"):
        return f"no, {law} with the opposite sign: the law's magnitude is positive"
    if not record["law_nooff"]:
        others = [name for name in record["laws"] if name != law]
        return f"no, not {law}" + (f" but {' or '.join(others)}" if others else "")
    answer = f"yes, {law} to within {record['thresholds']['tolerance']:g} of each exponent"
    if not record["law"]:
        answer = f"{law} but for an offset of {record['offset']:.3g}"
    if record["constant"] is None or record["constant_relative_error"] is None:
        return answer
    own, error = laws.get(law).magnitude(1.0, 1.0, 1.0), record["constant_relative_error"]
    constant = f"its constant {record['constant']:.6g} is off by {error:.2%} from {own:.6g}"
    return f"{answer}; {constant}"


def _followed(fit: Mapping[str, Any] | None, law: str) -> str:
    """Return whether the predictions follow the law, in words; nothing where there are none."""
    if fit is None:
        return ""
    quality = "undefined" if fit["r2_log"] is None else f"{fit['r2_log']:.4f}"
    quality = f"R2 of ln force up to a constant factor {quality}"
    if fit["follows"] is None:
        return f"these points cannot tell whether they follow {law}; {quality}"
    found, wanted = (
        ", ".join(f"{name} {slope:.{digits}}" for name, slope in fit[of].items())
        for of, digits in (("exponents", "3f"), ("law_exponents", "4g"))
    )
    factor = "" if fit["factor"] is None else f" times {fit['factor']:.4g}"
    answer = f"follow {law}{factor}" if fit["follows"] else f"do not follow {law}"
    return f"{answer}: {quality}, exponents {found} (law: {wanted})"


def _described(record: Mapping[str, Any]) -> str:
    """Return whether the formula describes the predictions, in words; nothing without these."""
    if record["predictions"] is None:
        return ""
    quality = "undefined" if record["r2_log"] is None else f"{record['r2_log']:.6f}"
    answer = "does not describe" if record["verdict"] == "no law found" else "describes"
    dropped = f", {100 * record['dropped']:.2g}% of points dropped" if record["dropped"] else ""
    quality = f"R2 of its logarithm against theirs {quality}"
    return f"the formula {answer} the predictions: {quality}{dropped}"


def _algebra(record: Mapping[str, Any]) -> str:
    """Return the findings of computer algebra on the formula."""
    size = "" if record["complexity"] is None else f"; {record['complexity']} nodes"
    same, units = record["symbolic"], record["dimensions"]
    return f"the law times a constant: {same}; dimensions of the law: {units}{size}"


def _exponents(spreads: Mapping[str, Sequence[float] | None]) -> str:
    """Return the local exponents of a formula, with the spread over points where there is any."""
    texts = []
    for name, spread in spreads.items():
        if spread is None:
            texts.append(f"{name} undefined")
            continue
        value, low, high = spread
        flat = high - low <= SNAP_SPREAD
        texts.append(f"{name} {value:.4f}" + ("" if flat else f" [{low:.4f}, {high:.4f}]"))
    return ", ".join(texts)
