"""``python -m attention aot``: build the kernels without a GPU and check their limits.

Triton brings NVIDIA's assembler and disassembler, so every shipped tile can be compiled for any
architecture on any Linux machine and held to limits: no register spilled in a loop (stack beside
the loops costs nothing), shared memory that fits, matrix instructions in use, and on sm_90 a budget
of instructions per element in the inner loop. That is what can be known of speed without a GPU: at
these head dims the kernels are bound by instruction issue.
"""

from __future__ import annotations

import argparse
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource

from attention.triton import tiles
from attention.triton.backward import dkdv_kernel, dq_kernel
from attention.triton.forward import forward_kernel
from attention.triton.means import means_kernel
from attention.triton.primitives import INTERPRETED, SIZES
from attention.triton.stats import stats_kernel

ARCHITECTURE = 90
POINTERS = ("q", "k", "v", "grad", "out", "extra", "dq", "dk", "dv")
FLOAT_POINTERS = ("tau", "bias", "inverse", "rows", "row_grads", "dbias", "peaks", "sums_q")
BUILT_WITH = {
    "none": ("softplus", "none", "none"),
    "reweight": ("softplus", "reweight", "none"),
    "elastic": ("exp", "elastic", "none"),
    "biased": ("exp", "elastic", "zero"),
}
"""phi, second stage and bias of each family: LSSA, LSSAR, Elastic-Softmax, Lazy Attention."""
KINDS = {
    "none": (
        {"PHI": "exp"}, {"PHI": "exp", "BIAS": "alibi"}, {"PHI": "sigmoid", "L1": False},
        {"PHI": "sigmoid"}, {"PHI": "relu"}, {"PHI": "relu2"}, {"PHI": "relu6"}, {"SAVE": False},
    ),
    "reweight": (
        {"PHI": "exp"}, {"PHI": "sigmoid"}, {"P": 0}, {"P": 3}, {"EXACT": True}, {"SAVE": False},
        {"ATOMIC": True},
    ),
    "elastic": ({"SAVE": False},),
    "biased": ({"BIAS": "last"}, {"SHARPEN": "none"}, {"SAVE": False}),
}  # fmt: skip
"""Other choices that a family's tiles serve, built at head dim 64 and 16 bits."""

# Measured with triton 3.9 and 3.6, and a tenth of room.
BUDGET = {
    "stats": {"reweight": 10, "elastic": 8, "biased": 9},
    "forward": {"none": 16, "reweight": 23, "elastic": 11, "biased": 11},
    "dq": {"none": 20, "reweight": 30, "elastic": 14, "biased": 14, "BIAS=last": 17},
    "dkdv": {"none": 26, "reweight": 38, "elastic": 24, "biased": 25, "ATOMIC=True": 43},
    "means": {"reweight": 42},
}
"""Instructions per element of the unmasked inner loop for 16 bits at head dim 64."""


@dataclass(frozen=True)
class Report:
    """Resources and instructions of one compiled kernel.

    Attributes:
        name: Name in the table of tiles.
        tile: The tile it was built with.
        registers: Registers per thread.
        local: Bytes of stack per thread, where registers go that are too many.
        spills: Accesses to it in loops over tiles.
        shared: Bytes of shared memory.
        mma: Matrix instructions in the unmasked loop.
        issues: Instructions per element of a tile in the unmasked loop.
        arch: Compute capability it was built for, without its point.
    """

    name: str
    tile: tiles.Tile
    registers: int
    local: int
    spills: int
    shared: int
    mma: int
    issues: float
    arch: int = ARCHITECTURE

    def faults(self) -> list[str]:
        """Return the limits that the kernel breaks."""
        found = []
        kernel, family, dim, bits, *changes = self.name.split()
        if self.spills:
            found.append(f"spills: {self.spills} accesses in the loops")
        if self.shared > tiles.SHARED[self.arch] * 1024:
            found.append(f"needs {self.shared} bytes of shared memory")
        if not self.mma:
            found.append("no matrix instructions")
        budget = BUDGET[kernel]
        allowed = budget.get(" ".join(changes), budget[family])
        at_issue = (dim, bits, self.arch) == ("d64", "16bit", ARCHITECTURE)
        if at_issue and self.issues > allowed:
            found.append(f"{self.issues:.1f} instructions per element, budget {allowed}")
        return found

    def __str__(self) -> str:
        """Return one line of the table."""
        size = f"{self.tile.rows}x{self.tile.keys} w{self.tile.warps} s{self.tile.stages}"
        return (
            f"{self.name:44s} {size:16s} {self.registers:4d} registers  {self.local:4d} B local "
            f"({self.spills} in loops)  "
            f"{self.shared // 1024:4d} KiB shared  {self.mma:3d} mma  "
            f"{self.issues:5.1f} issues/element"
        )


