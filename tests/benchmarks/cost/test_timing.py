"""Measurement: bytes counted once, and seconds of the clock on the wall."""

import time

import torch

from benchmarks.cost import timing


def test_a_storage_is_counted_once_and_what_is_given_never():
    x, weight = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    size = 8 * 8 * 4

    def call():
        y = (x @ weight.t()).exp()  # keeps x, weight and y
        (y.t() * y).sum().backward()  # keeps y twice, once as a view

    assert timing.kept_bytes(call, []) == 3 * size
    assert timing.kept_bytes(call, [x]) == 2 * size
    assert timing.kept_bytes(call, [x, weight]) == size


def test_what_was_freed_is_not_taken_for_what_came_in_its_place():
    def call():
        for _ in range(4):  # each tensor may get the memory of the one before
            torch.ones(1000, requires_grad=True).exp().sum().backward()

    assert timing.kept_bytes(call, []) == 4 * 4000


def test_seconds_are_those_of_the_clock_on_the_wall():
    found = timing.times(lambda: time.sleep(0.01), "cpu")
    assert 0.01 <= found["seconds_20"] <= found["seconds"] <= found["seconds_80"]
