"""Names of arms, and of controls, which tell a report the inputs of each; they need no torch."""

from __future__ import annotations

TRAINED = ("pretrained", "scratch")
"""Arms of force heads that are trained in the world of the run."""
TRUE_FORCE, CEILING, POWER_LAW = "true force", "ceiling", "power law"
CAUSAL_CEILING = "ceiling, causal"
KNOWING = (TRUE_FORCE, CEILING, CAUSAL_CEILING, POWER_LAW)
"""Controls that know the law or are told its form."""
TRUE_STATE = "on the true state"
"""End of the names of look-up tables that are told r and both masses."""
NEAREST = f"2-NN {TRUE_STATE}"
"""The baseline that is also fitted to labels of other worlds."""
DRAWN = (NEAREST, f"k-NN {TRUE_STATE}")
"""The look-up table drawn beside models, and its name in results before 2026-11."""
_WORLD, _OBSERVER, _PAST = "'s world", " observer", ", averaged over the past"


def nearest_elsewhere(law: str) -> str:
    """Return the name of the nearest neighbours whose labels are of the world of another law."""
    return f"k-NN of {'Newton' if law == 'newton' else law}{_WORLD}"


def observer_name(law: str, past: bool) -> str:
    """Return the name of an observer who carries a law.

    Args:
        law: The law.
        past: Whether its mass is averaged over all observations up to now.
    """
    name = f"{'Newtonian' if law == 'newton' else law}{_OBSERVER}"
    return f"{name}{_PAST}" if past else name


def is_table(name: str) -> bool:
    """Return whether a control is a look-up table of the true state, of this or another world."""
    return name.endswith((TRUE_STATE, _WORLD))


def is_observer(name: str) -> bool:
    """Return whether a control is an observer who carries another world's law."""
    return name.removesuffix(_PAST).endswith(_OBSERVER)
