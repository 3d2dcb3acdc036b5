"""What the speed benchmarks share: bytes counted once, ratios, and an exit code."""

import json
import time

import pytest
import torch

from benchmarks.speed import lines


def test_a_storage_is_counted_once_and_what_is_given_never():
    x, weight = (torch.randn(8, 8, requires_grad=True) for _ in range(2))
    size = 8 * 8 * 4

    def call():
        y = (x @ weight.t()).exp()  # keeps x, weight and y
        (y.t() * y).sum().backward()  # keeps y twice, once as a view

    assert lines.kept_bytes(call, []) == 3 * size
    assert lines.kept_bytes(call, [x]) == 2 * size
    assert lines.kept_bytes(call, [x, weight]) == size


def test_what_was_freed_is_not_taken_for_what_came_in_its_place():
    def call():
        for _ in range(4):  # each tensor may get the memory of the one before
            torch.ones(1000, requires_grad=True).exp().sum().backward()

    assert lines.kept_bytes(call, []) == 4 * 4000


def test_seconds_are_those_of_the_clock_on_the_wall():
    found = lines.times(lambda: time.sleep(0.01), "cpu")
    assert 0.01 <= found["seconds_20"] <= found["seconds"] <= found["seconds_80"]


def test_ratios_are_of_time_and_of_memory_where_there_is_any():
    row = {"seconds": 3.0, "bytes": 10}
    bases = {"a": {"seconds": 2.0, "bytes": 4}, "b": {"seconds": 6.0, "bytes": 0}}
    assert lines.ratios(row, bases) == {"x_a": 1.5, "x_b": 0.5, "bytes_x_a": 2.5}


def run(statuses, out=None):
    """Run cases whose measurement returns numbers or raises."""

    def case(peer, outcome):
        def measure():
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return {"peer": peer}, outcome if isinstance(outcome, str) else measure

    return lines.measure_all(
        "speed/test", [case(*pair) for pair in statuses], lambda row, rows: {"first": rows[0]},
        {}, time.monotonic() + 60, "cpu", out,
    )  # fmt: skip


NUMBERS = {"seconds": 2.0, "bytes": 8}


def test_a_row_is_written_with_its_ratios_when_it_is_measured(tmp_path):
    out, seen = tmp_path / "rows.jsonl", []

    def written():
        seen.append([json.loads(x) for x in out.read_text().splitlines()] if out.exists() else [])
        return {"seconds": 4.0, "bytes": 2}

    cases = [({"peer": "a"}, lambda: NUMBERS), ({"peer": "b"}, written), ({"peer": "c"}, written)]
    lines.measure_all(
        "speed/test", cases, lambda row, rows: {"first": rows[0]}, {}, time.monotonic() + 60,
        "cpu", out,
    )  # fmt: skip
    assert [len(rows) for rows in seen] == [1, 2]
    assert seen[1][1]["x_first"] == 2.0
    assert seen[1][1]["bytes_x_first"] == 0.25


@pytest.mark.parametrize(
    ("outcomes", "code"),
    [
        ([("triton", NUMBERS), ("eager", NUMBERS)], 0),
        ([("triton", "the time was up"), ("eager", RuntimeError("no"))], 0),
        ([("eager", NUMBERS), ("triton", RuntimeError("illegal\naccess"))], 1),
        ([("triton", torch.OutOfMemoryError("no")), ("triton", NUMBERS)], 1),
    ],
)
def test_a_failed_kernel_of_ours_is_an_exit_code_and_is_named(outcomes, code, capsys):
    rows = run(outcomes)
    capsys.readouterr()
    assert lines.exit_code(rows, "peer") == code
    printed = capsys.readouterr().out
    assert bool(printed) is bool(code)
    if code:
        assert "triton" in printed
        assert "failed: " in printed
        assert printed.count("\n") == 1
