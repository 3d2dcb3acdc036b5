"""Variants and mixers from outside, by the entry points of installed packages and plug-in files."""

from __future__ import annotations

from collections.abc import Callable, Collection
from importlib import metadata, util
from typing import Any

VARIANTS, MIXERS = "orrery.attention", "orrery.mixer"
"""Groups of entry points; each of them is one definition, or several."""


def from_outside(
    group: str, taken: Collection[str], check: Callable[[str, Any], None]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return what the entry points of a group define, by name, and a line for each that fails.

    Args:
        group: The group.
        taken: Names that are given already.
        check: Function of an entry point's attribute and a definition, which it refuses with an
            error where the definition is none.

    Returns:
        Definitions by name, and faults: by the name of the definition where that is known and new.
    """
    found: dict[str, Any] = {}
    faults: dict[str, str] = {}
    for point in metadata.entry_points(group=group):
        name: Any = None
        try:
            loaded = point.load()
            for each in loaded if isinstance(loaded, list | tuple) else [loaded]:
                name = getattr(each, "name", None)
                check(point.attr, each)
                if name in taken or name in found:
                    raise ValueError(f"there is an attention {name!r} already; name it otherwise")
                found[name] = each
        except (Exception, SystemExit) as error:  # what a plug-in does wrong is said of it alone
            what = (str(error) or type(error).__name__).splitlines()[0]
            kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
            new = isinstance(name, str) and name not in taken and name not in found
            faults[name if new else f"plug-in {point.name}"] = f"{_origin(point)}: {kind}{what}"
    return found, faults


def _origin(point: metadata.EntryPoint) -> str:
    """Return the file of an entry point, also of one that cannot be imported."""
    try:
        found = util.find_spec(point.module)
    except (ImportError, ValueError):  # its package cannot be imported
        found = None
    return point.value if found is None or found.origin is None else found.origin
