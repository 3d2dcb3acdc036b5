"""Migration of speed measurements from schema 1, a file of flat lines, to results folders.

Lines of the orbit generator, of searches and of skippable tiles are converted. What was measured,
and its manifest, stay as they were recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.cost import orbit_speed, search_speed, skippable
from orbits.runs import artefact, study
from orbits.runs.folder import CLAIM, LINES
from orbits.runs.result import SCHEMA, Case, Metric, Result
from orbits.runs.study import Study

Line = Mapping[str, Any]


def migrate(source: Path, target: Path) -> int:
    """Write the results of a file of schema 1 into a new folder, with its report."""
    lines = [json.loads(line) for line in source.read_text(encoding="utf-8").splitlines()]
    kind = str(lines[0].get("benchmark")) if lines else "nothing"
    if kind not in CONVERSIONS:
        raise ValueError(f"{source}: benchmark must be {' | '.join(CONVERSIONS)}, got {kind!r}")
    made, convert, settings = CONVERSIONS[kind]
    results = [study.with_units(made, result) for result in convert(lines)]
    config = {**made.config(made.settings("small"), "small"), **settings(lines)}
    manifest = {**lines[0]["manifest"], "config": config, "migrated_from_schema": 1}
    target.mkdir(parents=True)
    artefact.save_lines(target / LINES, (x.to_json() for x in results), manifest)
    record = {"schema": SCHEMA, "config": config, "manifest": manifest}
    artefact.save_record(target / CLAIM, record)
    study.report(made, target)
    return len(results)


def orbits(lines: Sequence[Line]) -> list[Result]:
    """Return a result per generator, and that of memory, which every line repeated."""
    rates = {x["name"]: x["trajectories_per_s"] for x in lines if x["status"] == "measured"}
    results = []
    for line in lines:
        case = Case("orbit_speed", "timing", line["name"], law="newton", protocol="fixed")
        status, _, reason = line["status"].partition(": ")
        if status == "skipped":
            about = {"what": line["what"]}
            skipped = Result(case, status, reason, details=about, manifest=line["manifest"])
            results.append(skipped)
            continue
        names = ("trajectories_per_s", "points_per_s", "differing_tokens")
        metrics = {name: line[name] for name in names}
        metrics["compiled_is"] = rates["compiled"] / rates[line["name"]]
        details = (
            "what", "package", "batch_rates", "trajectories", "cpu_seconds", "compared_tokens"
        )  # fmt: skip
        results.append(_result(case, metrics, {name: line[name] for name in details}, line))
    memory = Case("orbit_speed", "timing", orbit_speed.MEMORY)
    metrics = {"bytes_per_s": lines[0]["memset_bytes_per_s"]}
    return [*results, _result(memory, metrics, {}, lines[0])]


def searches(lines: Sequence[Line]) -> list[Result]:
    """Return a result per number of processes; a cell was a search."""
    results = []
    for line in lines:
        setting = {"searches": line["cells"], "processes": line["processes"]}
        case = Case("search_speed", "timing", line["engine"], law="newton", setting=setting)
        metrics = {
            "wall_s": line["wall_s"],
            "wall_s_per_search": line["wall_s_per_cell"],
            "cpu_s_per_search": line["cpu_s_per_cell"],
            "speed_up": line["speed_up"],
        }
        results.append(_result(case, metrics, {"load": line["load"]}, line))
    return results


def tiles(lines: Sequence[Line]) -> list[Result]:
    """Return a result per checkpoint and block."""
    results = []
    for line in lines:
        config = line["manifest"]["config"]
        setting = {
            "checkpoint": line["checkpoint"], "length": config["length"], "block": line["block"]
        }  # fmt: skip
        case = Case("skippable", "measurement", line["variant"], setting=setting)
        metrics = {
            f"{name}@{threshold:.2g}": value
            for name in ("skippable", "error")
            for threshold, value in zip(line["thresholds"], line[name], strict=True)
        }
        details = {"sharpen": line["sharpen"], "tile": config["tile"]}
        results.append(_result(case, metrics, details, line))
    return results


def _result(
    case: Case, metrics: Mapping[str, float], details: Mapping[str, Any], line: Line
) -> Result:
    typed = {name: Metric.of(value) for name, value in metrics.items()}
    return Result(case, metrics=typed, details=details, manifest=line["manifest"])


def _orbit_settings(lines: Sequence[Line]) -> dict[str, Any]:
    seconds = lines[0]["manifest"]["config"]["seconds"]
    return {"seconds": seconds, "generators": [line["name"] for line in lines]}


def _search_settings(lines: Sequence[Line]) -> dict[str, Any]:
    return {
        "engine": [lines[0]["engine"]],
        "processes": [line["processes"] for line in lines],
        "searches": lines[0]["cells"],
    }


def _tile_settings(lines: Sequence[Line]) -> dict[str, Any]:
    return {
        "checkpoints": list(dict.fromkeys(line["checkpoint"] for line in lines)),
        "length": lines[0]["manifest"]["config"]["length"],
        "thresholds": lines[0]["thresholds"],
    }


CONVERSIONS: Mapping[str, tuple[Study, Any, Any]] = {
    "speed/orbits": (orbit_speed.STUDY, orbits, _orbit_settings),
    "searches": (search_speed.STUDY, searches, _search_settings),
    "speed/skippable": (skippable.STUDY, tiles, _tile_settings),
}
"""Study, conversion of lines and reader of settings, by the name in old lines."""
