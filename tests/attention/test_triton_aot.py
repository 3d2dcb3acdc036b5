"""Every shipped tile, compiled for sm_90 without a GPU and held to the limits of ``aot``."""

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
def test_shipped_tiles_build_within_the_limits():
    done = compiled("--jobs", "1")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert len(list(aot.shipped())) == 90
    assert "90 kernels built for sm_90, 0 over a limit" in done.stdout


@pytest.mark.slow
def test_what_else_the_tiles_serve_builds_within_the_limits():
    done = compiled("--jobs", "2", "--kinds")
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    assert f"{len(list(aot.kinds()))} kernels built for sm_90, 0 over a limit" in done.stdout


def test_the_table_holds_each_kernel_once_and_nothing_else():
    assert set(tiles.table_of("sm_90")) == {tiles.key(*entry) for entry in aot.shipped()}


def test_an_architecture_without_a_table_uses_the_one_there_is():
    entry = next(aot.shipped())
    assert tiles.tile(*entry, "sm_100") == tiles.tile(*entry, "sm_90")


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"spills": 3}, "spills"),
        ({"local": 8}, "spills"),
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


def test_stack_outside_loops_is_for_32_bits_alone():
    rest = {"registers": 255, "spills": 0, "shared": 1024, "mma": 8, "issues": 300.0}
    name = tiles.key("dkdv", "none", 128, 32)
    tile = tiles.Tile(16, 32, 4, 1)
    assert aot.Report(name, tile, local=64, **rest).faults() == []
    assert "spills" in aot.Report(name, tile, local=65, **rest).faults()[0]


def test_it_refuses_to_compile_what_the_interpreter_wraps():
    if os.environ.get("TRITON_INTERPRET") != "1":
        pytest.skip("the tests run on a GPU, not under the interpreter")
    with pytest.raises(ValueError, match="TRITON_INTERPRET"):
        aot.build("dq", "none", 64, 16)