def shipped() -> Iterator[tuple[str, str, int, int]]:
    """Yield (kernel, family, head dim, bits) of every entry the table must have."""
    for kernel in tiles.KERNELS:
        for family in tiles.FAMILIES:
            if kernel == "stats" and family == "none":
                continue
            for bits, head_dims in tiles.HEAD_DIMS.items():
                for head_dim in head_dims:
                    yield kernel, family, head_dim, bits


def kinds() -> Iterator[tuple[str, str, int, int, None, Mapping[str, object]]]:
    """Yield the arguments of :func:`build` for the other choices that the tiles serve."""
    for head_dim, bits in ((64, 16), (64, 32), (128, 16), (128, 32), (256, 16)):
        yield "means", "reweight", head_dim, bits, None, {}
    for kernel, family, head_dim, bits in shipped():
        for changes in KINDS[family] if (head_dim, bits) == (64, 16) else ():
            read = {
                "stats": {"PHI", "BIAS"}, "forward": {*changes} - {"EXACT", "ATOMIC"},
                "dq": {*changes} - {"SAVE", "ATOMIC"},
            }  # fmt: skip
            if read.get(kernel, {*changes} - {"SAVE"}) >= {*changes}:
                yield kernel, family, head_dim, bits, None, changes


def build(
    kernel: str,
    family: str,
    head_dim: int,
    bits: int,
    tile: tiles.Tile | None = None,
    changes: Mapping[str, object] | None = None,
    arch: int = ARCHITECTURE,
) -> Report:
    """Compile one kernel and return its resources and instructions.

    Args:
        kernel: One of ``tiles.KERNELS``, or ``means``, which takes the tiles of ``dq``.
        family: One of ``tiles.FAMILIES``.
        head_dim: One of ``tiles.HEAD_DIMS`` of these bits.
        bits: Bits of an element: 16 (bfloat16) or 32.
        tile: The tile; None for the shipped one.
        changes: Choices of the kernels that differ from those of ``BUILT_WITH``.
        arch: Compute capability without its point, one of ``tiles.SHARED``.
    """
    function = _kernels()[kernel]
    table = "dq" if kernel == "means" else kernel
    tile = tile or tiles.tile(table, family, head_dim, bits, _table(arch))
    phi, sharpen, bias = BUILT_WITH[family]
    choices = {
        "UNIT": phi == "softplus", "PHI": phi, "L1": True, "SHARPEN": sharpen, "BIAS": bias,
        "P": 15, "EXACT": sharpen == "reweight" and bits == 32, "SAVE": True, "ATOMIC": False,
        "SCALED": phi == "softplus" and bits == 16,
        "PRECISE": bits == 32, "D": head_dim, "ROWS": tile.rows, "KEYS": tile.keys,
        **(changes or {}),
    }  # fmt: skip
    # What a call leaves out is passed as None, and compiled as that.
    absent = {
        "bias": choices["BIAS"] == "none", "tau": choices["SHARPEN"] != "elastic",
        "peaks": not choices["SCALED"], "sums_q": not choices["ATOMIC"],
    }  # fmt: skip
    choices |= {name: None for name, gone in absent.items() if gone}
    element = "*bf16" if bits == 16 else "*fp32"
    types: dict[str, object] = {"numbers": ("fp32",) * 10, **dict.fromkeys(SIZES, "i32")}
    types |= dict.fromkeys(POINTERS, element) | dict.fromkeys(FLOAT_POINTERS, "*fp32")
    if choices["SCALED"]:  # the directions of a cosine, and float16 itself
        types |= {"q": "*fp16", "k": "*fp16"}
    types |= dict.fromkeys(choices, "constexpr")
    names = function.arg_names
    aligned = {
        (place,): [["tt.divisibility", 16]]
        for place, name in enumerate(names)
        if name in POINTERS + FLOAT_POINTERS and name not in choices
    }
    source = ASTSource(
        function,
        {name: types[name] for name in names},
        {(place,): choices[name] for place, name in enumerate(names) if name in choices},
        aligned,
    )
    options = {"num_warps": tile.warps, "num_stages": tile.stages}
    built = triton.compile(source, target=GPUTarget("cuda", arch, 32), options=options)
    usage, code = disassemble(built.asm["cubin"])
    loops = _loops(code)
    loop = min(loops, key=len)
    changed = [f"{name}={value}" for name, value in (changes or {}).items()]
    per_thread = tile.rows * tile.keys / (32 * tile.warps)
    return Report(
        name=" ".join([tiles.key(kernel, family, head_dim, bits), *changed]),
        tile=tile,
        registers=int(re.search(r"REG:(\d+)", usage)[1]),  # type: ignore[index]
        local=int(re.search(r"STACK:(\d+)", usage)[1]),  # type: ignore[index]
        spills=sum(bool(re.search(r"\b(LDL|STL)\b", i)) for body in loops for i in body),
        shared=built.metadata.shared,
        mma=sum("MMA" in instruction for instruction in loop),
        issues=len(loop) / per_thread,
        arch=arch,
    )


