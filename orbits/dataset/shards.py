"""Plan of a dataset, its shards, and the making of one shard. See ``FORMAT.md``."""

from __future__ import annotations

import functools
import hashlib
import platform
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from orbits.dataset.read import SCHEMA, shard_file
from orbits.protocol import Protocol
from orbits.runs import artefact
from orbits.runs.manifest import git_state, versions

_SHARD_BYTES = 2**27
_BYTES_PER_ROW = {"pretrain": 4, "force": 4 + 16 + 48}
_POINTS_AT_ONCE = 2**20


class Shard(NamedTuple):
    """Sequences [first, first + n) of a split: the shard ``number`` of that split."""

    split: str
    number: int
    first: int
    n: int

    def file(self, array: str) -> str:
        """Return the name of the file of one array, relative to the dataset."""
        return shard_file(self.split, array, self.number)


@dataclass(frozen=True)
class Plan:
    """Content of a dataset and its division into shards, which determine every byte.

    Attributes:
        protocol: The protocol that samples and observes.
        population: pretrain or force.
        seed: Seed of the data.
        counts: Number of sequences per split, as pairs.
        sequences_per_shard: Sequences of every shard but the last of a split.
    """

    protocol: Protocol
    population: str
    seed: int
    counts: tuple[tuple[str, int], ...]
    sequences_per_shard: int

    def config(self) -> dict[str, Any]:
        """Return the plan as plain JSON values."""
        return {
            "protocol": self.protocol.config(),
            "population": self.population,
            "seed": self.seed,
            "counts": dict(self.counts),
            "sequences_per_shard": self.sequences_per_shard,
        }

    def shards(self) -> list[Shard]:
        """Return all shards, split after split."""
        size = self.sequences_per_shard
        return [
            Shard(split, number, number * size, min(size, count - number * size))
            for split, count in self.counts
            for number in range(-(-count // size))
        ]

    def arrays(
        self, split: str, indices: npt.ArrayLike, compiled: bool = False
    ) -> dict[str, npt.NDArray]:
        """Return the stored arrays of N trajectories of a split.

        ``tokens`` uint16 [N, T, 2] and ``n_planets`` uint8 [N]; of the population ``force`` also
        ``force`` float64 [N, T, 2] and ``state`` float64 [N, T, 6], as in
        :meth:`Protocol.observe`. ``compiled`` lets the kernel make the tokens: the same bits,
        after seconds of compiling.
        """
        world = self.protocol.systems(self.seed, split, indices, self.population)
        if compiled:
            from orbits import kernel

            tokens = kernel.tokens(world, self.protocol.tokens, self.protocol.n_points)
            stored: dict[str, npt.NDArray] = {"tokens": tokens}
        else:
            labelled = self.population == "force"
            observed = self.protocol.observe(world, labelled)
            names = ("tokens", "force", "state") if labelled else ("tokens",)
            stored = {name: observed[name] for name in names}
        return {**stored, "n_planets": world.n_planets.astype(np.uint8)}


def default_size(protocol: Protocol, population: str) -> int:
    """Return the power of two of sequences that makes a shard of about 128 MB."""
    n = _SHARD_BYTES // ((1 + protocol.n_points) * _BYTES_PER_ROW[population])
    return 1 << max(0, n.bit_length() - 1)


@functools.cache
def claim(plan: Plan) -> dict[str, Any]:
    """Return the record on which all writers to one folder must agree.

    The probe is a hash of the first sequences: a machine or a version of the code that computes
    other bits must not mix its shards with those of others.
    """
    probe = hashlib.sha256()
    arrays: dict[str, Any] = {}
    for split, count in plan.counts:
        for name, array in plan.arrays(split, np.arange(min(count, 4))).items():
            probe.update(array.tobytes())
            arrays[name] = {"dtype": array.dtype.str, "shape": list(array.shape[1:])}
    return {
        "schema": SCHEMA,
        "config": plan.config(),
        "arrays": arrays,
        "probe_sha256": probe.hexdigest(),
    }


def make(out: Path, plan: Plan, key: str, compiled: bool, shard: Shard) -> None:
    """Make one shard, unless it is there, intact and of this dataset.

    ``key`` is the content address of the claim on the folder: a machine that computes another
    one is refused. ``compiled`` is that of :meth:`Plan.arrays`.
    """
    mine = claim(plan)
    if artefact.key(mine) != key:
        raise ValueError(f"a worker computes other bits than those of {out}; leave it out")
    arrays = mine["arrays"]
    if all(_is_done(out, shard, name, key) for name in arrays):
        return
    start = time.process_time()
    filled = {
        name: np.empty((shard.n, *spec["shape"]), spec["dtype"]) for name, spec in arrays.items()
    }
    # In blocks: the numpy path needs some ten times the memory of the tokens it makes.
    block = max(1, _POINTS_AT_ONCE // plan.protocol.n_points)
    for low in range(0, shard.n, block):
        high = min(low + block, shard.n)
        indices = np.arange(shard.first + low, shard.first + high)
        for name, values in plan.arrays(shard.split, indices, compiled).items():
            filled[name][low:high] = values
    origin = {
        "config": key,
        "seed": plan.seed,
        **shard._asdict(),
        "code": {"version": versions().get("orrery"), "commit": git_state()["commit"]},
        "cpu": _cpu(),
        "seconds": round(time.process_time() - start, 3),
    }
    for name, values in filled.items():
        artefact.save_array(out / shard.file(name), values, {**origin, "array": name})


def belongs(origin: Mapping[str, Any], shard: Shard, array: str, key: str) -> bool:
    """Tell whether a file's own record is that of this place in the dataset.

    Files from before they told their array are taken by their split and number alone.
    """
    own = {name: origin.get(name) for name in shard._fields}
    return (origin.get("config"), origin.get("array", array), own) == (key, array, shard._asdict())


def _is_done(out: Path, shard: Shard, array: str, key: str) -> bool:
    try:
        origin = artefact.check_file(out / shard.file(array))["manifest"]
    except (FileNotFoundError, artefact.CorruptArtefact):
        return False
    return belongs(origin, shard, array, key)


@functools.cache
def _cpu() -> str:
    """Return the name of this machine's processor model."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
        return next(
            line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")
        )
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()
