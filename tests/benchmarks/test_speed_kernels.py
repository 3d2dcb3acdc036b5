"""The kernel benchmark: what is measured in which order, divided by what, counted how."""

import functools
import json

import pytest
import torch

from attention import get, reference
from benchmarks.speed import eager, kernel_report, kernels, lines


@pytest.mark.parametrize("name", eager.NAMES)
def test_the_plain_operations_are_the_variant(name):
    generator = torch.Generator().manual_seed(0)
    q, k, v = (torch.randn(2, 3, 17, 8, generator=generator, dtype=torch.float64) for _ in range(3))
    tau = torch.tensor([0.5, 1.0, 1.3], dtype=torch.float64)
    parameters = {"tau": tau} if name == "elastic" else {}
    found = eager.attend(q, k, v, get(name), parameters.get("tau"))
    torch.testing.assert_close(found, reference.attend(q, k, v, get(name), parameters))


def test_without_a_gpu_eager_is_compared_and_the_rest_skipped(tmp_path, capsys):
    if torch.cuda.is_available():
        pytest.skip("there is a GPU")
    out, figure = tmp_path / "kernels.jsonl", tmp_path / "kernels.png"
    assert kernels.main(["--lengths", "64", "256", "--out", str(out), "--figure", str(figure)]) == 0
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    measured = [row for row in rows if row["status"] == "measured"]
    assert {row["peer"] for row in measured} == {"sdpa", "eager"}
    assert {row["variant"] for row in measured} == set(kernels.VARIANTS)
    assert {row["length"] for row in measured} == {64, 256}
    assert {row["mode"] for row in measured} == {"training", "forward", "backward"}
    skipped = {row["peer"]: row["status"] for row in rows if row["status"] != "measured"}
    assert skipped["triton"] == "skipped: needs a CUDA device"
    floors = {}
    for row in measured:
        assert row["manifest"]["device"] == "cpu"
        assert row["manifest"]["config"]["threads"] == torch.get_num_threads()
        assert row["seconds_20"] <= row["seconds"] <= row["seconds_80"]
        assert (row["bytes"] > 0) is (row["mode"] != "forward")
        floor = floors.setdefault((row["length"], row["mode"]), row)
        assert floor["peer"] == "sdpa", "the floor is written before what is divided by it"
        assert row["x_sdpa"] == row["seconds"] / floor["seconds"]
        assert ("bytes_x_sdpa" in row) is (floor["bytes"] > 0)
        if floor["bytes"]:
            assert row["bytes_x_sdpa"] == row["bytes"] / floor["bytes"]
    kept = {
        (row["variant"], row["length"]): row["bytes"]
        for row in measured
        if row["peer"] == "eager" and row["mode"] == "training"
    }
    assert kept["lssar", 256] > kept["lssa", 256] > kept["softmax", 256]
    assert kept["lssar", 256] > 8 * kept["lssar", 64]  # O(L^2)
    assert figure.stat().st_size > 1000
    printed = capsys.readouterr().out
    assert "triton     skipped: needs a CUDA device (24 rows)" in printed
    assert "x sdpa" in printed


def test_the_floor_of_the_memory_is_the_output_and_the_rows_sums():
    shape = (1, 4, 64, 16)
    found = kernels.measure("sdpa", get("softmax"), shape, torch.float32, "cpu", "training")
    assert found["bytes"] == 4 * (4 * 64 * 16 + 4 * 64)


def test_every_shape_has_a_row_or_a_reason():
    rows = list(kernels.cases("cuda", [1024, 4096, 16384]))
    seen = {tuple(row[k] for k in ("peer", "variant", "length", "head_dim", "mode")): why
            for row, why in rows}  # fmt: skip
    for peer in ("triton", "eager", "flex", "compiled"):
        assert sum(key[0] == peer for key in seen) == 3 * 2 * 3 * len(kernels.VARIANTS)
    assert len(seen) == len(rows)
    square, minute = "O(L^2) memory", "a minute to compile; one length"
    for (peer, *_, length, _, _), why in seen.items():
        expected = {
            ("eager", 16384): square, ("compiled", 16384): square, ("compiled", 1024): minute,
            ("flex", 1024): minute, ("flex", 16384): minute,
        }.get((peer, length))  # fmt: skip
        assert (why if isinstance(why, str) else None) == expected


