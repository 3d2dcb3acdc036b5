"""Every broken or hostile file is one line that names it, and nothing in it runs."""

import pickle
import sys
import tracemalloc

import numpy as np
import pytest

from symreg import predictions
from tests.symreg.predictions.bad_archives import (
    FORMATS,
    NPZ,
    SIDECAR,
    VALUES,
    Payload,
    arrays,
    columns,
    write,
)
from tests.symreg.predictions.bad_tables import CSV, PARQUET

OTHER = {
    "pickle": ("p.pkl", lambda path: path.write_bytes(pickle.dumps(Payload())), "ends in .npz"),
    "joblib": ("p.joblib", lambda path: path.write_bytes(pickle.dumps(Payload())), "ends in"),
    "npy": ("p.npy", lambda path: np.save(path, np.array(Payload())), "ends in .npz, .csv"),
    "torch": ("p.pt", lambda path: path.write_bytes(b"PK\x03\x04"), "ends in .npz, .csv"),
    "json": ("p.json", lambda path: path.write_text("{}"), "ends in .npz, .csv"),
    "gzip": ("p.csv.gz", lambda path: path.write_bytes(b"\x1f\x8b"), "ends in .npz, .csv"),
    "no_ending": ("p", lambda path: path.write_text("r\n1\n"), "ends in .npz, .csv"),
    "capitals": ("p.NPZ", lambda path: path.write_text("r\n1\n"), "not a complete .npz file"),
}

# Values are checked after a file of any format is read, so each fault stands in one format, and
# in the tables those whose columns are made in another way: missing, empty, text, constant, vector.
IN_TABLES = (
    *("no_sequence_id", "r_nan", "m1_inf", "no_points", "24_predictions", "units_si", "schema_2"),
    *("seed_nan", "seed_fraction", "model_varies", "model_empty", "step_nan", "half_a_vector"),
    "position_inf",
)
CASES = [
    pytest.param(f"p.{kind}", arrays(**VALUES[fault][0]), VALUES[fault][1], id=f"{kind}-{fault}")
    for kind in FORMATS
    for fault in (VALUES if kind == "npz" else IN_TABLES)
]
CASES += [
    pytest.param(f"p.{kind}", make, named, id=f"{kind}-{fault}")
    for kind, faults in (("npz", NPZ), ("npz", SIDECAR), ("csv", CSV), ("parquet", PARQUET))
    for fault, (make, named) in faults.items()
]
CASES += [pytest.param(*case, id=fault) for fault, case in OTHER.items()]


def state(folder):
    """Return all that a reader could have changed in a folder."""
    return {
        path.name: path.stat().st_mtime_ns if not path.is_file() else path.read_bytes()
        for path in folder.iterdir()
    }


@pytest.mark.full
@pytest.mark.parametrize(("name", "make", "named"), CASES)
def test_a_bad_file_is_one_line_that_names_it(tmp_path, monkeypatch, capfd, name, make, named):
    monkeypatch.chdir(tmp_path)  # a file is named as it was given, and the line is measured
    path = tmp_path / name
    make(path)
    before = state(tmp_path)
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"^p") as caught:
        predictions.read(name)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    message = str(caught.value)
    assert message.startswith(name)
    assert named in message
    assert message.isprintable(), "one line, without control characters"
    assert len(message) < 200
    assert most < 64 * 2**20, "what a file claims is not what is reserved"
    assert state(tmp_path) == before, "the file is untouched and nothing was executed"
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("kind", FORMATS)
def test_the_files_are_good_apart_from_their_faults(tmp_path, kind):
    path = tmp_path / f"p.{kind}"
    write(path, units=predictions.UNITS, schema=1, seed=3, model="m")
    data = predictions.read(path)
    np.testing.assert_array_equal(data.force_predicted, columns()["force_predicted"])
    assert data.row["model"] == "m"
    assert data.row["seed"] == 3


def test_the_payload_would_run(tmp_path, monkeypatch):
    """What these files hold does leave a mark where it is executed."""
    monkeypatch.chdir(tmp_path)
    pickle.loads(pickle.dumps(Payload()))
    assert [path.name for path in tmp_path.iterdir()] == ["marker"]


@pytest.mark.parametrize("kind", ["npz", "parquet"])
def test_random_damage_is_refused_or_harmless(tmp_path, kind):
    """Checksums of entries and pages guard the data, where the writer made them."""
    path = tmp_path / f"p.{kind}"
    write(path)
    good, data = path.read_bytes(), predictions.read(path)
    rng = np.random.default_rng(0)
    refused = []
    for _ in range(200):
        damaged = bytearray(good)
        damaged[rng.integers(len(good))] ^= rng.integers(1, 256)
        path.write_bytes(damaged)
        try:
            again = predictions.read(path)
        except ValueError as error:
            refused.append(str(error))
        else:
            np.testing.assert_array_equal(again.X, data.X)
            np.testing.assert_array_equal(again.force_predicted, data.force_predicted)
    assert len(refused) > 150
    assert all(message.isprintable() for message in refused)


def test_no_such_file(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"p\.npz: no such file$"):
        predictions.read(tmp_path / "p.npz")


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    write(tmp_path / "p.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(ValueError, match=r"p\.parquet: .*pip install pyarrow$"):
        predictions.read(tmp_path / "p.parquet")
