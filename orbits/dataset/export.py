"""Export of a split as one HDF5 file in the layout of the Well.

Ohana et al. (2024), "The Well", docs/data_format.md. Orbits are not fields on a grid: no field
varies along a dimension. ``x`` and ``y`` are the centres of the position bins, time is each
sequence's own, and what belongs to the sequence as a whole, its time step included, is a scalar;
so is each parameter of the simulation, one number for all sequences.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from orbits.dataset.read import OrbitDataset
from orbits.runs import artefact

_POINTS_AT_ONCE = 2**20


def write_hdf5(dataset: OrbitDataset, out: str | Path) -> Path:
    """Write a split as one HDF5 file; a failed export leaves an older file unchanged.

    Raises:
        ValueError: h5py is not installed, or ``out`` is a folder.
        CorruptArtefact: A file of the dataset is damaged.
        OSError: The file cannot be written.
    """
    out = Path(out)
    if out.is_dir():
        raise ValueError(f"{out} is a folder; name a file")
    try:
        import h5py
    except ImportError:
        raise ValueError("h5py is not installed; pip install -e '.[hdf5]'") from None
    n_points = len(dataset[0]["body"]) - 1
    block = max(1, _POINTS_AT_ONCE // n_points)
    with artefact.replacing(out) as file, h5py.File(file, "w") as root:
        _describe(root, dataset)
        for first in range(0, len(dataset), block):
            last = min(first + block, len(dataset))
            for name, values in _fields(dataset, np.arange(first, last)).items():
                if first == 0:
                    root.create_dataset(name, (len(dataset), *values.shape[1:]), values.dtype)
                root[name][first:last] = values
        _annotate(root)
    return out


def _describe(root: Any, dataset: OrbitDataset) -> None:
    """Write the attributes, grid and boundaries, which are the same for all sequences."""
    config = dataset.record["config"]
    protocol, layout = config["protocol"], dataset.layout
    parameters = {
        "low": layout.low,
        "high": layout.high,
        "n_bins": layout.n_bins,
        "seed": config["seed"],
    }
    root.attrs.update(
        {
            "dataset_name": f"{protocol['name']}_{config['population']}_{dataset.split}",
            "grid_type": "cartesian",
            "n_spatial_dims": 2,
            "n_trajectories": len(dataset),
            "simulation_parameters": list(parameters),
            **parameters,
            "law": protocol["law"],
            "units": "AU, year, solar mass",
            **({"shift": protocol["shift"]["name"]} if "shift" in protocol else {}),
            "dataset_sha256": dataset.record["dataset_sha256"],
        }
    )
    for name in ("dimensions", "scalars", "t0_fields", "t1_fields", "t2_fields"):
        root.create_group(name)
    for name, value in parameters.items():
        root["scalars"][name] = value
    root["dimensions"].attrs["spatial_dims"] = ["x", "y"]
    for axis in ("x", "y"):
        centres = root["dimensions"].create_dataset(
            axis, data=layout.decode(np.arange(layout.n_bins))
        )
        centres.attrs.update(_varying(sample=False, time=False))
        edge = root.create_group(f"boundary_conditions/{axis}_open")
        edge.attrs.update(
            {
                **_varying(sample=False, time=False),
                "associated_dims": [axis],
                "associated_fields": np.array([], dtype="S1"),
                "bc_type": "OPEN",
            }
        )
        mask = np.zeros(layout.n_bins, np.bool_)
        mask[[0, -1]] = True
        edge["mask"] = mask


def _fields(dataset: OrbitDataset, indices: np.ndarray) -> dict[str, np.ndarray]:
    """Return the arrays of some sequences by their path in the file; row 0 is left out."""
    batch = dataset.batch(indices)
    tokens, body = batch["tokens"][:, 1:], batch["body"][:, 1:]
    n_planets = body.max(axis=1)
    step = np.arange(body.shape[1]) // (n_planets[:, None] + 1)
    fields = {
        "dimensions/time": batch["dt"][:, None] * step,
        "scalars/dt": batch["dt"],
        "scalars/n_planets": n_planets,
        "t0_fields/body": body,
        "t0_fields/token_x": tokens[..., 0],
        "t0_fields/token_y": tokens[..., 1],
        "t1_fields/position": dataset.layout.decode(tokens).astype(np.float32),
    }
    if "state" in batch:
        state = batch["state"][:, 1:]
        fields |= {
            "scalars/planet_mass": state[:, 0, 4],
            "scalars/star_mass": state[:, 0, 5],
            "t1_fields/force": batch["force"][:, 1:],
            "t1_fields/relative_position": state[..., :2],
            "t1_fields/relative_velocity": state[..., 2:4],
        }
    return fields


def _annotate(root: Any) -> None:
    """Write the Well's flags of every field and the field names of every group."""
    root["dimensions/time"].attrs.update(_varying(sample=True, time=True))
    for group in ("scalars", "t0_fields", "t1_fields", "t2_fields"):
        names = list(root[group])
        root[group].attrs["field_names"] = names or np.array([], dtype="S1")
        for name in names:
            field = root[group][name]
            # A parameter of the simulation is one number, all else has one per sequence.
            field.attrs.update(_varying(sample=field.ndim > 0, time=group != "scalars"))
            if group != "scalars":
                field.attrs["dim_varying"] = [False, False]


def _varying(sample: bool, time: bool) -> dict[str, bool]:
    return {"sample_varying": sample, "time_varying": time}
