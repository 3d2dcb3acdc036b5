"""Symbolic regression of predicted forces: search for a formula, then compare it to a law.

``fit`` searches, ``score`` judges. Each is imported when it is first used, so that help is quick.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from symreg.api import fit
    from symreg.formula.score import score

__all__ = ["fit", "score"]
_MODULES = {"fit": "symreg.api", "score": "symreg.formula.score"}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(_MODULES[name]), name)
