"""ZeroS's kernels, compiled without a GPU: they build, fit and spill nothing in a loop."""

import os
import subprocess
import sys

import pytest

from attention.linear import _zeros_triton

pytestmark = pytest.mark.skipif(_zeros_triton.kernels is None, reason="triton is not installed")
LOCAL_LIMIT = 64
"""Bytes of stack for numbers that are needed only after the loops."""
SHARED = 99 * 1024
"""Bytes that a block may have on every GPU from compute capability 8.0 on."""

BUILD = """
import re, sys, triton
from triton.backends.compiler import GPUTarget
from triton.compiler import ASTSource
from attention.linear import _zeros_triton
from attention.triton.tools.aot import _loops, disassemble

architecture, channels = map(int, sys.argv[1:3])
for name, *chosen in [line.split() for line in sys.argv[3:]]:
    kernel = getattr(_zeros_triton.kernels, name)
    choices = _zeros_triton.sizes(channels, channels, 64, architecture // 10) | dict(
        GRADIENT=chosen[0] if chosen else "", REVERSE=bool(chosen)
    )
    kinds, constants, aligned = {}, {}, {}
    for place, argument in enumerate(kernel.arg_names):
        if argument in choices:
            kinds[argument], constants[place,] = "constexpr", choices[argument]
        elif argument in ("length", "size"):
            kinds[argument] = "i32"
        else:
            kinds[argument], aligned[place,] = "*fp32", [["tt.divisibility", 16]]
    source = ASTSource(kernel, kinds, constants, aligned)
    built = triton.compile(
        source, target=GPUTarget("cuda", architecture, 32), options=_zeros_triton.LAUNCH
    )
    usage, code = disassemble(built.asm["cubin"])
    local = re.search(r"STACK:(\\d+)", usage)[1]
    spills = sum("LDL" in x or "STL" in x for body in _loops(code) for x in body)
    print(name, *chosen, built.metadata.shared, local, spills, len(re.findall("MMA", code)))
"""
KERNELS = ("scan_kernel", "mix_kernel", "mix_kernel k", "numbers_kernel")
OTHERS = ("scan_kernel reverse", "mix_kernel q", "mix_kernel v")


@pytest.mark.full
@pytest.mark.parametrize(
    ("architecture", "channels", "kernels"),
    [
        (90, 64, KERNELS),
        *(
            pytest.param(architecture, d, KERNELS + OTHERS, marks=pytest.mark.slow)
            for architecture in (80, 89, 90, 120)
            for d in (16, 32, 64, 128)
        ),
    ],
)
def test_the_kernels_build_within_the_limits(architecture, channels, kernels):
    # Outside the interpreter that the other tests use.
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-c", BUILD, str(architecture), str(channels), *kernels]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    lines = done.stdout.splitlines()
    assert len(lines) == len(kernels)
    for line in lines:
        shared, local, spills, products = map(int, line.split()[-4:])
        assert shared <= SHARED, line
        assert local <= LOCAL_LIMIT, line  # bytes of stack, where registers go that are too many
        assert spills == 0, line
        assert products > 0, line
