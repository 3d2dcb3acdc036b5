"""Orbit datasets on disk: read, write, verify and export. The format is in ``FORMAT.md``."""

from orbits.dataset.read import OrbitDataset, read_index, verify
from orbits.dataset.write import generate

__all__ = ["OrbitDataset", "generate", "read_index", "verify"]
