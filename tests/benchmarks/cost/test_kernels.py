"""The kernel benchmark: what is measured in which order, divided by what, counted how."""

import dataclasses
import functools

import pytest
import torch

from attention import get, reference
from benchmarks.cost import comparison, eager, kernel_call, kernels, timing
from orbits.runs import study
from orbits.runs.cell import leave_out
from orbits.runs.result import Case, Metric, Result


@pytest.mark.parametrize("name", eager.NAMES)
def test_the_plain_operations_are_the_variant(name):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 17, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    tau = torch.tensor([0.5, 1.0, 1.3], dtype=torch.float64)
    parameters = {"tau": tau} if name == "elastic" else {}
    found = eager.attend(q, k, v, get(name), parameters.get("tau"))
    torch.testing.assert_close(found, reference.attend(q, k, v, get(name), parameters))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Return the folder and the results of a run without a GPU."""
    out = tmp_path_factory.mktemp("kernels")
    settings = kernels.STUDY.settings("tiny", lengths=[64, 256])
    return out, study.run(kernels.STUDY, settings, out, kernels.STUDY.execution, preset="tiny")


@pytest.mark.full
def test_without_a_gpu_eager_is_compared_and_the_rest_skipped(run):
    out, results = run
    measured = [result for result in results if result.ok]
    assert {x.case.get("backend") for x in measured} == {"sdpa", "blocked", "eager"}
    assert {x.case.variant for x in measured} == set(kernels.KernelSettings().attention)
    in_blocks = {x.case.variant for x in measured if x.case.get("backend") == "blocked"}
    assert in_blocks == {"lssar", "lssa"}
    assert {x.case.get("length") for x in measured} == {64, 256}
    assert {x.case.get("mode") for x in measured} == set(kernels.MODES)
    left = {(x.case.get("backend"), x.status, x.error) for x in results if not x.ok}
    needs, other = "needs a CUDA device", "the blocks of rows compute LSSA and LSSAR only"
    assert left == {
        *((name, "skipped", needs) for name in ("triton", "flex", "compiled")),
        ("blocked", "skipped", other),
    }
    assert study.summary(results, out)[1] == 0, "what is skipped is no failure"
    kept = {}
    for x in measured:
        assert x.manifest["device"] == "cpu"
        assert x.manifest["threads"] == torch.get_num_threads()
        assert x.value("seconds_20") <= x.value("seconds") <= x.value("seconds_80")
        assert x.metrics["seconds"].unit == "s"
        assert (x.value("bytes") > 0) is (x.case.get("mode") != "forward")
        if x.case.get("mode") == "training":
            kept[x.case.get("backend"), x.case.variant, x.case.get("length")] = x.value("bytes")
    assert kept["eager", "lssar", 256] > kept["eager", "lssa", 256] > kept["eager", "softmax", 256]
    assert kept["eager", "lssar", 256] > 8 * kept["eager", "lssar", 64]  # O(L^2)
    assert kept["blocked", "lssar", 256] == 4 * kept["blocked", "lssar", 64]  # O(L)


@pytest.mark.full
def test_the_report_has_ratios_a_figure_and_the_reason_once(run):
    out, results = run
    text = study.report(kernels.STUDY, out)
    assert "and 71 more: needs a CUDA device" in text
    assert (out / "figures" / "training.png").stat().st_size > 1000
    (floor,) = (
        x for x in results if x.ok and x.case.get("backend") == "sdpa"
        and (x.case.get("length"), x.case.get("mode")) == (64, "training")
    )  # fmt: skip
    bases = kernels.bases(floor, results)
    assert bases == {"sdpa": floor}


def test_the_floor_of_the_memory_is_the_output_and_the_rows_sums():
    shape = (1, 4, 64, 16)
    found = kernel_call.measure("sdpa", "softmax", shape, "float32", "cpu", "training")
    assert found.metrics["bytes"] == 4 * (4 * 64 * 16 + 4 * 64)


GPU = kernels.STUDY.settings("gpu", lengths=[1024, 4096, 16384])


def left_out(cell):
    """Return why a cell measures nothing, or None."""
    return cell.arguments["why"] if cell.function is leave_out else None


def test_every_shape_has_a_cell_or_a_reason():
    cells = list(kernels.STUDY.cells(GPU))
    names = ("backend", "variant", "length", "head_dim", "mode")
    seen = {tuple(map(cell.case.get, names)): left_out(cell) for cell in cells}
    for backend in ("triton", "eager", "flex", "compiled"):
        assert sum(key[0] == backend for key in seen) == 3 * 2 * 3 * len(GPU.attention)
    assert len(seen) == len(cells)
    square, minute = "O(L^2) memory", "a minute to compile; one length"
    for (backend, _, length, _, _), reason in seen.items():
        assert reason == {
            ("eager", 16384): square, ("compiled", 16384): square, ("compiled", 1024): minute,
            ("flex", 1024): minute, ("flex", 16384): minute,
        }.get((backend, length))  # fmt: skip


def result(cell, seconds=1.0, used=1.0):
    values = {"seconds": seconds, "seconds_20": seconds, "seconds_80": seconds, "bytes": used}
    metrics = {name: Metric(value) for name, value in values.items()}
    return Result(cell.case, metrics=metrics, manifest={"device": "cuda: x"})


def test_what_others_are_divided_by_is_measured_before_them():
    before = []
    for cell in kernels.STUDY.cells(GPU):
        backend = cell.case.get("backend")
        before.append(result(cell))
        if backend not in kernels.FLOORS["cuda"] and left_out(cell) is None:
            expected = {"sdpa flash", "sdpa cudnn"} | ({"triton"} - {backend})
            assert set(kernels.bases(before[-1], before)) == expected
    targets = [x.case for x in before if x.case.get("backend") in ("flex", "compiled")][:8]
    assert {(x.get("length"), x.get("head_dim"), x.get("mode")) for x in targets} == {
        (4096, 64, "training")
    }


def timed(backend, variant, seconds=1.0, used=1.0, device="cuda: x", **changes):
    setting = {"backend": backend, "length": 64, "head_dim": 64, "mode": "forward", **changes}
    values = {"seconds": seconds, "seconds_20": seconds, "seconds_80": 2 * seconds, "bytes": used}
    metrics = {name: Metric(value) for name, value in values.items()}
    case = Case("kernels", "timing", variant, setting=setting)
    return Result(case, metrics=metrics, manifest={"device": device})


def test_a_call_is_divided_by_floors_of_its_shape_and_by_our_kernels_of_its_variant():
    flash = timed("sdpa flash", "softmax")
    other = timed("sdpa flash", "softmax", length=128)
    ours, softmax = timed("triton", "lssa"), timed("triton", "softmax")
    peer, backward = timed("compiled", "lssa"), timed("compiled", "lssa", mode="backward")
    elsewhere = timed("compiled", "lssa", device="cuda: y")
    results = [other, flash, softmax, ours, peer, backward, elsewhere]
    assert kernels.bases(peer, results) == {"sdpa flash": flash, "triton": ours}
    assert kernels.bases(ours, results) == {"sdpa flash": flash}
    assert kernels.bases(other, results) == {"sdpa flash": other}
    assert kernels.bases(backward, results) == kernels.bases(elsewhere, results) == {}


def test_ratios_are_of_time_and_of_memory_where_there_is_any():
    row, base = timed("eager", "lssar", 3.0, 10), timed("sdpa", "softmax", 2.0, 4)
    nothing = timed("sdpa", "softmax", 6.0, 0)
    assert comparison.ratio(row, base, "seconds") == 1.5
    assert comparison.ratio(row, base, "bytes") == 2.5
    assert comparison.ratio(row, nothing, "seconds") == 0.5
    assert comparison.ratio(row, nothing, "bytes") is None
    assert comparison.ratio(row, None, "bytes") is None
    assert comparison.ratio(row, base, "roofline") is None


def test_the_table_has_both_kinds_of_ratio():
    results = [
        timed("sdpa flash", "softmax", 1e-3, 2**20), timed("triton", "lssar", 4e-3, 2 * 2**20),
        timed("eager", "lssar", 8e-3, 3 * 2**20),
    ]  # fmt: skip
    failed = dataclasses.replace(timed("flex", "lssar"), status="failed", error="no", metrics={})
    table, about = kernels.STUDY.tables([*results, failed])
    assert [value.text for value in table.rows[-1][5:]] == [
        "8.000", "8.00", "-", "2.00", "3.0", "3.00", "-", "1.50", "-"
    ]  # fmt: skip
    assert table.rows[-1][5].detail == "[8.000, 16.000]"
    assert len(table.rows) == 3
    assert [row[0].text for row in about.rows] == ["sdpa flash", "triton", "eager", "flex"]


def test_the_verdict_is_of_training_at_the_longest_length_of_plain_operations():
    training = [
        timed(backend, variant, seconds, mode="training", length=length)
        for backend, variant, seconds, length in (
            ("sdpa flash", "softmax", 1.0, 64), ("sdpa flash", "softmax", 2.0, 128),
            ("triton", "lssa", 9.0, 64), ("triton", "lssa", 3.0, 128),
            ("eager", "lssa", 12.0, 128), ("compiled", "lssa", 8.0, 128),
            ("sdpa flash", "softmax", 4.0, 256), ("triton", "lssa", 8.0, 256),
        )
    ]  # fmt: skip
    (said,) = kernels.STUDY.sentences([*training, timed("triton", "lssar", 1e-3, length=256)])
    assert said == (
        "Time of forward and backward, 128 tokens, over PyTorch's softmax (sdpa flash): triton "
        "with 64 channels: lssa 1.50; eager with 64 channels: lssa 6.00."
    )
    without = [x for x in training if x.case.get("backend") != "eager"]
    assert ", 256 tokens" in kernels.STUDY.sentences(without)[0]
    assert not kernels.STUDY.sentences([timed("sdpa flash", "softmax")])


def test_calls_that_the_verdict_speaks_of_come_first():
    calls = [
        timed(backend, "softmax", mode=mode, length=length)
        for mode in ("forward", "training")
        for length in (64, 128)
        for backend in ("sdpa flash", "triton", "eager")
    ]
    assert kernels.STUDY.tables(calls)[0].front == [9, 10]


@pytest.mark.parametrize("name", ["softmax", "lssar"])
def test_backward_alone_is_a_gradient_of_a_graph_that_is_kept(name, monkeypatch):
    asked = []
    grad = torch.autograd.grad

    def counting(out, leaves, upstream, retain_graph):
        asked.append((out, retain_graph))
        return grad(out, leaves, upstream, retain_graph=retain_graph)

    monkeypatch.setattr(torch.autograd, "grad", counting)
    arguments = name, (1, 2, 16, 8), "float32", "cpu"
    kernel_call.measure("eager", *arguments, "forward")
    assert not asked
    kernel_call.measure("eager", *arguments, "training")
    assert not any(kept for _, kept in asked)
    assert len({id(out) for out, _ in asked}) == len(asked), "each has a graph of its own"
    asked.clear()
    kernel_call.measure("eager", *arguments, "backward")
    assert len({id(out) for out, kept in asked if kept}) == 1
    assert sum(kept for _, kept in asked) == timing.CPU_REPEATS


@pytest.mark.full
def test_a_compiled_graph_can_be_kept(monkeypatch):
    plain = functools.partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(torch, "compile", plain)
    shape = (1, 2, 32, 8)
    found = kernel_call.measure("compiled", "lssar", shape, "float32", "cpu", "backward").metrics
    assert found["seconds"] > 0
    assert "flops_per_s" not in found


def test_products_are_those_of_each_algorithm():
    softmax, lssar = get("softmax"), get("lssar")
    modes = ("forward", "backward", "training")
    found = {
        (backend, spec.name): tuple(kernel_call.products(backend, spec, mode) for mode in modes)
        for backend, spec in [("sdpa flash", softmax), ("triton", softmax), ("triton", lssar)]
    }
    assert found == {
        ("sdpa flash", "softmax"): (2, 5, 7),
        ("triton", "softmax"): (2, 7, 9),
        ("triton", "lssar"): (3, 7, 11),
    }
    for backend in ("eager", "flex", "compiled"):
        assert kernel_call.products(backend, lssar, "training") is None


def test_the_study_of_a_gpu_ends_within_six_minutes():
    assert kernels.STUDY.execution.minutes < 6
