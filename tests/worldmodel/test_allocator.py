"""Freed memory stays with the process: the next step's tensors fault no pages in."""

import functools
import subprocess
import sys

import pytest

import worldmodel.__main__
from worldmodel import allocator, cli

FAULTS = """
import resource
import torch
from worldmodel.allocator import keep_freed_memory

told = {keep} and keep_freed_memory()


def step():
    kept = [torch.ones(2**20) for _ in range(16)]  # as autograd keeps a step's tensors


step()
step()
before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
for _ in range(10):
    step()
print(bool(told), resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before)
"""


def faults(keep: bool) -> tuple[str, int]:
    done = subprocess.run(
        [sys.executable, "-c", FAULTS.format(keep=keep)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    told, count = done.stdout.split()
    return told, int(count)


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="mallopt is glibc's")
def test_blocks_of_a_few_megabytes_are_kept():
    told, count = faults(keep=True)
    if told == "False":
        pytest.skip("this C library has no mallopt")
    assert 5 * count < faults(keep=False)[1]


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
    monkeypatch.setattr(allocator, "keep_freed_memory", keep)
    monkeypatch.setattr(cli, "keep_freed_memory", keep)
    with pytest.raises(SystemExit):
        cli.main(["--help"])
    assert len(told) == 1
    monkeypatch.setattr(sys, "argv", ["worldmodel", "probe", "nothing.ckpt"])
    with pytest.raises(SystemExit):
        worldmodel.__main__.main()
    assert len(told) == 2
