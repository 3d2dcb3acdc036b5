"""Settings of every test: caches, threads, what starts first, and what a quick test may cost."""

import contextlib
import os
import sys
import time
from pathlib import Path

import pytest

QUICK = 2.0
"""CPU seconds that a test of the quick tier may take, with its fixtures and child processes."""
LOOP = 0.03
"""CPU seconds of :func:`loop` on the machine whose seconds count; another one's are converted."""
IMPORTED = 100
"""Modules loaded within one test that mark it as the one that pays for a library's import."""

# Threads of each worker on all cores would wait for one another; child processes inherit this.
os.environ.setdefault("OMP_NUM_THREADS", "1")
# Kernels built ahead of time are the same for every test, worker and run of this checkout.
os.environ.setdefault("TRITON_CACHE_DIR", str(Path(__file__).parents[1] / ".cache" / "triton"))

STARTED = pytest.StashKey[tuple[float, int]]()


@pytest.fixture
def refusal(capsys):
    """Return a function that runs a command which must be refused, and returns its line of error.

    It exits with 2, and what it says is one line; of Lightning's, which says more, ``alone=False``.
    """

    def refused(command, *arguments, alone=True):
        capsys.readouterr()
        with pytest.raises(SystemExit) as stopped:
            command(*arguments)
        assert stopped.value.code == 2
        out, err = capsys.readouterr()
        (line,) = (each for each in err.splitlines() if each.startswith("error"))
        assert not alone or (out, err) == ("", f"{line}\n")
        return line

    return refused


@pytest.fixture(autouse=True)
def nothing_left_over():
    """Take back what a training of an earlier test asked PyTorch for: deterministic algorithms."""
    if (torch := sys.modules.get("torch")) is not None:
        torch.use_deterministic_algorithms(False)


def cpu_seconds():
    """Return the CPU time of this process and of its finished children."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def loop():
    """Return the CPU seconds of a loop that says how slow this machine is just now."""
    start = time.process_time()
    for number in range(1_000_000):
        number * number % 7
    return time.process_time() - start


def compiles_for_a_gpu():
    """Return whether kernels are compiled in a test, which the interpreter does not do."""
    return (torch := sys.modules.get("torch")) is not None and torch.cuda.is_available()


def pytest_collection_modifyitems(items):
    """Start files with heavy tests first, so that no worker ends alone with one of them."""
    heavy = {item.path for item in items if item.get_closest_marker("heavy")}
    items.sort(key=lambda item: item.path not in heavy)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_setup(item):
    item.stash[STARTED] = cpu_seconds(), len(sys.modules)
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call(item):
    """Fail a test of the quick tier that takes too long, unless a library was imported in it.

    What numba compiles, the first test pays for that needs it: that is not counted.
    """
    with contextlib.ExitStack() as stack:
        compiling = []
        if (event := sys.modules.get("numba.core.event")) is not None:
            stack.enter_context(event.install_timer("numba:compile", compiling.append))
        result = yield
    before, modules = item.stash[STARTED]
    seconds = cpu_seconds() - before - sum(compiling)
    marks = ("full", "heavy", "slow", "network", "julia")
    exempt = any(item.get_closest_marker(m) for m in marks) or compiles_for_a_gpu()
    if seconds > QUICK and not exempt and len(sys.modules) - modules < IMPORTED:
        seconds *= LOOP / max(loop(), loop())
        if seconds > QUICK:
            pytest.fail(f"took {seconds:.1f} CPU seconds, more than {QUICK:g}: mark it full", False)
    return result
