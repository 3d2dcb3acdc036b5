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

Array = npt.NDArray[np.float64]
LARGEST = 700.0  # of a logarithm whose number is within float64


@dataclass(frozen=True)
class LawFit:
    """Comparison of force magnitudes with a law on the same points.

    Attributes:
        follows: Whether they are the law's up to a constant factor: each exponent within
            ``thresholds.TOLERANCE``, ``r2_log`` at least ``MINIMUM_R2_LOG``, and at least
            ``SHARE_DESCRIBED`` of the points usable; where the law is no power law, they bend as
            it does, too (:func:`_bends_alike`). None where the points cannot tell.
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
        (found, bend), (wanted, law_bend) = (_power(X, values, names) for values in (y, truth))
    except ValueError:  # too few points, or a variable that never varies
        return LawFit(None, {}, {}, factor, r2_log)
    near = all(abs(found[name] - wanted[name]) <= TOLERANCE for name in names)
    described = r2_log is not None and r2_log >= MINIMUM_R2_LOG
    enough = share >= SHARE_DESCRIBED
    follows: bool | None = near and described and enough
    if follows and laws.get(law).exponents is None:
        follows = _bends_alike(bend, law_bend)
    return LawFit(follows, found, wanted, factor, r2_log)


def _power(X: Array, y: Array, names: Sequence[str]) -> tuple[dict[str, float], Array]:
    """Return the exponents of the best power law, and what it leaves of ln y, [n]."""
    fitted = fit_exponents(X, y, np.zeros(len(y)), names, n_boot=0)
    slopes = {name: interval.value for name, interval in fitted.exponents.items()}
    return slopes, np.log(y) - np.log(X) @ list(slopes.values()) - np.log(fitted.constant.value)


def _bends_alike(bend: Array, of_law: Array) -> bool | None:
    """Tell whether forces leave their best power law as a law's own do.

    The slope of the first deviations on the second is 1 for the law and 0 for a power law; from 0.5
    on it is the law. None where what is left of the forces varies half as much as the law's own
    bend: errors of a model are alike along an orbit, so that no number of points averages them out.
    """
    size = float(np.std(of_law))
    if size <= np.finfo(float).tiny:
        return None
    slope = float(bend @ of_law) / float(of_law @ of_law)
    if np.std(bend - slope * of_law) > size / 2:
        return None
    return 0.5 < slope < 1.5
