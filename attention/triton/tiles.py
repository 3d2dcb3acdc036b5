"""Tile sizes: a static table per architecture, kernel, second stage, head dim and element size.

``triton.autotune`` needs a GPU at run time and cannot run under the interpreter, and a result
should not depend on which tile won a race. ``python -m attention tune`` measures on a GPU
and rewrites ``tiles.json``.
"""

from __future__ import annotations

import functools
import json
from dataclasses import dataclass
from importlib import resources

KERNELS = ("stats", "forward", "dq", "dkdv")
FAMILIES = ("none", "reweight", "elastic", "biased")
INTERPRETER = "interpreter"


@dataclass(frozen=True)
class Tile:
    """A block of rows times a block of keys, the warps that share it, and the pipeline's depth."""

    rows: int
    keys: int
    warps: int
    stages: int


def key(kernel: str, family: str, head_dim: int, bits: int) -> str:
    """Return the table's name for a kernel, for example ``forward reweight d64 16bit``."""
    return f"{kernel} {family} d{head_dim} {bits}bit"


def tile(kernel: str, family: str, head_dim: int, bits: int, arch: str) -> Tile:
    """Return the tile of a kernel; an architecture without a table uses that of sm_90.

    Args:
        kernel: One of ``KERNELS``.
        family: The second stage: none, reweight or elastic; or ``biased`` for any of them with a
            table of biases.
        head_dim: 32, 64 or 128.
        bits: Bits of an element, 16 or 32.
        arch: ``sm_90`` and the like, or ``interpreter``.
    """
    if arch == INTERPRETER:
        return Tile(64, 32, 4, 1)
    table = table_of(arch) or table_of("sm_90")
    return table[key(kernel, family, head_dim, bits)]


@functools.cache
def table_of(arch: str) -> dict[str, Tile]:
    """Return the measured or shipped tiles of an architecture, empty if it has none."""
    text = resources.files("attention.triton").joinpath("tiles.json").read_text()
    return {name: Tile(*sizes) for name, sizes in json.loads(text).get(arch, {}).items()}
