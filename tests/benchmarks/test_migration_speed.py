"""Speed measurements of schema 1 as results folders: every number is kept."""

import json

import pytest

from benchmarks.__main__ import main
from benchmarks.migration import speed
from orbits.runs import folder

MANIFEST = {"git": {"commit": "0123456789"}, "device": "cpu", "config": {}}


def migrate(tmp_path, lines):
    source, target = tmp_path / "old.jsonl", tmp_path / "new"
    source.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert speed.migrate(source, target) == len(folder.load(target)[0])
    main(["report", str(target)])
    results, manifest = folder.load(target)
    assert manifest["migrated_from_schema"] == 1
    assert all(result.manifest == lines[0]["manifest"] for result in results)
    return results, manifest["config"], (target / "report.md").read_text()


def test_generators_and_the_speed_of_memory(tmp_path):
    manifest = {**MANIFEST, "config": {"seconds": 6.0}}
    common = {"benchmark": "speed/orbits", "memset_bytes_per_s": 2e10, "manifest": manifest}
    numbers = {
        "what": "draws", "status": "measured", "package": "orrery 0.1.0",
        "points_per_s": 5.0, "batch_rates": [1.0, 2.0, 3.0], "trajectories": 7,
        "cpu_seconds": 6.5, "differing_tokens": 0, "compared_tokens": 12,
    }  # fmt: skip
    results, config, text = migrate(tmp_path, [
        {**common, **numbers, "name": "compiled", "trajectories_per_s": 60.0},
        {**common, **numbers, "name": "numpy", "trajectories_per_s": 6.0},
        {**common, "name": "gpu", "what": "", "status": "skipped: needs a CUDA device"},
    ])  # fmt: skip
    compiled, numpy, gpu, memory = results
    assert (numpy.case.variant, numpy.value("trajectories_per_s")) == ("numpy", 6.0)
    assert numpy.value("points_per_s") == 5.0
    assert numpy.metrics["points_per_s"].unit == "points per core-second"
    assert (compiled.value("compiled_is"), numpy.value("compiled_is")) == (1, 10)
    for name in ("what", "package", "batch_rates", "trajectories", "cpu_seconds"):
        assert numpy.details[name] == numbers[name]
    assert (gpu.status, gpu.error) == ("skipped", "needs a CUDA device")
    assert memory.value("bytes_per_s") == 2e10
    assert config["seconds"] == 6.0
    assert config["generators"] == ["compiled", "numpy", "gpu"]
    assert "needs a CUDA device" in text


def test_searches(tmp_path):
    line = {
        "benchmark": "searches", "processes": 2, "cells": 6, "engine": "operon", "wall_s": 40.6,
        "cpu_s_per_cell": 12.9, "wall_s_per_cell": 6.8, "speed_up": 1.58, "load": 1.9,
        "manifest": MANIFEST,
    }  # fmt: skip
    (result,), config, _ = migrate(tmp_path, [line])
    assert result.case.setting == {"searches": 6, "processes": 2}
    assert {name: metric.value for name, metric in result.metrics.items()} == {
        "wall_s": 40.6, "wall_s_per_search": 6.8, "cpu_s_per_search": 12.9, "speed_up": 1.58
    }  # fmt: skip
    assert result.details == {"load": 1.9}
    assert (config["processes"], config["searches"], config["engine"]) == ([2], 6, ["operon"])


def test_tiles(tmp_path):
    manifest = {**MANIFEST, "config": {"length": 4096, "tile": [128, 64]}}
    line = {
        "benchmark": "speed/skippable", "checkpoint": "p15.ckpt", "variant": "lssar p=15",
        "sharpen": 1.0, "block": 2, "thresholds": [0.0, 2**-9], "skippable": [0.0, 0.25],
        "error": [0.0, 0.5], "manifest": manifest,
    }  # fmt: skip
    (result,), config, _ = migrate(tmp_path, [line])
    assert result.case.variant == "lssar p=15"
    assert result.case.setting == {"checkpoint": "p15.ckpt", "length": 4096, "block": 2}
    assert {name: metric.value for name, metric in result.metrics.items()} == {
        "skippable@0": 0, "skippable@0.002": 0.25, "error@0": 0, "error@0.002": 0.5
    }  # fmt: skip
    assert result.details == {"sharpen": 1.0, "tile": [128, 64]}
    assert (config["length"], config["checkpoints"]) == (4096, ["p15.ckpt"])


def test_other_lines_are_refused(tmp_path):
    for lines in ([], [{"benchmark": "speed/kernels"}]):
        with pytest.raises(ValueError, match=r"benchmark must be speed/orbits \| searches"):
            migrate(tmp_path, lines)
    assert not (tmp_path / "new").exists()
