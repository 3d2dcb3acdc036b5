import multiprocessing
import os
import resource
import sys
import time
from pathlib import Path

import pytest

from symreg.formula import bounded


def forever():
    while True:
        pass


def test_the_result_comes_back():
    seen = {"a": 1}
    assert bounded.call(lambda: {**seen, "b": (2.5, None)}) == {"a": 1, "b": (2.5, None)}
    assert bounded.call(lambda: None) is None
    assert bounded.call(os.getpid) != os.getpid()


def test_an_error_comes_back():
    def refuse():
        raise ValueError("no such thing")

    with pytest.raises(ValueError, match="no such thing"):
        bounded.call(refuse)


@pytest.mark.full
def test_time_is_limited():
    with pytest.raises(bounded.OutOfLimits, match="more than 1 s"):
        bounded.call(forever, seconds=1.0)


def test_the_limit_is_on_cpu_time_so_that_a_busy_machine_changes_no_answer():
    def limits():
        return resource.getrlimit(resource.RLIMIT_CPU)[0]

    assert bounded.call(limits, seconds=2.5) == 3


def test_sleeping_is_limited_too():
    with pytest.raises(bounded.OutOfLimits):  # it would come back without a result or an error
        bounded.call(lambda: time.sleep(3600), seconds=0.2)


@pytest.mark.full
def test_a_child_that_waits_for_the_machine_is_not_out_of_time():
    def work():
        time.sleep(1.5)
        return 1

    # Beyond the limit on its own time, and far from ten times that, which a busy machine may need.
    assert bounded.call(work, seconds=1.0) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="the memory limit needs /proc")
def test_memory_is_limited():
    with pytest.raises(bounded.OutOfLimits):
        bounded.call(lambda: bytearray(3 * 1024**3))


def test_endless_recursion_is_out_of_limits():
    def down(n):
        return down(n + 1)

    with pytest.raises(bounded.OutOfLimits):
        bounded.call(lambda: down(0))


def children():
    """Return the process ids of all children; multiprocessing knows none that os.fork made."""
    me = os.getpid()
    return set(Path(f"/proc/{me}/task/{me}/children").read_text().split())


@pytest.mark.skipif(sys.platform != "linux", reason="children are listed in /proc")
def test_no_child_is_left_behind(capfd):
    before = children()  # another test's may live
    for _ in range(3):
        bounded.call(lambda: 1)
        with pytest.raises(bounded.OutOfLimits):
            bounded.call(lambda: os._exit(3))
    assert children() <= before
    assert capfd.readouterr() == ("", "")


def in_a_worker(_):
    return bounded.call(lambda: 7)


def test_it_works_inside_a_worker_of_a_pool():
    with multiprocessing.get_context("fork").Pool(1) as pool:
        assert pool.map(in_a_worker, range(2)) == [7, 7]
