"""The leaderboard: result lines -> rows -> views, made from the lines alone.

:mod:`symreg.result_rows` and :mod:`symreg.law_rate` make the rows, :mod:`symreg.views` draws them.
"""

from symreg.law_rate import LawRate, wilson
from symreg.result_rows import Row, read_lines, rows, separated
from symreg.views.html import to_html
from symreg.views.markdown import to_markdown
from symreg.views.text import to_text

__all__ = [
    "LawRate",
    "Row",
    "read_lines",
    "rows",
    "separated",
    "to_html",
    "to_markdown",
    "to_text",
    "wilson",
]
