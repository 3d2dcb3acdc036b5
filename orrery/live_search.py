"""One live symbolic search on true forces, and a record of it that can be sent to others."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from orbits import protocols
from orbits.runs import artefact
from orbits.runs.manifest import manifest
from symreg import engines
from symreg.measure import search_config, search_line
from symreg.predictions import Predictions

ENGINE = "pysr_vafa"
PROTOCOL, SEQUENCES, LAW, SEED = "paper", 100, "newton", 0


def search_and_keep(out: Path, engine: str = ENGINE, quiet: bool = False) -> dict[str, Any]:
    """Search the true forces of the published protocol once, and write the record.

    Args:
        out: The JSON file of the record.
        engine: The engine; PySR with the published settings unless told otherwise.
        quiet: Say nothing before the search.

    Returns:
        The record, and its path under ``written``.
    """
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another --out")
    try:
        why = engines.resolve(engine)[1]
    except RuntimeError as error:  # it is known, and cannot run here
        raise ValueError(error) from None
    if not quiet:
        print(f"engine     {why}", flush=True)
    data = true_forces()
    config = {
        "protocol": PROTOCOL,
        "sequences": SEQUENCES,
        **search_config(LAW, engine),
    }
    started = time.perf_counter()
    line = search_line(data, law=LAW, engine=engine, seed=SEED)
    seconds = round(time.perf_counter() - started, 1)
    record = manifest(config, seed=SEED, inputs={"points": data.sha256})
    kept = {**line, "engine": engine, "runs_on": why, "seconds": seconds, "manifest": record}
    artefact.save_record(out, kept)
    return {**kept, "written": str(out)}


def true_forces() -> Predictions:
    """Return the true forces on test planets of the published protocol, as predictions."""
    batch = protocols.get(PROTOCOL).batch(0, "test", np.arange(SEQUENCES), "force")
    labelled = np.isfinite(batch["force"]).all(axis=-1)
    sequence, row = labelled.nonzero()
    state = batch["state"][labelled].astype(np.float64)
    distance = np.linalg.norm(state[:, :2], axis=-1)
    force = np.linalg.norm(batch["force"][labelled].astype(np.float64), axis=-1)
    points = np.column_stack([distance, state[:, 4], state[:, 5]])
    return Predictions(
        sequence_id=sequence,
        step=(row - 1) // 2,
        X=points,
        force=force,
        force_predicted=force,
        vectors={},
        row={},
        manifest={},
        sha256=hashlib.sha256(np.column_stack([points, force]).tobytes()).hexdigest(),
    )


def text(made: Mapping[str, Any]) -> str:
    """Return a record in a few lines."""
    metrics = made["metrics"]
    return "\n".join(
        (
            f"formula    {made['expression']}",
            f"verdict    {metrics['verdict']} ({metrics['target']}), {made['seconds']:g} s",
            f"written    {made['written']}",
        )
    )
