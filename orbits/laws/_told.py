"""The law that a manifest tells."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def law_of(manifest: Mapping[str, Any]) -> str | None:
    """Return the law of the world whose forces our own commands wrote, if the sidecar tells it."""
    config = manifest.get("config")
    for part in ("data", "model"):
        own = config.get(part) if isinstance(config, dict) else None
        arguments = own.get("protocol_args") if isinstance(own, dict) else None
        if isinstance(arguments, dict) and isinstance(law := arguments.get("law"), str):
            return law
    return None
