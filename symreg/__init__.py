"""Symbolic regression of predicted forces: search for a formula, then compare it to a law.

``fit`` searches, ``score`` judges. Importing this package imports no engine and no sympy.
"""

from symreg.api import fit
from symreg.score import score

__all__ = ["fit", "score"]
