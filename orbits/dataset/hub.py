"""Export of a dataset as a folder that ``datasets.load_dataset`` reads: Parquet files and a card.

The card is ``README.md``; its header names the files of each split, as dataset hubs ask.
"""

from __future__ import annotations

import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import yaml

from orbits.dataset.card import distributions, facts
from orbits.dataset.read import OrbitDataset, read_index

CARD, DATA = "README.md", "data"
SPLITS = {"train": "train", "val": "validation", "test": "test"}
"""Names that hubs give our splits."""
COLUMNS = {
    "sequence_id": "number of the sequence in its split",
    "tokens": "row 0: the time-step token twice; then bin of x, bin of y",
    "body": "-1 time-step row, 0 star, k planet k",
    "dt": "time step, years",
    "force": "force on the planet, solar mass AU / year^2; NaN outside its rows",
    "state": "planet - star: position (AU), velocity (AU / year); planet mass, star mass (solar "
    "masses); NaN outside the planet's rows",
}


def write_hub(path: str | Path, out: str | Path, splits: Sequence[str] | None = None) -> Path:
    """Write a dataset as a new folder, one Parquet file for each of its files.

    Args:
        path: The dataset.
        out: The folder, which must not be there.
        splits: Names of splits; None for all.

    Raises:
        FileNotFoundError: No finished dataset there.
        FileExistsError: ``out`` exists.
        ValueError: pyarrow is not installed, or there is no such split.
        CorruptArtefact: A file of the dataset is damaged; nothing was written.
        OSError: The files cannot be written.
    """
    out = Path(out)
    if out.exists():
        raise FileExistsError(f"{out} exists; choose another folder")
    record = read_index(path)
    chosen = [OrbitDataset(path, split) for split in splits or record["config"]["counts"]]
    try:
        import pyarrow.parquet as parquet
    except ImportError:
        raise ValueError("pyarrow is not installed; pip install -e '.[parquet]'") from None
    out.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=out.parent, prefix=f".{out.name}.") as unfinished:
        folder = Path(unfinished) / out.name
        (folder / DATA).mkdir(parents=True)
        size = record["config"]["sequences_per_shard"]
        for dataset in chosen:
            starts = range(0, len(dataset), size)
            for number, first in enumerate(starts):
                batch = dataset.batch(np.arange(first, min(first + size, len(dataset))))
                name = f"{SPLITS[dataset.split]}-{number:05d}-of-{len(starts):05d}.parquet"
                parquet.write_table(_table(batch), folder / DATA / name)
        text = _card(record, out.name, [SPLITS[dataset.split] for dataset in chosen])
        (folder / CARD).write_text(text, encoding="utf-8")
        folder.rename(out)
    return out


def _table(batch: Mapping[str, npt.NDArray]) -> Any:
    """Return arrays as an Arrow table, those of several dimensions as lists of fixed size."""
    import pyarrow

    columns = {}
    for name in COLUMNS:
        if name in batch:
            values = pyarrow.array(batch[name].reshape(-1))
            for size in reversed(batch[name].shape[1:]):
                values = pyarrow.FixedSizeListArray.from_arrays(values, size)
            columns[name] = values
    return pyarrow.table(columns)


def _card(record: Mapping[str, Any], name: str, splits: Sequence[str]) -> str:
    """Return the card of the folder, with the header that tells a hub where its files are."""
    protocol = record["config"]["protocol"]
    files = [{"split": split, "path": f"{DATA}/{split}-*.parquet"} for split in splits]
    header = {
        "pretty_name": f"Orbits, protocol {protocol['name']}, law {protocol['law']}",
        "license": "cc0-1.0",
        "configs": [{"config_name": "default", "data_files": files}],
    }
    told = facts(record, name)
    rows = "\n".join(f"| {key} | {told[key]} |" for key in told if key not in ("arrays", "files"))
    known = [x for x in COLUMNS if x in record["arrays"] or x in ("sequence_id", "body", "dt")]
    columns = "\n".join(f"| `{column}` | {COLUMNS[column]} |" for column in known)
    low, width = protocol["low"], (protocol["high"] - protocol["low"]) / protocol["n_bins"]
    return f"""---
{yaml.safe_dump(header, sort_keys=False)}---

# {name}

```python
from datasets import load_dataset

orbits = load_dataset("{name}", split="{splits[0]}").with_format("numpy")
places = {low:g} + {width!r} * (orbits[0]["tokens"][1:] + 0.5)  # AU
```

| column | content |
|---|---|
{columns}

| about | |
|---|---|
{rows}

## Distributions

{distributions(record)}
"""
