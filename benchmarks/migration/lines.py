"""Migration of results from schema 1 to schema 2 (:mod:`orbits.runs.result`).

Schema 1 had four kinds of lines: those of the flagship and the leaderboard, of tasks, of probes
and of speed measurements. What a line measured, and its manifest, stay as they were recorded. So
do the addresses of its cells, which say nothing to ``--reuse`` any more: they were made of names
that schema 2 uses otherwise.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from orbits.runs import artefact
from orbits.runs.deferred import load
from orbits.runs.folder import CLAIM, LINES
from orbits.runs.result import SCHEMA, Case, Metric, Result
from orbits.runs.study import Study, with_units
from symreg.controls import NEAREST

OLD_CLAIMS = (CLAIM, "probe.json")
KINDS = {
    "pretraining": "world model",
    "next point": "next point",
    "predictor": "forces",
    "law": "search",
    "measurement": "measurement",
    "training": "training",
}
STUDIES = {"law rates": "law_rates"}
FIELDS = {"attentions": "attention", "engines": "engine", "task_version": "version"}
"""Settings that have another name now; those of one study come on top."""
FIELDS_OF = {
    "law_rates": {"laws": "law"},
    "leaderboard": {"arguments": "engine_args"},
    "cost": {"variants": "attention"},
}
ARRAYS = {"exponents": "exponent_{}", "law_exponents": "law_exponent_{}"}
SPLIT = {"distance_exponents": "exponent_r_{}"}
SEARCH = ("expression", "front", "rule", "settings")


def migrate(source: Path, target: Path, find: Callable[[str], Study]) -> int:
    """Write the results of a folder of schema 1 into a new folder of schema 2.

    Args:
        source: A results folder, kept or with its cells, which stays as it is.
        target: A folder that does not exist yet.
        find: Returns the study of a name, which says what units its metrics have.
    """
    claim = _claim(source)
    if not (source / LINES).is_file():
        raise FileNotFoundError(f"{source} holds no finished results (no {LINES})")
    lines, manifest = artefact.load_lines(source / LINES)
    study = _study(claim)
    names = _control_names(study)
    results: list[Result] = []
    counted: set[str] = set()
    for number, line in enumerate(lines, start=1):
        try:
            if line["kind"] == "probe":  # each line had the time of all lines of its checkpoint
                whole = artefact.key({"probe": line["probe"], "manifest": line["manifest"]})
                line = {**line, "cpu_s": 0.0} if whole in counted else line
                counted.add(whole)
            results += convert(line, study, names)
        except (KeyError, TypeError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{source / LINES}, line {number}: not a line of schema 1 "
                f"({type(error).__name__}: {error})"
            ) from None
    made = find(study)
    results = [with_units(made, result) for result in results]
    target.mkdir(parents=True)
    for part in source.iterdir():
        if part.is_dir() and not part.name.startswith("."):
            shutil.copytree(part, target / part.name)
    config = settings(claim["config"], study)
    manifest = {**manifest, "config": config, "migrated_from_schema": 1}
    record = {"schema": SCHEMA, "config": config, "manifest": manifest}
    artefact.save_lines(target / LINES, (x.to_json() for x in results), manifest)
    artefact.save_record(target / CLAIM, record)
    return len(results)


def convert(line: Mapping[str, Any], study: str, names: Mapping[str, str]) -> list[Result]:
    """Return the results of one line of schema 1."""
    if line["schema"] != 1:
        raise ValueError(f"schema {line['schema']}")
    if line["kind"] == "probe":
        return [_probe(line)]
    if line["kind"] in ("measurement", "training"):
        return [_task(line, study)]
    references = line["kind"] == "next point" and line["row"]["seed"] is None
    return list(_references(line, study)) if references else [_newton(line, study, names)]


def settings(config: Mapping[str, Any], study: str) -> dict[str, Any]:
    """Return the settings of a run under the names that they have now."""
    if "probes" in config:
        plain = {**config.get("settings", {}), **config, "preset": "small"}
        plain.pop("settings", None)
    elif isinstance(config.get("preset"), Mapping):  # the flagship's, with all its fields
        plain = {**config["preset"], **config, "preset": config["preset"]["name"]}
        plain.pop("name", None)
    else:
        plain = {"preset": "small", **config}
    plain.pop("benchmark", None)
    if study == "law_rates" and isinstance(plain["seeds"], list):  # the first, and one too many
        first, end = plain["seeds"]
        plain |= {"first_seed": first, "seeds": end - first}
    fields = FIELDS | FIELDS_OF.get(study, {})
    renamed = {fields.get(name, name): value for name, value in plain.items()}
    return {"study": study, "version": 1, **renamed}


def _claim(source: Path) -> dict[str, Any]:
    for name in OLD_CLAIMS:
        if (source / name).is_file():
            claim = artefact.load_record(source / name)
            if claim.get("schema", 1) != 1:
                raise ValueError(f"{source} holds results of schema {claim['schema']} already")
            return claim
    raise FileNotFoundError(f"{source} is not a results folder (no {' or '.join(OLD_CLAIMS)})")


def _study(claim: Mapping[str, Any]) -> str:
    name = claim["config"].get("benchmark", "probe")
    return STUDIES.get(name, name)


def _control_names(study: str) -> Mapping[str, str]:
    """Return the names that controls of a study have now, by those they had."""
    if study == "newton":
        names: Mapping[str, str] = load("benchmarks.newton.control_names:OLD_CONTROL_NAMES")
        return names
    return {"k-NN oracle": NEAREST} if study == "leaderboard" else {}


def _case(line: Mapping[str, Any], study: str, names: Mapping[str, str]) -> Case:
    row = dict(line["row"])
    seed, variant = row.pop("seed"), row.pop("model")
    shared = line["kind"] == "training"  # by several studies of language models
    return Case(
        study=line["task"] if shared else study,
        kind=KINDS[line["kind"]],
        variant=names.get(variant, variant),
        arm=row.pop("arm", None) or "-",
        seed=seed,
        law=None if line["kind"] in ("measurement", "training") else line.get("task"),
        protocol=row.pop("protocol", None),
        setting=row,
    )


def _result(
    line: Mapping[str, Any], case: Case, metrics: Mapping[str, Any], **details: Any
) -> Result:
    return Result(
        case=case,
        status=line.get("status", "ok"),
        error=line.get("error"),
        metrics={name: Metric.of(value) for name, value in metrics.items()},
        details=details,
        files=line.get("files", {}),
        cell=line.get("cell", ""),
        cpu_s=line.get("cpu_s") or 0.0,
        manifest=line["manifest"],
    )


def _newton(line: Mapping[str, Any], study: str, names: Mapping[str, str]) -> Result:
    case = _case(line, study, names)
    if line["kind"] == "law":
        setting = {**case.setting, "engine": str(line.get("engine")), "search": line.get("seed")}
        case = dataclasses.replace(case, setting=setting)
    metrics, details = _split(line["metrics"])
    details |= {name: line[name] for name in SEARCH if line.get(name) is not None}
    return _result(line, case, metrics, **details)


def _references(line: Mapping[str, Any], study: str) -> Iterable[Result]:
    """Yield a result for each reference of a line that named them in its metrics."""
    references: dict[str, dict[str, Any]] = {}
    for name, value in line["metrics"].items():
        who, _, metric = name.partition(": ")
        references.setdefault(who, {})[metric] = value
    if not references:
        yield _newton(line, study, {})
    for number, (who, metrics) in enumerate(references.items()):
        case = dataclasses.replace(_case(line, study, {}), variant=who, arm="control")
        yield _result({**line, "cpu_s": 0.0 if number else line["cpu_s"]}, case, metrics)


def _split(metrics: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the numbers of a line's metrics, by flat names, and everything else."""
    numbers: dict[str, Any] = {}
    details: dict[str, Any] = {}
    for name, value in metrics.items():
        form = (ARRAYS | SPLIT).get(name)
        if form is not None:
            found = (value or {}).items()
            numbers |= {form.format(key): each for key, each in found if each is not None}
        elif _is_number(value) or _is_interval(value):
            numbers[name] = value
        elif value is not None:
            details[name] = value
    of_sequences = "n_sequences" in numbers  # forces; searches have points alone
    counts = ("n_boot", "n_sequences", "n_points") if of_sequences else ()
    details |= {name: numbers.pop(name) for name in counts if name in numbers}
    return numbers, details


def _task(line: Mapping[str, Any], study: str) -> Result:
    metrics = {name: _typed(value) for name, value in line["metrics"].items()}
    return _result(line, _case(line, study, {}), metrics)


def _typed(value: Any) -> Metric:
    if not isinstance(value, Mapping):
        return Metric.of(value)
    known = {key: each for key, each in value.items() if each is not None}
    return Metric(**known)


def _probe(line: Mapping[str, Any]) -> Result:
    row = dict(line["row"])
    variant = str(row.pop("model"))
    # A probe's own trainings have steps and labels too.
    row |= {f"trained_{name}": row.pop(name) for name in ("steps", "labels")}
    case = Case(
        study="probe",
        kind=line["probe"],
        variant={"k-NN oracle": "k-NN on the true state"}.get(variant, variant),
        arm=row.pop("arm"),
        seed=row.pop("seed"),
        law=row.pop("law"),
        protocol=row.pop("protocol"),
        setting={**row, **line["setting"]},
    )
    details = {"checkpoint": line["subject"], "curves": line["curves"]}
    return _result(line, case, line["metrics"], **details)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_interval(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 3 and all(map(_is_number, value))
