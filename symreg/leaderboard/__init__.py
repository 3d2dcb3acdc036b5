"""The leaderboard: results -> rows -> tables, figures and sentences of a report.

:mod:`~symreg.leaderboard.row` and :mod:`~symreg.leaderboard.rate` make the rows,
:mod:`~symreg.leaderboard.sections` what a report shows of them, and
:mod:`~symreg.leaderboard.leaderboard` ranks prediction files with them.
"""

from symreg.leaderboard.rate import NO_LAW, NOT_COMPARED, LawRate
from symreg.leaderboard.row import CONTROLS, FORCES, SEARCH, Row, rows, values_by_seed

__all__ = [
    "CONTROLS",
    "FORCES",
    "NOT_COMPARED",
    "NO_LAW",
    "SEARCH",
    "LawRate",
    "Row",
    "rows",
    "values_by_seed",
]
