import json
import re
import subprocess
import sys

import pytest

from orbits.runs import manifest as module


def test_a_manifest_is_plain_json_and_complete():
    record = module.manifest({"n": 3}, seed=7, device="cpu", inputs={"data": "ab"})
    assert json.loads(json.dumps(record)) == record
    assert set(record) == {
        "argv", "config", "git", "versions", "platform", "device", "seed", "utc", "inputs"
    }  # fmt: skip
    assert record["config"] == {"n": 3}
    assert record["seed"] == 7
    assert record["inputs"] == {"data": "ab"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\+00:00", record["utc"])
    assert record["versions"]["python"].split(".")[0] == str(sys.version_info[0])


@pytest.mark.parametrize(
    "failure",
    [
        FileNotFoundError("git"),
        subprocess.CalledProcessError(128, "git"),
        subprocess.TimeoutExpired("git", 10),
    ],
    ids=["absent", "refused", "slow"],
)
def test_git_that_does_not_answer_costs_only_the_commit(monkeypatch, failure):
    def broken(*_, **__):
        raise failure

    monkeypatch.setattr(subprocess, "run", broken)
    assert module.git_state.__wrapped__() == {"commit": None, "dirty": None}


@pytest.mark.parametrize(
    ("given", "kept"),
    [
        ("--seeds", "--seeds"),
        ("data/model.npz", "data/model.npz"),
        ("/home/me/model.npz", "model.npz"),
        ("--out=/home/me/runs", "--out=runs"),
        ("--reuse=/home/me/a,runs/b,/home/me/c", "--reuse=a,runs/b,c"),
        ("39.5*m1*m2/r**2", "39.5*m1*m2/r**2"),
    ],
)
def test_arguments_do_not_name_the_machine(given, kept):
    assert module.without_machine(given) == kept