def _table(arch: int) -> str:
    name = tiles.table_for(arch, tiles.SHARED[arch])
    assert name is not None
    return name


def _kernels() -> dict[str, Any]:
    """Return the kernels that are compiled, by name."""
    if INTERPRETED:
        raise ValueError("TRITON_INTERPRET is set; unset it to compile the kernels")
    kernels = stats_kernel, forward_kernel, dq_kernel, dkdv_kernel
    return {"means": means_kernel, **dict(zip(tiles.KERNELS, kernels, strict=True))}


def disassemble(cubin: bytes) -> tuple[str, str]:
    """Return the resource usage and the machine code of a compiled kernel."""
    tool = Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / "cuobjdump"
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        usage, code = (
            subprocess.run([tool, flag, file.name], capture_output=True, text=True, check=True)
            for flag in ("--dump-resource-usage", "--dump-sass")
        )
    return usage.stdout, code.stdout


def _loops(code: str) -> list[list[str]]:
    """Return the instructions of each loop that holds matrix instructions."""
    lines = [
        (int(address, 16), instruction)
        for address, instruction in re.findall(
            r"^\s+/\*([0-9a-f]{4,})\*/\s+(.*?);", code, re.MULTILINE
        )
    ]
    loops = []
    for address, instruction in lines:
        jump = re.search(r"\bBRA\b.*?0x([0-9a-f]+)", instruction)
        if jump and int(jump[1], 16) < address:
            body = [text for place, text in lines if int(jump[1], 16) <= place <= address]
            if any("MMA" in text for text in body):
                loops.append(body)
    return loops


def run(options: argparse.Namespace) -> None:
    """Build every shipped tile, print the table, and exit with 1 if a limit is broken."""
    entries = kinds() if options.kinds else ((*entry, None, {}) for entry in shipped())
    selection = [
        (*entry, options.arch)
        for entry in entries
        if any(part in tiles.key(*entry[:4]) for part in options.only)
    ]
    if not selection:
        raise ValueError(f"no kernel's name holds any of {', '.join(options.only)}")
    broken = 0
    with ProcessPoolExecutor(options.jobs) as pool:
        for report in pool.map(build, *zip(*selection, strict=True)):
            faults = report.faults()
            broken += bool(faults)
            print(report, *(f"  <- {fault}" for fault in faults), flush=True)
    print(f"{len(selection)} kernels built for sm_{options.arch}, {broken} over a limit")
    sys.exit(1 if broken else 0)
