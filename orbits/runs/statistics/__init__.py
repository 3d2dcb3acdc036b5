"""Intervals at 95% by one convention, paired comparisons, and the power law of the exponents.

The convention, :data:`CONVENTION` in words: an interval is over trainings, by Student's t, where
there are three or more. All trainings answer on one test set, so it says where the mean of other
trainings would lie on that set; :func:`over_seeds_and_groups` adds what another set would change,
where the contributions of each sequence are at hand. A single training, or a control that nothing
trained, has a bootstrap over sequences, and its row says so; where a few sequences make most of a
mean it covers less than 95% (:func:`bootstrap`), and a median stands beside it. Rows that share
seeds are compared by their differences seed by seed (:mod:`~orbits.runs.statistics.paired`), never
by whether two intervals overlap; three or more at once by permutations within each seed.
"""

from orbits.runs.statistics.bootstrap import (
    bootstrap,
    joint_medians,
    mean,
    median,
    percentiles,
    r_squared,
    studentized,
)
from orbits.runs.statistics.interval import CONVENTION, Interval, wilson
from orbits.runs.statistics.paired import (
    LEVEL,
    Comparison,
    Seeds,
    all_at_once,
    compare,
    holm,
    least_p,
    paired,
    ranked,
    reachable,
)
from orbits.runs.statistics.power_law import MINIMUM_GROUPS, PowerLaw, power_law, within_slope
from orbits.runs.statistics.trainings import MINIMUM_SEEDS, over_seeds, over_seeds_and_groups

__all__ = [
    "CONVENTION",
    "LEVEL",
    "MINIMUM_GROUPS",
    "MINIMUM_SEEDS",
    "Comparison",
    "Interval",
    "PowerLaw",
    "Seeds",
    "all_at_once",
    "bootstrap",
    "compare",
    "holm",
    "joint_medians",
    "least_p",
    "mean",
    "median",
    "over_seeds",
    "over_seeds_and_groups",
    "paired",
    "percentiles",
    "power_law",
    "r_squared",
    "ranked",
    "reachable",
    "studentized",
    "wilson",
    "within_slope",
]
