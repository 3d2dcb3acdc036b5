"""Freed memory stays with the process: the next step's tensors fault no pages in."""

import ctypes
import functools
import subprocess
import sys

import pytest

from worldmodel import cli
from worldmodel.probes import probe
from worldmodel.training import allocator

SIZE = 31 * 2**20
"""Bytes of a block just below the largest that can be kept; none as large is freed before."""
ASKED = """
import ctypes
import torch
from worldmodel.training.allocator import keep_freed_memory


class Mallinfo(ctypes.Structure):  # glibc's struct mallinfo2, in its order
    _fields_ = [(name, ctypes.c_size_t) for name in (
        "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost".split())]


mallinfo = ctypes.CDLL(None).mallinfo2
mallinfo.restype = Mallinfo
told = {keep} and keep_freed_memory()
before = mallinfo()
block = torch.empty({size}, dtype=torch.uint8)
mapped = mallinfo().hblkhd - before.hblkhd
del block
print(bool(told), mapped, mallinfo().fordblks - before.fordblks)
"""


def account(keep: bool) -> tuple[bool, int, int]:
    """Return whether the C library took the setting, and what became of a block of SIZE bytes.

    The library's own account is asked, since kernels differ in how they count page faults: the
    bytes that were mapped for the block alone, and those that it holds free afterwards.
    """
    done = subprocess.run(
        [sys.executable, "-c", ASKED.format(keep=keep, size=SIZE)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told, mapped, held = done.stdout.split()
    return told == "True", int(mapped), int(held)


@pytest.mark.full
@pytest.mark.skipif(
    not hasattr(ctypes.CDLL(None), "mallinfo2"), reason="mallinfo2 is glibc's, from 2.33"
)
def test_blocks_of_a_few_megabytes_are_kept():
    told, mapped, held = account(keep=True)
    assert told
    assert mapped == 0
    assert held > SIZE // 2, "a part may have come from what was free before"
    told, mapped, held = account(keep=False)
    assert not told
    assert mapped >= SIZE, "it goes back to the system when it is freed"
    assert held < SIZE // 2


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