def test_what_others_are_divided_by_is_measured_before_them():
    before = []
    for row, measure in kernels.cases("cuda", [1024, 4096, 8192]):
        row = {**row, "device": "cuda"}
        if row["peer"] not in kernel_report.FLOORS["cuda"] and not isinstance(measure, str):
            expected = {"sdpa_flash", "sdpa_cudnn"}
            expected |= {"triton"} if row["peer"] != "triton" else set()
            assert set(kernel_report.bases(row, [*before, row])) == expected
        before.append(row)
    targets = [row for row in before if row["peer"] in ("flex", "compiled")][:8]
    assert {(x["length"], x["head_dim"], x["mode"]) for x in targets} == {(4096, 64, "training")}


def test_a_row_is_divided_by_floors_of_its_shape_and_by_our_kernels_of_its_variant():
    shape = {"length": 64, "head_dim": 64, "mode": "forward", "device": "cuda"}
    flash = {"peer": "sdpa flash", "variant": "softmax", **shape}
    other = {**flash, "length": 128}
    ours = {"peer": "triton", "variant": "lssa", **shape}
    softmax = {**ours, "variant": "softmax"}
    peer = {**ours, "peer": "compiled"}
    rows = [other, flash, softmax, ours, peer]
    assert kernel_report.bases(peer, rows) == {"sdpa_flash": flash, "triton": ours}
    assert kernel_report.bases(ours, rows) == {"sdpa_flash": flash}
    assert kernel_report.bases(other, rows) == {"sdpa_flash": other}
    assert kernel_report.bases({**peer, "mode": "backward"}, rows) == {}


def test_the_table_has_both_kinds_of_ratio_and_counts_what_was_skipped():
    row = {
        "peer": "eager", "variant": "lssar", "length": 4096, "head_dim": 64, "mode": "training",
        "device": "cuda", "status": "measured", "seconds": 1e-3, "seconds_20": 1e-3,
        "seconds_80": 2e-3, "bytes": 3 * 2**20, "x_sdpa_flash": 21.5, "x_triton": 9.25,
        "bytes_x_sdpa_flash": 30.0, "bytes_x_triton": 7.5,
    }  # fmt: skip
    skips = [{**row, "mode": m, "status": "skipped: the time was up"} for m in kernels.MODES]
    failed = {**row, "peer": "flex", "status": "failed: no"}
    title, first, *rest = kernel_report.table([row, failed, *skips]).splitlines()
    assert title.split().count("flash") == 2
    assert first.split()[-8:] == ["21.50", "-", "9.25", "3.0", "30.00", "-", "7.50", "-"]
    assert rest[0].endswith("failed: no")
    assert rest[1] == "eager      skipped: the time was up (3 rows)"


@pytest.mark.parametrize("name", ["softmax", "lssar"])
def test_backward_alone_is_a_gradient_of_a_graph_that_is_kept(name, monkeypatch):
    asked = []
    grad = torch.autograd.grad

    def counting(out, leaves, upstream, retain_graph):
        asked.append((out, retain_graph))
        return grad(out, leaves, upstream, retain_graph=retain_graph)

    monkeypatch.setattr(torch.autograd, "grad", counting)
    arguments = get(name), (1, 2, 16, 8), torch.float32, "cpu"
    kernels.measure("eager", *arguments, "forward")
    assert not asked
    kernels.measure("eager", *arguments, "training")
    assert not any(kept for _, kept in asked)
    assert len({id(out) for out, _ in asked}) == len(asked), "each has a graph of its own"
    asked.clear()
    kernels.measure("eager", *arguments, "backward")
    assert len({id(out) for out, kept in asked if kept}) == 1
    assert sum(kept for _, kept in asked) == lines.CPU_REPEATS


def test_a_compiled_graph_can_be_kept(monkeypatch):
    plain = functools.partial(torch.compile, backend="aot_eager")
    monkeypatch.setattr(torch, "compile", plain)
    found = kernels.measure(
        "compiled", get("lssar"), (1, 2, 32, 8), torch.float32, "cpu", "backward"
    )
    assert found["seconds"] > 0
    assert "flops_per_s" not in found


def test_products_are_those_of_each_algorithm():
    softmax, lssar = get("softmax"), get("lssar")
    modes = ("forward", "backward", "training")
    found = {
        (peer, spec.name): tuple(kernels.products(peer, spec, mode) for mode in modes)
        for peer, spec in [("sdpa flash", softmax), ("triton", softmax), ("triton", lssar)]
    }
    assert found == {
        ("sdpa flash", "softmax"): (2, 5, 7),
        ("triton", "softmax"): (2, 7, 9),
        ("triton", "lssar"): (3, 7, 11),
    }
    for peer in ("eager", "flex", "compiled"):
        assert kernels.products(peer, lssar, "training") is None


def test_nothing_starts_after_the_deadline(capsys):
    assert kernels.main(["--lengths", "32", "--minutes", "1e-9"]) == 0
    assert "skipped: the time was up" in capsys.readouterr().out
