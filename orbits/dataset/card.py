"""Data card of a dataset: content, units, distributions, provenance and hash."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbits import laws, protocols
from orbits.dataset.read import read_index

CARDS = Path(__file__).parent / "cards"


def card(path: str | Path) -> str:
    """Return the card of a finished dataset as text.

    Raises:
        FileNotFoundError: No finished dataset there.
        CorruptArtefact: Its index is damaged.
    """
    record = read_index(path)
    lines = [f"{name:11s} {value}" for name, value in facts(record, path).items()]
    return "\n".join([*lines, "", "Distributions", distributions(record)])


def facts(record: Mapping[str, Any], name: object) -> dict[str, object]:
    """Return the settings in the index of a dataset, in words.

    Args:
        record: The index.
        name: How the dataset is called.
    """
    config, manifest = record["config"], record["manifest"]
    protocol = config["protocol"]
    width = (protocol["high"] - protocol["low"]) / protocol["n_bins"]
    return {
        "dataset": name,
        "sha256": record["dataset_sha256"],
        "protocol": f"{protocol['name']}, population {config['population']}",
        "law": _law(protocol),
        **({"shift": _shift(protocol["shift"])} if "shift" in protocol else {}),
        **(
            {"disturbance": ", ".join(f"{k} {v}" for k, v in protocol["disturbance"].items())}
            if "disturbance" in protocol
            else {}
        ),
        "units": "AU, year, solar mass; F in solar mass AU / year^2",
        "box": f"{protocol['low']} to {protocol['high']} AU in {protocol['n_bins']} bins "
        f"of {width:.4g} AU",
        "time steps": ", ".join(f"{dt:.4g}" for dt in protocol["dts"]) + " years",
        "rows": f"1 time-step row + {protocol['n_points']} points, bodies in turn",
        "arrays": ", ".join(
            f"{name} {np.dtype(spec['dtype'])}{spec['shape'] or ''}"
            for name, spec in record["arrays"].items()
        ),
        "seed": config["seed"],
        **{split: f"{count} sequences" for split, count in config["counts"].items()},
        "files": f"{len(record['sha256'])} of {record['bytes'] / 1e6:.4g} MB together, "
        f"{config['sequences_per_shard']} sequences each",
        "made": f"{manifest['utc']}, {record['core_seconds']} core seconds on "
        + " and ".join(record["cpus"]),
        "versions": _versions(manifest),
        "licence": "CC0 1.0: no rights are claimed in what the generator makes",
    }


def _of_a_plug_in(name: str, definition: Any) -> laws.Law:
    try:
        expression, parameters = definition["expression"], dict(definition["parameters"])
    except (KeyError, TypeError, ValueError):
        raise ValueError(f"the definition of law {name!r} in the index is damaged") from None
    return laws.Law(name, expression, "a plug-in", parameters, dict.fromkeys(parameters, ""))


def _law(protocol: Mapping[str, Any]) -> str:
    name = protocol["law"]
    own = protocol.get("law_definition")  # of a plug-in, which need not be there
    law = laws.get(name) if own is None else _of_a_plug_in(name, own)
    constants = "".join(f", {key} = {value:.10g}" for key, value in law.parameters.items())
    hidden = "" if law.shows_masses else "; paths show m1 / m2 and neither mass"
    return f"{name}: F = {law.expression}{constants}{hidden}"


def _shift(plain: Mapping[str, Any]) -> str:
    """Return a shift in words: redrawn elements, their ranges, and the move of the time step."""
    units = {"planet_mass": " solar masses", "star_mass": " solar masses", "semi_major_axis": " AU"}
    changes = [
        f"{element.replace('_', ' ')} of {low:g} to {high:g}{units.get(element, '')}"
        for element, (low, high) in plain["redraw"].items()
    ]
    if plain["dt_octaves"]:
        changes.append(f"time step times 2^{plain['dt_octaves']}")
    return f"{plain['name']}: {', '.join(changes)}; all else as under Distributions"


def _versions(manifest: dict[str, Any]) -> str:
    found = {name: manifest["versions"][name] for name in ("orrery", "python", "numpy")
             if name in manifest["versions"]}  # fmt: skip
    commit = manifest["git"]["commit"]
    return ", ".join([f"{k} {v}" for k, v in found.items()] + [f"commit {commit}"] * bool(commit))


def distributions(record: Mapping[str, Any]) -> str:
    """Return the distributions of a dataset's protocol, from its card in this repository."""
    name = record["config"]["protocol"]["name"]
    if name not in protocols.names():
        return f"{name} has no card: see the settings above."
    text = (CARDS / f"{name}.md").read_text()
    return text.split("## Distributions\n", 1)[1].split("\n## ", 1)[0].strip()
