import json
import os
import subprocess
import sys

import numpy as np
import pytest

from orbits.runs import artefact, flags
from symreg.__main__ import main
from symreg.engines.powerlaw import PowerLaw
from symreg.search.run import SearchFailed
from tests.symreg.leaderboard.written import failed, forces, search

FORMULA = "39.4784176044*m1*m2/r**2"


@pytest.fixture
def predictions_file(tmp_path, sample):
    r, m1, m2 = sample.X.T
    arrays = {"sequence_id": np.arange(1000) // 10, "step": np.arange(1000) % 10}
    arrays |= {"r": r, "m1": m1, "m2": m2, "force": sample.newton}
    arrays["force_predicted"] = sample.noisy(sample.newton, 0.02)
    path = tmp_path / "predictions.npz"
    artefact.save_arrays(path, arrays, {})
    return path


def csv_of(path):
    with np.load(path) as archive:
        columns = dict(archive)
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    return "\n".join([",".join(columns), *(",".join(map(repr, row)) for row in rows)])


def test_fit_writes_a_checked_record(tmp_path, predictions_file, capsys):
    out = tmp_path / "front.json"
    main(["fit", str(predictions_file), "--engine", "powerlaw", "--out", str(out)])
    record = artefact.load_record(out)
    assert record["manifest"]["config"]["engine"] == "powerlaw"
    assert record["metrics"]["verdict"] == "law"
    assert record["expression"] == record["front"][0]["expression"]
    assert record["forces"]["exponents"]["r"][0] == pytest.approx(-2, abs=0.01)
    assert record["manifest"]["seed"] == 0
    assert record["manifest"]["inputs"] == {"predictions": artefact.sha256(predictions_file)}
    said = capsys.readouterr().out
    assert "is the law  yes, newton" in said
    assert "predictions follow newton" in said


def test_what_is_asked_for_is_all_that_is_printed(predictions_file, capsys):
    fit = ["fit", str(predictions_file), "--engine", "powerlaw", "--quiet"]
    main(fit)
    formula = capsys.readouterr().out.strip()
    main(["score", formula, "--quiet"])
    assert capsys.readouterr().out == "law\n"
    main(["fit", str(predictions_file), "--engine", "powerlaw", "--json"])
    assert json.loads(capsys.readouterr().out)["metrics"]["verdict"] == "law"
    main(["score", FORMULA, str(predictions_file), "--json"])
    assert json.loads(capsys.readouterr().out)["verdict"] == "law"


def test_fit_does_not_overwrite_unasked(tmp_path, predictions_file, refusal):
    out = tmp_path / "front.json"
    out.write_text("precious")
    call = ["fit", str(predictions_file), "--engine", "powerlaw", "--out", str(out)]
    assert "--overwrite" in refusal(main, call)
    assert out.read_text() == "precious"
    main([*call, "--overwrite"])
    assert artefact.load_record(out)["rule"] == "knee"


def test_a_search_that_fails_is_one_line_and_exit_code_1(predictions_file, monkeypatch, capsys):
    def broken(engine, *arguments):
        raise SearchFailed(f"{engine.name} found no finite formula")

    monkeypatch.setattr(PowerLaw, "fit", broken)
    with pytest.raises(SystemExit) as stopped:
        main(["fit", str(predictions_file), "--engine", "powerlaw"])
    assert stopped.value.code == "error: powerlaw found no finite formula"  # Python's exit code 1


def test_a_record_that_cannot_be_written_is_refused_before_the_search(
    tmp_path, predictions_file, refusal, monkeypatch
):
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    call = ["fit", str(predictions_file), "--out", str(tmp_path / "new" / "front.json")]
    assert f"{tmp_path} cannot be written to; choose another folder" in refusal(main, call)


def test_score_answers_of_the_formula_and_of_the_predictions(tmp_path, predictions_file, capsys):
    main(["score", FORMULA, str(predictions_file)])
    right = capsys.readouterr().out
    assert "is the law  yes, newton" in right
    assert "predictions follow newton" in right
    columns = dict(np.load(predictions_file))
    columns["force_predicted"] = np.random.default_rng(1).permutation(columns["force"])
    np.savez(tmp_path / "bad.npz", **columns)
    main(["score", FORMULA, str(tmp_path / "bad.npz")])
    bad = capsys.readouterr().out
    assert "is the law  yes, newton" in bad
    assert "predictions do not follow newton" in bad
    assert "the formula does not describe the predictions" in bad


def test_score_needs_no_file(capsys):
    main(["score", FORMULA])
    said = capsys.readouterr().out
    assert "is the law  yes, newton" in said
    assert "predictions" not in said.replace("PREDICTIONS", "")
    main(["score", "m1*m2/r**1.5", "--law", "newton", "--json"])
    record = json.loads(capsys.readouterr().out)
    assert (record["law"], record["laws"], record["predictions"]) == (False, ["power_1_5"], None)


def test_ls(capsys):
    main(["ls"])
    out = capsys.readouterr().out
    assert "operon" in out
    assert "newton" in out
    main(["ls", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert found["engines"]["powerlaw"]["state"] == "ready"
    assert found["laws"]["newton"] in out
    main(["ls", "--quiet"])
    assert {"powerlaw", "newton"} < {*capsys.readouterr().out.splitlines()}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["fit", "FILE", "--engine", "eureqa"], "unknown engine 'eureqa'; choose from auto"),
        (["fit", "FILE", "--law", "aristotle"], "unknown law 'aristotle'; choose from"),
        (["fit", "FILE", "--rule", "worst"], "unknown rule 'worst'; choose from knee"),
        (["fit", "FILE", "--seed", "-1"], "--seed must not be negative, got -1"),
        (["fit", "FILE", "--points", "19"], "points of a search must be at least 20, got 19"),
        (["fit", "FILE", "--sed", "1"], "--sed 1; did you mean --seed?"),
        (["fit", "missing.npz"], "missing.npz: no such file"),
        (["fit", "FILE.txt"], "FILE.txt: no such file"),
        (["fit", "DAMAGED"], "damaged.npz: sha256 mismatch"),
        (["score", "m1 +", "FILE"], "not a formula: 'm1 +'"),
        (["score", "q", "FILE"], "unknown name 'q'; the variables are r, m1, m2"),
        (["score", "r^2"], "a power is written **"),
        (["score", "a.npz"], "a.npz stands where the formula does; `python -m symreg score FORM"),
        (["score", FORMULA, "FILE", "--law", "aristotle"], "unknown law 'aristotle'; choose"),
        (["show", "missing.jsonl"], "missing.jsonl: No such file"),
        (["show", "FILE"], "predictions.npz"),
        (["leaderboard", "missing.npz"], "error: missing.npz: no such file"),
        (["leaderboard", "FILE", "--seeds", "0"], "seeds must be at least 1"),
        (["leaderboard", "FILE", "--workers", "0"], "--workers must be at least 1"),
        (["leaderboard", "FILE", "--jobs", "1"], "use --workers"),
        (["leaderboard"], "the following arguments are required: files"),
        (["leaderboard", "FILE", "--law", "newtn"], "unknown law 'newtn'; did you mean newton?"),
        (["leaderboard", "FILE", "--engine-args", "3"], "Got value: 3"),
        (["leaderboard", "FILE", "--engine-args", '{"bse": 3}'], "takes no arguments, got bse"),
        (["leaderboard", "FILE", "--engine", "eureqa"], "unknown engine 'eureqa'"),
        (["leaderboard", "FILE", "--rule", "worst"], "unknown rule 'worst'"),
        (["leaderboard", "FILE", "--points", "5"], "points of a search must be at least 20, got 5"),
        (["leaderboard", "FILE", "DAMAGED"], "damaged.npz: sha256 mismatch"),
        (["leaderboard", "FILE", "FILE2"], "same row: predictions, seed 0; rename one"),
        (["import-llm", "nowhere", "OUT"], "nowhere: no folder llm-predictions"),
        (["ponder"], "invalid choice: 'ponder'"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    tmp_path, predictions_file, refusal, arguments, named
):
    damaged, twin = tmp_path / "damaged.npz", tmp_path / "predictions.csv"
    data, manifest = artefact.load_file(predictions_file)
    artefact.save_file(damaged, data, manifest)
    damaged.write_bytes(data[:-1] + b"x")
    twin.write_text(csv_of(predictions_file))
    known = {"FILE": predictions_file, "FILE2": twin, "DAMAGED": damaged, "OUT": tmp_path / "out"}
    arguments = [str(known.get(argument, argument)) for argument in arguments]
    if arguments[:1] in (["fit"], ["leaderboard"]):
        arguments += ["--engine", "powerlaw"] if "--engine" not in arguments else []
        arguments += ["--out", str(tmp_path / "out" / "front.json")]
    before = sorted(tmp_path.iterdir())
    assert named in refusal(main, arguments)
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("command", ["", "leaderboard"])
def test_help_is_cheap(command):
    """No engine, no sympy, no torch: only what it takes to print."""
    program = (
        "import sys; from symreg.__main__ import main\n"
        f"try: main('{command} --help'.split())\n"
        "except SystemExit: pass\n"
        "heavy = {'sympy', 'pyoperon', 'sklearn', 'pandas', 'pysr', 'torch', 'scipy'}\n"
        "print(sorted(heavy & set(sys.modules)))"
    )
    child = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert child.returncode == 0, child.stderr
    assert "symreg" in child.stdout
    assert child.stdout.strip().splitlines()[-1] == "[]"


def test_a_broken_pipe_is_no_error():
    child = subprocess.run(
        f"{sys.executable} -m symreg ls | head -n 1", shell=True, capture_output=True, text=True
    )
    assert child.stdout == "engines\n"
    assert "Traceback" not in child.stderr


def test_show_draws_results_of_a_file(tmp_path, capsys):
    path = tmp_path / "lines.jsonl"
    path.write_text("".join(json.dumps(x.to_json()) + "\n" for x in (forces(), failed(search()))))
    main(["show", str(path)])
    assert "ValueError: no such orbit" in capsys.readouterr().out
    main(["show", str(path), "--markdown"])
    assert capsys.readouterr().out.startswith("# What law do the predictions contain?")


def test_a_leaderboard_with_a_failed_cell_is_exit_code_1(
    tmp_path, predictions_file, monkeypatch, capsys
):
    command = ["leaderboard", str(predictions_file), "--engine", "powerlaw"]
    command += ["--out", str(tmp_path / "out")]
    monkeypatch.setattr(flags, "say_report", lambda *_: None)
    monkeypatch.setattr(flags, "execute", lambda *_: [forces(), search()])
    main(command)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(flags, "execute", lambda *_: [forces(), failed(search())])
    with pytest.raises(SystemExit, match="1"):
        main(command)
    assert "2 cells, 1 failed" in capsys.readouterr().err
