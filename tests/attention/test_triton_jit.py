"""What only a launch does, without a device: binding, specialisation, compiling for a GPU."""

import json
import os
import subprocess
import sys

import pytest

from attention.triton import backend
from tests.attention.without_device import CALLS

pytestmark = [
    pytest.mark.skipif(backend.ops is None, reason="triton is not installed (Linux only)"),
    pytest.mark.full,
]


@pytest.fixture(scope="module")
def launches():
    """Return the launches of every call, made outside the interpreter of the other tests."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "tests.attention.without_device"]
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_every_pattern_of_arguments_binds_and_compiles(launches):
    apart = ("rotation", "zeros")
    assert [call for call in launches if not call.startswith(apart)] == list(CALLS)
    kernels = {call: [kernel for kernel, _ in made] for call, made in launches.items()}
    assert kernels["lssar of one query"] == [
        "unit_kernel", "stats_kernel", "forward_kernel", "pre_kernel", "dq_kernel", "dkdv_kernel",
    ]  # fmt: skip
    assert kernels["lssar without a gradient"] == ["unit_kernel", "stats_kernel", "forward_kernel"]
    assert kernels["lssar of a token of a cache"] == [
        "decode_stats_kernel", "decode_kernel", "merge_kernel",
    ]  # fmt: skip
    assert "means_kernel" in kernels["lssar in float32"]
    assert kernels["lssar with all gradients in one pass"][3:] == [
        "pre_kernel", "dkdv_kernel", "finish_kernel",
    ]  # fmt: skip
    assert kernels["lssar with exact means"][3:] == [
        "pre_kernel", "means_kernel", "dq_kernel", "dkdv_kernel",
    ]  # fmt: skip
    assert kernels["lssar turned on its way"] == [
        "unit_kernel", "stats_kernel", "forward_kernel", "pre_kernel", "dq_kernel", "dkdv_kernel",
        "rope_kernel", "rope_kernel",
    ]  # fmt: skip
    assert launches["lssar of a head dim between"] == launches["lssar of one token"]
    assert kernels["softmax"] == ["forward_kernel", "pre_kernel", "dq_kernel", "dkdv_kernel"]


def test_no_shape_compiles_a_kernel_again(launches):
    """Triton makes another binary of a number that is 1, or divides by 16, unless told not to."""
    shapes = ("of one token", "of 16", "of more heads", "of one query")
    assert len({str(launches[f"lssar {shape}"]) for shape in shapes}) == 1
    assert launches["lssar of a token of a cache"] == launches["lssar of the next token"]
    assert [kernel for kernel, _ in launches["rotation of 1"]] == 2 * ["rope_kernel"]
    assert launches["rotation of 16"] == launches["rotation of 33"] == launches["rotation of 1"]
    assert [kernel for kernel, _ in launches["zeros of 1"]] == [
        "scan_kernel", "mix_kernel",
        "scan_kernel", "scan_kernel", "numbers_kernel", "mix_kernel", "mix_kernel", "mix_kernel",
    ]  # fmt: skip
    assert launches["zeros of 16"] == launches["zeros of 33"] == launches["zeros of 1"]
    assert launches["lssar turned on its way"] == launches["lssar of 16 turned on its way"]
    # Storage off alignment is another matter: its loads are narrower.
    assert launches["lssar off alignment"] != launches["lssar of one token"]
