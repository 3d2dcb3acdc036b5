"""Freed memory stays with the process: the next step's tensors fault no pages in."""

import ctypes
import functools
import subprocess
import sys

import pytest

from worldmodel import cli
from worldmodel.probes import probe
from worldmodel.training import allocator

HELD = """
import ctypes
import torch
from worldmodel.training.allocator import keep_freed_memory


class Mallinfo(ctypes.Structure):  # glibc's struct mallinfo2, in its order
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split())]


told = {keep} and keep_freed_memory()


def step():
    kept = [torch.ones(2**20) for _ in range(16)]  # as autograd keeps a step's tensors


step()
step()
mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Mallinfo
print(bool(told), mallinfo().fordblks)
"""


def held(keep: bool) -> tuple[bool, int]:
    """Whether the C library took the setting; the free bytes it holds after two steps of 64 MiB.

    Its own account is asked: kernels differ in how they count page faults.
    """
    done = subprocess.run(
        [sys.executable, "-c", HELD.format(keep=keep)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told, count = done.stdout.split()
    return told == "True", int(count)


@pytest.mark.full
@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="mallinfo2 is glibc's, from 2.33"
)
def test_blocks_of_a_few_megabytes_are_kept():
    told, count = held(keep=True)
    assert told
    assert count >= 64 * 2**20
    assert held(keep=False)[1] + 32 * 2**20 < count


def test_other_c_libraries_are_left_as_they_are(monkeypatch):
    def no_library(name):
        raise OSError(name)

    monkeypatch.setattr(allocator.ctypes, "CDLL", no_library)
    assert not allocator.keep_freed_memory()

    monkeypatch.setattr(allocator.ctypes, "CDLL", lambda name: object())
    assert not allocator.keep_freed_memory()


def test_what_trains_keeps_freed_memory(monkeypatch):
    told = []
    keep = functools.partial(told.append, None)
    monkeypatch.setattr(probe, "keep_freed_memory", keep)
    monkeypatch.setattr(cli, "keep_freed_memory", keep)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert len(told) == 1
    probe.prepare()  # in each worker of the probes
    assert len(told) == 2
