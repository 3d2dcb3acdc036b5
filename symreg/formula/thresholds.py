"""Verdicts on a formula and the thresholds behind them: this benchmark's own choice.

They are stated in every result, but for ``SCATTER``: it would change the address of every search.
"""

from __future__ import annotations

TOLERANCE = 0.05  # on each local exponent
SHARE_WITHIN = 0.95  # of the points must lie within the tolerance
SHARE_POSITIVE = 0.99  # of the points must have a finite, positive value
MINIMUM_R2_LOG = 0.9  # below, the formula does not describe the points and no law is claimed
SHARE_DESCRIBED = 0.5  # of the points must be positive and finite in y and in the formula
SCATTER = 0.1  # of ln(formula / law) about a power law; what has right exponents has hardly any
SNAP_SPREAD = 0.01  # 5-95% spread of an exponent up to which it counts as one number
CONSTANT_RATIO = 1e-6  # relative spread of f / law up to which a symbolic comparison is worth it
TIME_LIMIT = 5.0  # CPU seconds, so that an answer does not depend on how busy the machine is
VERDICTS = ("law", "law up to an offset", "another law", "no law found")
THRESHOLDS = {
    "tolerance": TOLERANCE,
    "share_within": SHARE_WITHIN,
    "share_positive": SHARE_POSITIVE,
    "minimum_r2_log": MINIMUM_R2_LOG,
    "share_described": SHARE_DESCRIBED,
    "snap_spread": SNAP_SPREAD,
    "constant_ratio": CONSTANT_RATIO,
    "time_limit": TIME_LIMIT,
}
