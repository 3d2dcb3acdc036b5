"""What ``orrery doctor`` says of a machine, and the record of its search."""

import json

import pytest

from orbits.runs import artefact
from orrery import doctor, live_search
from symreg import engines
from symreg.search.julia import julia_status

REQUIREMENTS = [
    "numpy>=2",
    'h5py; extra == "hdf5"',
    'no-such-package[parts]>=3,<4; extra == "cluster"',
    "numpy; extra == 'cluster'",
]


def test_extras_name_what_is_missing_and_the_command():
    found = doctor.extras(REQUIREMENTS)
    assert found.keys() == {"hdf5", "cluster"}
    assert found["cluster"]["missing"] == ["no-such-package"]
    assert found["cluster"]["command"] == "python -m pip install 'orrery[cluster]'"


@pytest.mark.full
def test_it_says_what_runs_here(capsys):
    doctor.main(["--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["engines"].keys() == {*engines.names()}
    assert found["engines"]["powerlaw"]["state"] == "ready"
    assert "softmax" in {x for names in found["attention"]["backends"].values() for x in names}
    assert found["cores"] >= 1
    assert found["torch"]["threads"] >= 1
    said = doctor.text(found)
    assert found["torch"]["version"] in said
    assert all(f"engine {name}" in said for name in engines.names())


def test_a_torch_that_does_not_import_is_an_answer():
    found = {
        "orrery": "1", "python": "3", "cores": 1, "disk_free_gb": 2, "triton": None,
        "torch": {"version": "2", "error": "libcuda.so not found"}, "attention": {},
        "engines": {}, "extras": {},
    }  # fmt: skip
    said = doctor.text(found)
    assert "does not import: libcuda.so not found" in said
    assert "orrery is not installed" in said


def test_a_search_leaves_a_record_that_can_be_checked(tmp_path):
    out = tmp_path / "search.json"
    made = live_search.search_and_keep(out, engine="powerlaw")
    record = artefact.load_record(out)
    assert record["metrics"]["verdict"] == "law"
    assert record["manifest"]["config"]["engine"] == "powerlaw"
    assert record["manifest"]["inputs"]["points"] == live_search.true_forces().sha256
    assert "written" not in record
    assert made["written"] in live_search.text(made)
    with pytest.raises(FileExistsError, match="choose another --out"):
        live_search.search_and_keep(out, engine="powerlaw")


def test_the_search_is_the_published_one():
    settings = engines.get(live_search.ENGINE).settings
    assert settings["random_state"] == [0, 1, 2]
    assert live_search.ENGINE == "pysr_vafa"


@pytest.mark.full
def test_without_julia_it_says_how_to_get_it(tmp_path, refusal, monkeypatch):
    if julia_status().state == "ready":
        pytest.skip("Julia is here")
    monkeypatch.chdir(tmp_path)
    assert "engine pysr_vafa is " in refusal(doctor.main, ["--pysr"])
    assert not list(tmp_path.iterdir())


def test_a_place_for_no_record_is_refused(refusal):
    assert "without --pysr there is nothing to write" in refusal(doctor.main, ["--out", "x.json"])


@pytest.mark.julia
@pytest.mark.slow
def test_pysr_finds_something_where_julia_is(tmp_path):
    if julia_status().state != "ready":
        pytest.skip(f"Julia is {julia_status().state}: {julia_status().reason}")
    made = live_search.search_and_keep(tmp_path / "search.json")
    assert made["front"]
