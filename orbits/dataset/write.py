"""Writer of datasets: whole or in pieces, resumed after a kill, with the same bytes."""

from __future__ import annotations

import contextlib
import functools
import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from tqdm import tqdm

from orbits.dataset.read import CLAIM, INDEX, SCHEMA, dataset_hash
from orbits.dataset.shards import Plan, Shard, belongs, claim, default_size, make
from orbits.protocol import Protocol
from orbits.runs import artefact, locks
from orbits.runs.executors import Execution, WorkerLost, unordered
from orbits.runs.manifest import flat, manifest
from orbits.systems import SPLITS, stream

_MOST = 10**12
"""Sequences of a split; disks end before."""
_COMPILE_FROM = 10_000_000
"""Observed points per process from which compiling the kernel pays."""

_LOST = "worker processes died, perhaps for lack of memory; run the same command again to go on"


def generate(
    out: str | Path,
    protocol: Protocol,
    counts: Mapping[str, int],
    *,
    seed: int = 0,
    population: str = "force",
    sequences_per_shard: int | None = None,
    shards: tuple[int, int] | None = None,
    execution: Execution = Execution("here"),
    progress: bool = True,
) -> int:
    """Export the first sequences of each split, or some shards of that export.

    Shards that are there and intact are skipped, so a run that was killed goes on, a damaged
    dataset is repaired, and several runs may write to one folder at once. Whichever run finds
    all shards there writes the index that makes the folder a dataset.

    Args:
        out: Folder of the dataset; made if needed.
        protocol: The protocol that samples and observes.
        counts: Number of sequences per split.
        seed: Seed of the data.
        population: ``pretrain`` or ``force``.
        sequences_per_shard: Sequences per shard; by default about 128 MB of them.
        shards: Make only shards [first, last), counted through the splits in order.
        execution: Executor of the shards.
        progress: Show a progress bar.

    Returns:
        How many shards of the dataset are still missing; 0 means that it is complete.

    Raises:
        ValueError: Bad input, or the folder holds something else. Nothing was written.
        OSError: The disk has no room or Dask cannot be reached (nothing was written), a
            write failed, or workers died.
    """
    plan = _plan(protocol, counts, seed, population, sequences_per_shard)
    if not str(out).strip():
        raise ValueError("the dataset's folder has no name; choose one")
    out = Path(out).resolve()
    _check_owner(out, {"schema": SCHEMA, "config": plan.config()})  # before any is computed
    _check_last_sequences(plan)
    mine = claim(plan)
    if shards is None and not out.exists():
        _check_room(out, sum(counts.values()) * sum(map(_bytes, mine["arrays"].values())))
    every = plan.shards()
    piece = every if shards is None else _piece(every, *shards)
    _check_owner(out, mine)
    _check_space(out, piece, mine["arrays"])

    points = sum(shard.n for shard in piece) * protocol.n_points
    only_tokens = population == "pretrain" and protocol.is_compiled
    compiled = only_tokens and points >= execution.slots * _COMPILE_FROM
    task = functools.partial(make, out, plan, artefact.key(mine), compiled)
    begun = (out / CLAIM).exists()
    try:
        with execution.start(out, out.with_name(f"{out.name}.jobs") / "slurm") as executor:
            _take(out, mine)
            made = unordered(executor, task, piece)
            for _ in tqdm(made, "shards", len(piece), disable=not progress):
                pass
    except WorkerLost:
        raise ChildProcessError(_LOST) from None
    except ValueError:  # some sequence cannot be made, and the folder can never be finished
        if not begun:
            _unclaim(out, mine)
        raise
    return _finish(out, every, mine)


def _plan(
    protocol: Protocol, counts: Mapping[str, int], seed: int, population: str, size: int | None
) -> Plan:
    if not counts:
        raise ValueError("no split to write; give a number of its sequences")
    for split, count in counts.items():
        if count < 1:
            raise ValueError(f"number of {split} sequences must be at least 1, got {count}")
        stream(population, split)  # refuses an unknown one
    if size is None:
        size = default_size(protocol, population)
    if size < 1:
        raise ValueError(f"sequences per shard must be at least 1, got {size}")
    in_order = tuple((split, counts[split]) for split in SPLITS if split in counts)
    return Plan(protocol, population, seed, in_order, size)


def _check_last_sequences(plan: Plan) -> None:
    """Refuse a seed, a length or a law with which the sequences cannot be made."""
    for split, count in plan.counts:
        if count > _MOST:
            raise ValueError(f"{split} must have at most {_MOST} sequences, got {count}")
        plan.protocol.systems(plan.seed, split, [count - 1], plan.population)


def _piece(every: list[Shard], first: int, last: int) -> list[Shard]:
    if not 0 <= first < last <= len(every):
        raise ValueError(f"shards {first}:{last} are not a piece of 0:{len(every)}, all there are")
    return every[first:last]


