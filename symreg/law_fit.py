"""Comparison of forces with a law, without any formula."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from orbits import laws
from symreg import points
from symreg.exponents import fit_exponents, r2
from symreg.formula.thresholds import MINIMUM_R2_LOG, SHARE_DESCRIBED, TOLERANCE
from symreg.points import NAMES

LARGEST = 700.0  # of a logarithm whose number is within float64


@dataclass(frozen=True)
class LawFit:
    """Comparison of force magnitudes with a law on the same points.

    Attributes:
        follows: Whether they are the law's up to a constant factor: each exponent within
            ``thresholds.TOLERANCE``, ``r2_log`` at least ``MINIMUM_R2_LOG``, and at least
            ``SHARE_DESCRIBED`` of the points usable. None where the points cannot tell.
        exponents: Exponents of a power law fitted to the forces; empty where the points determine
            none.
        law_exponents: The same fit to the law's forces on the same points.
        factor: Geometric mean of the forces over the law's; None beyond float64.
        r2_log: R2 of ln force, once that factor is taken out; None where it is not defined.
    """

    follows: bool | None
    exponents: dict[str, float]
    law_exponents: dict[str, float]
    factor: float | None
    r2_log: float | None


def law_fit(
    X: npt.ArrayLike, y: npt.ArrayLike, law: str = "newton", names: Sequence[str] = NAMES
) -> LawFit:
    """Compare force magnitudes with a law.

    A look-up table of near forces follows the law as well, on points like those that it has seen.

    Args:
        X: Points, shape [n, 3], positive; AU and solar masses.
        y: Force magnitudes, shape [n]; those without a logarithm are left out.
        law: The law's name.
        names: The columns of ``X``: r, m1 and m2 in any order.

    Raises:
        ValueError: There is no such law, shapes disagree, or fewer than two points are usable.
    """
    X, y = points.check(X, y, names)
    points.check_names(names)
    with np.errstate(all="ignore"):
        truth = laws.get(law).magnitude(**dict(zip(names, X.T, strict=True)))
    keep, _ = points.usable(X, y, at_least=2)
    keep &= np.isfinite(truth) & (truth > 0)  # a power of a large distance may leave float64
    if keep.sum() < 2:
        return LawFit(None, {}, {}, None, None)
    share, X, y, truth = float(keep.mean()), X[keep], y[keep], truth[keep]
    shift = float(np.mean(np.log(y) - np.log(truth)))
    r2_log = r2(np.log(y), np.log(truth) + shift)
    factor = float(np.exp(shift)) if abs(shift) < LARGEST else None
    try:
        found, wanted = (_slopes(X, values, names) for values in (y, truth))
    except ValueError:  # too few points, or a variable that never varies
        return LawFit(None, {}, {}, factor, r2_log)
    near = all(abs(found[name] - wanted[name]) <= TOLERANCE for name in names)
    described = r2_log is not None and r2_log >= MINIMUM_R2_LOG
    enough = share >= SHARE_DESCRIBED
    return LawFit(near and described and enough, found, wanted, factor, r2_log)


def _slopes(
    X: npt.NDArray[np.float64], y: npt.NDArray[np.float64], names: Sequence[str]
) -> dict[str, float]:
    fitted = fit_exponents(X, y, np.zeros(len(y)), names, n_boot=0)
    return {name: interval.value for name, interval in fitted.exponents.items()}
