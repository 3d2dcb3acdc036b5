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
HEAD_DIMS = {16: (32, 64, 128, 256), 32: (32, 64, 128)}
"""Head dims with tiles by bits of an element; others are padded to the next. With 256
channels of 32 bits LSSAR's output kernel spilled in every tile that was tried."""
INTERPRETER = "interpreter"
SHARED = {
    80: 163, 86: 99, 87: 163, 89: 99, 90: 227, 100: 227, 103: 227, 110: 227, 120: 99, 121: 99,
}  # fmt: skip
"""KiB of shared memory that one block may have, by compute capability."""
LIKE = {"sm_80": "sm_90", "sm_89": "sm_80", "sm_100": "sm_90", "sm_120": "sm_89"}
"""Architecture whose table supplies the tiles that an architecture's own table lacks. sm_80
multiplies by mma.sync, sm_89 does so with less shared memory, as sm_86 and sm_120 do; the compiler
spills other tiles on sm_120."""


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


def blocks(n: int, size: int) -> int:
    """Return how many blocks of a size hold n; on the host ``triton.cdiv`` takes 5 us a call."""
    return -(-n // size)


def power_of_2(n: int) -> int:
    """Return the smallest power of 2 that is at least n, likewise."""
    return 1 << (n - 1).bit_length()


@functools.cache
def tile(kernel: str, family: str, head_dim: int, bits: int, arch: str) -> Tile:
    """Return the tile of a kernel.

    Args:
        kernel: One of ``KERNELS``.
        family: The second stage: none, reweight or elastic; or ``biased`` for any of them with a
            table of biases.
        head_dim: One of ``HEAD_DIMS`` of these bits.
        bits: Bits of an element, 16 or 32.
        arch: The name of a table, or ``interpreter``.
    """
    if arch == INTERPRETER:
        return Tile(64, 32, 4, 1)
    return table_of(arch)[key(kernel, family, head_dim, bits)]


@functools.cache
def table_for(capability: int, shared: int) -> str | None:
    """Return the name of the table for a GPU, or None where no tiles fit.

    It is the table of its own capability, else, among tables whose tiles fit its shared memory,
    the one of its own generation, else the one with the largest tiles.

    Args:
        capability: Compute capability without its point, such as 89.
        shared: KiB of shared memory that one block may have.
    """
    own = f"sm_{capability}"
    if own in _tables():
        return own
    fitting = [int(name[3:]) for name in _tables() if SHARED[int(name[3:])] <= shared]
    if not fitting:
        return None
    best = max(fitting, key=lambda x: (x // 10 == capability // 10, SHARED[x], x))
    return f"sm_{best}"


@functools.cache
def table_of(arch: str) -> dict[str, Tile]:
    """Return the measured or shipped tiles of an architecture, empty if it has none."""
    base = table_of(LIKE[arch]) if arch in LIKE else {}
    return base | {name: Tile(*sizes) for name, sizes in _tables().get(arch, {}).items()}


@functools.cache
def _tables() -> dict[str, dict[str, list[int]]]:
    return json.loads(resources.files("attention.triton").joinpath("tiles.json").read_text())