def _check_owner(out: Path, mine: Mapping[str, Any]) -> None:
    """Refuse a folder that holds another dataset, other files, or links that lead out of it."""
    # Listed before the claim is looked for: another run may be making both.
    there = [name for name in os.listdir(out) if not name.startswith(".")] if out.exists() else []
    owner = _owner(out)
    if there and owner is None:
        raise ValueError(f"{out} is not empty; choose another folder")
    locks.refuse_links(out)
    if owner is not None:
        _compare(out, owner, mine)


def _owner(out: Path) -> dict[str, Any] | None:
    """Return the claim on a folder or, where it is damaged, the index; None without either."""
    for name in (CLAIM, INDEX):
        with contextlib.suppress(FileNotFoundError, artefact.CorruptArtefact):
            return artefact.load_record(out / name)
    return None


def _compare(out: Path, owner: Mapping[str, Any], mine: Mapping[str, Any]) -> None:
    if owner.get("schema") != SCHEMA or owner["config"] != mine["config"]:
        raise ValueError(
            f"{out} holds another dataset ({_differences(owner, mine)}); choose another folder"
        )
    if any(owner[name] != value for name, value in mine.items()):
        raise ValueError(
            f"{out} was begun by a machine or a version of the code that computes other bits; "
            "finish it there or choose another folder"
        )


def _differences(owner: Mapping[str, Any], mine: Mapping[str, Any]) -> str:
    """Return the settings of a dataset that are not those that were asked for."""
    if owner.get("schema") != mine["schema"]:
        return f"of schema {owner.get('schema')}, this version writes {mine['schema']}"
    theirs, ours = (flat(json.loads(json.dumps(record["config"]))) for record in (owner, mine))
    names = sorted(x for x in {*theirs, *ours} if theirs.get(x) != ours.get(x))
    return ", ".join(f"{x} {theirs.get(x)!r} there, {ours.get(x)!r} asked" for x in names)


def _check_space(out: Path, piece: list[Shard], arrays: Mapping[str, Any]) -> None:
    needed = sum(
        shard.n * _bytes(spec)
        for shard in piece
        for name, spec in arrays.items()
        if not artefact.sidecar(out / shard.file(name)).exists()
    )
    _check_room(out, needed)


def _bytes(spec: Mapping[str, Any]) -> int:
    """Return the bytes that a sequence takes of one array."""
    return int(np.prod(spec["shape"], dtype=int)) * np.dtype(spec["dtype"]).itemsize


def _check_room(out: Path, needed: int) -> None:
    existing = next(folder for folder in (out, *out.parents) if folder.exists())
    free = shutil.disk_usage(existing).free
    if needed > free:
        raise OSError(f"{out} needs {needed / 1e6:.4g} MB, {free / 1e6:.4g} MB are free")


def _take(out: Path, mine: Mapping[str, Any]) -> None:
    """Write the claim; a run that finds another's claim compares with it."""
    try:
        _compare(out, artefact.create_record(out / CLAIM, mine), mine)
    except artefact.CorruptArtefact:  # the index has vouched for the folder
        artefact.save_record(out / CLAIM, mine)


def _unclaim(out: Path, mine: Mapping[str, Any]) -> None:
    """Take this run's claim back, if nothing was made under it."""
    with contextlib.suppress(OSError, artefact.CorruptArtefact):
        if artefact.load_record(out / CLAIM) == mine and not any(out.rglob("*.npy")):
            (out / CLAIM).unlink()
            out.rmdir()  # unless something else is there


def _finish(out: Path, every: list[Shard], mine: Mapping[str, Any]) -> int:
    """Write the index if every shard is there; return how many are not."""
    key = artefact.key(mine)
    found = [_sidecars(out, shard, mine["arrays"], key) for shard in every]
    records = {file: record for sidecars in found for file, record in sidecars.items()}
    missing = sum(not sidecars for sidecars in found)
    if missing:
        return missing
    hashes = {file: record["sha256"] for file, record in records.items()}
    try:
        if artefact.load_record(out / INDEX)["sha256"] == hashes:
            return 0
    except (FileNotFoundError, artefact.CorruptArtefact):
        pass
    origins = [next(iter(sidecars.values()))["manifest"] for sidecars in found]
    index = {
        **mine,
        "sha256": hashes,
        "dataset_sha256": dataset_hash(hashes),
        "bytes": sum(record["bytes"] for record in records.values()),
        "core_seconds": round(sum(origin["seconds"] for origin in origins), 3),
        "cpus": sorted({origin["cpu"] for origin in origins}),
        "manifest": manifest(mine["config"], seed=mine["config"]["seed"]),
    }
    artefact.save_record(out / INDEX, index)
    return 0


def _sidecars(
    out: Path, shard: Shard, arrays: Mapping[str, Any], key: str
) -> dict[str, dict[str, Any]]:
    """Return the sidecars of a shard's files, or nothing if one is not there."""
    found = {}
    for array in arrays:
        file = shard.file(array)
        try:
            record = artefact.load_record(artefact.sidecar(out / file))
            size = (out / file).stat().st_size
        except (FileNotFoundError, artefact.CorruptArtefact):
            return {}
        if size != record["bytes"] or not belongs(record["manifest"], shard, array, key):
            return {}
        found[file] = record
    return found
