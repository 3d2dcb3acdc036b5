"""Shipped tiles, compiled without a GPU and held to the limits of ``aot``."""

import os
import subprocess
import sys

import pytest

from attention.triton import tiles
from attention.triton.tools import aot


def compiled(*arguments):
    """Run the command outside the interpreter that the other tests use."""
    environment = {k: v for k, v in os.environ.items() if k != "TRITON_INTERPRET"}
    command = [sys.executable, "-m", "attention", "aot", *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment)


@pytest.mark.full
@pytest.mark.heavy
@pytest.mark.parametrize(
    ("arch", "more"),
    [
        (80, ()),
        (90, ("reweight d64 16bit",)),
        *(pytest.param(arch, (), marks=pytest.mark.slow) for arch in (89, 100, 120)),
    ],
    ids=str,
)
def test_the_tiles_of_lssar_build_within_the_limits(arch, more):
    """These are the largest tiles, the first to spill or not to fit.

    At head dim 64 there is a budget of instructions, too, on sm_90 alone.
    """
    large = "forward reweight d128 16bit", "dkdv reweight d128 16bit", "forward reweight d256 16bit"
    done = compiled("--jobs", "1", "--arch", str(arch), "--only", *large, *more)
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{7 if more else 3} kernels built for sm_{arch}, 0 over a limit" in done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("arch", [80, 89, 90, 100, 120])
def test_shipped_tiles_build_within_the_limits(arch):
    done = compiled("--jobs", "1", "--arch", str(arch))
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(aot.shipped())) == 105
    assert f"105 kernels built for sm_{arch}, 0 over a limit" in done.stdout


@pytest.mark.slow
def test_what_else_the_tiles_serve_builds_within_the_limits():
    done = compiled("--jobs", "2", "--kinds")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(list(aot.kinds()))} kernels built for sm_90, 0 over a limit" in done.stdout


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_100", "sm_120"])
def test_a_table_holds_each_kernel_once_and_nothing_else(arch):
    assert set(tiles.table_of(arch)) == {tiles.key(*entry) for entry in aot.shipped()}


@pytest.mark.parametrize(
    ("capability", "shared", "table"),
    [
        (80, 163, "sm_80"), (86, 99, "sm_89"), (87, 163, "sm_80"), (89, 99, "sm_89"),
        (90, 227, "sm_90"), (100, 227, "sm_100"), (103, 227, "sm_100"), (110, 227, "sm_100"),
        (120, 99, "sm_120"), (121, 99, "sm_120"), (137, 500, "sm_100"), (137, 200, "sm_80"),
        (75, 64, None),
    ],
)  # fmt: skip
def test_a_gpu_takes_the_table_that_fits_its_shared_memory(capability, shared, table):
    assert tiles.table_for(capability, shared) == table


def test_each_compute_capability_has_a_table():
    for capability, shared in tiles.SHARED.items():
        name = tiles.table_for(capability, shared)
        assert tiles.SHARED[int(name[3:])] <= shared


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"spills": 3}, "spills"),
        ({"shared": 228 * 1024}, "shared memory"),
        ({"mma": 0}, "no matrix instructions"),
        ({"issues": 99.0}, "budget"),
    ],
)
def test_each_limit_is_noticed(changes, word):
    sound = {"registers": 100, "local": 0, "spills": 0, "shared": 1024, "mma": 8, "issues": 1.0}
    name = tiles.key("dq", "reweight", 64, 16)
    tile = tiles.Tile(128, 64, 8, 3)
    assert aot.Report(name, tile, **sound).faults() == []
    (fault,) = aot.Report(name, tile, **{**sound, **changes}).faults()
    assert word in fault


def test_stack_outside_loops_is_free():
    rest = {"registers": 255, "spills": 0, "shared": 1024, "mma": 8, "issues": 300.0}
    name = tiles.key("dkdv", "none", 128, 16)
    assert aot.Report(name, tiles.Tile(16, 32, 4, 1), local=650, **rest).faults() == []


def test_shared_memory_is_that_of_the_architecture():
    rest = {"registers": 255, "spills": 0, "mma": 8, "issues": 1.0, "local": 0}
    name, tile = tiles.key("dq", "none", 64, 16), tiles.Tile(16, 32, 4, 1)
    (fault,) = aot.Report(name, tile, shared=100 * 1024, arch=89, **rest).faults()
    assert "shared memory" in fault
    assert aot.Report(name, tile, shared=100 * 1024, arch=80, **rest).faults() == []


def test_it_refuses_to_compile_what_the_interpreter_wraps():
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("the tests run on a GPU, not under the interpreter")
    with pytest.raises(ValueError, match="TRITON_INTERPRET"):
        aot.build("dq", "none", 64, 16)
