"""What ``orrery doctor`` says of a machine, and the record of its search."""

import dataclasses
import json

import pytest
import torch

from orbits.runs import artefact
from orrery import doctor, gpu_check, live_search
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
    assert found["cluster"]["command"] == "python -m pip install -e '.[cluster]'"


def test_a_script_is_told_what_is_missing():
    extras = {"a": {"missing": ["two", "one"]}, "b": {"missing": []}, "c": {"missing": ["two"]}}
    assert doctor.lacking({"extras": extras}) == "one\ntwo"


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
    assert "without --pysr or --gpu there is nothing to write" in refusal(
        doctor.main, ["--out", "x.json"]
    )


@pytest.mark.full
def test_a_rehearsal_of_the_gpu_leaves_a_record_that_can_be_checked(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(gpu_check, "VARIANTS", ("lssar", "lazy"))
    out = tmp_path / "check.json"
    with pytest.raises(SystemExit) as left:
        doctor.main(["--gpu", "--cpu", "--json", "--out", str(out)])
    assert left.value.code == 0
    made = json.loads(capsys.readouterr().out)
    kept = json.loads(out.read_text())
    assert (kept["passed"], kept["device"]) == (True, "cpu")
    assert [(x["check"], x["queries"]) for x in kept["checks"]] == [
        (name, queries) for name in ("lssar", "lazy") for queries in (40, 1)
    ]
    assert all(0 < x["error"] <= x["allowed"] for x in kept["checks"])
    timed = [(x["backend"], x["call"]) for x in kept["calls"]]
    assert timed == 2 * [("sdpa", "softmax"), ("eager", "lssar")]
    assert all(x["seconds"] > 0 for x in kept["calls"])
    assert made["manifest"]["config"]["rehearsal"] is True
    with pytest.raises(FileExistsError, match="choose another --out"):
        gpu_check.check_and_keep(out, rehearse=True)


def test_a_wrong_kernel_and_one_that_fails_are_said(monkeypatch):
    monkeypatch.setattr(gpu_check, "VARIANTS", ("lssar", "lssa", "softmax"))
    whole = gpu_check.attend_spec

    def attend(q, k, v, spec, numbers, backend):
        if spec.name == "lssa":
            raise RuntimeError("no image for\nthis device")
        return whole(q, k, v, spec, numbers, backend) * (1.001 if spec.name == "lssar" else 1)

    monkeypatch.setattr(gpu_check, "attend_spec", attend)
    lines = list(gpu_check.correctness(gpu_check.REHEARSAL))
    assert [line["passed"] for line in lines] == [False, False, False, False, True, True]
    assert lines[0]["error"] == pytest.approx(1e-3, rel=0.1)
    assert lines[2]["reason"] == "RuntimeError: no image for this device"


def test_what_no_time_is_left_for_is_said():
    none = dataclasses.replace(gpu_check.REHEARSAL, seconds=-1.0)
    lines = list(gpu_check.times(none))
    assert {line["reason"] for line in lines} == {"no time was left"}


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_without_a_gpu_it_says_so(refusal, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert "needs a CUDA device, found 0" in refusal(doctor.main, ["--gpu"])
    assert "rehearses --gpu, which is missing" in refusal(doctor.main, ["--cpu"])
    assert "one at a time" in refusal(doctor.main, ["--gpu", "--pysr"])
    assert not list(tmp_path.iterdir())


@pytest.mark.julia
@pytest.mark.slow
def test_pysr_finds_something_where_julia_is(tmp_path):
    if julia_status().state != "ready":
        pytest.skip(f"Julia is {julia_status().state}: {julia_status().reason}")
    made = live_search.search_and_keep(tmp_path / "search.json")
    assert made["front"]
