"""Prediction files: the forces that any model predicts along sequences.

The one thing that passes from a model to the symbolic search. PREDICTIONS.md describes the format
for those who write such a file. :func:`read` gives :class:`Predictions`;
:mod:`symreg.predictions.llm` makes files of the public answers of language models.
"""

from symreg.predictions.file import Predictions, read
from symreg.predictions.formats import COLUMNS, MAX_POINTS, VECTORS
from symreg.predictions.table import SCHEMA, UNITS

__all__ = ["COLUMNS", "MAX_POINTS", "SCHEMA", "UNITS", "VECTORS", "Predictions", "read"]
