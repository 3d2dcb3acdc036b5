"""The decode kernels, compiled without a GPU: they fit everywhere and spill in no loop."""

import os
import subprocess
import sys

import pytest

SHARED = 99 * 1024
"""Bytes that a block may have on every GPU from compute capability 8.0 on."""

BUILD = r"""
import re, sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from attention.triton import decode
from attention.triton.tools.aot import _loops, disassemble

arch, dim, rows, phi, sharpen, bias, element = sys.argv[1:]
choices = dict(
    UNIT=phi == "softplus", PHI=phi, L1=True, SHARPEN=sharpen, BIAS=bias, P=15,
    D=triton.next_power_of_2(int(dim)), DIM=int(dim), ROWS=int(rows), KEYS=decode.KEYS,
)
absent = {"bias": bias == "none", "tau": sharpen != "elastic"}
choices |= {name: None for name, gone in absent.items() if gone}
strides = {"head_stride", "batch_stride"}
whole = {*decode.VARYING, *strides, "heads", "group"}
numbers = {"scale0", "scale1", "shift0", "shift1", "tau0", "tau1", "norm0", "norm1", "p"}
for kernel in (decode.decode_stats_kernel, decode.decode_kernel, decode.merge_kernel):
    kinds, constants, aligned = {}, {}, {}
    for place, name in enumerate(kernel.arg_names):
        if name in choices:
            kinds[name], constants[place,] = "constexpr", choices[name]
        elif name in whole or name in numbers:
            kinds[name] = "i32" if name in whole else "fp32"
            if name in strides:  # whole rows, as a cache has them
                aligned[place,] = [["tt.divisibility", 16]]
        else:
            kinds[name] = "*" + (element if name in ("q", "k", "v", "out") else "fp32")
            aligned[place,] = [["tt.divisibility", 16]]
    built = triton.compile(
        ASTSource(kernel, kinds, constants, aligned),
        target=GPUTarget("cuda", int(arch), 32), options=decode.LAUNCH,
    )
    usage, code = disassemble(built.asm["cubin"])
    loops = [line for loop in _loops(code) for line in loop]
    in_loops = sum(bool(re.search(r"\b(LDL|STL)\b", line)) for line in loops)
    wide = len(re.findall(r"LDG\S*\.128|LDGSTS\S*\.128", code))
    print(kernel.fn.__name__, wide, re.search(r"REG:(\d+)", usage)[1],
          built.metadata.shared, in_loops, len(re.findall("MMA", code)))
"""


@pytest.mark.full
@pytest.mark.parametrize(
    ("arch", "dim", "rows", "kind"),
    [
        (80, 64, 16, ("softplus", "reweight", "none", "bf16")),
        (90, 128, 64, ("softplus", "reweight", "none", "bf16")),
        (89, 256, 16, ("exp", "elastic", "zero", "fp16")),
        *(
            pytest.param(arch, dim, rows, kind, marks=pytest.mark.slow)
            for arch in (80, 89, 90)
            for dim, rows in ((64, 64), (80, 16), (128, 64))
            for kind in (
                ("exp", "none", "alibi", "bf16"),
                ("exp", "elastic", "zero", "fp16"),
                ("softplus", "reweight", "none", "fp32"),
            )
        ),
    ],
)
def test_the_kernels_build_within_the_limits(arch, dim, rows, kind):
    # Outside the interpreter that the other tests use.
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", BUILD, *map(str, (arch, dim, rows)), *kind]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line in lines:
        wide, _, shared, in_loops, products = map(int, line.split()[1:])
        assert wide >= 8, line  # 16 bytes a load
        assert shared <= SHARED, line
        assert in_loops == 0, line  # registers that are too many go to memory
        assert products > 0 or line.startswith("merge"), line
