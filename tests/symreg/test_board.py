"""Leaderboards of prediction files: cells, controls, resume after a kill, refusals."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from orbits import artefacts, laws
from symreg import board, controls, leaderboard, results
from symreg.__main__ import main

N = 600


def write(path, noise=0.05, law="newton", scale=1.0, **names):
    """Write a file as somebody else's model would, with numpy alone."""
    rng = np.random.default_rng(5)
    r, m1, m2 = rng.uniform(0.3, 5, N), rng.uniform(0.05, 2, N), rng.uniform(0.1, 4, N)
    force = laws.get(law).magnitude(r, m1, m2)
    predicted = scale * force * np.exp(noise * rng.standard_normal(N))
    columns = {"sequence_id": np.arange(N) // 6, "r": r, "m1": m1, "m2": m2}
    np.savez(path, **columns, force_predicted=predicted, **names)
    return path


def options(*files, **changes):
    return board.Options(files, **{"engine": "powerlaw", "seeds": 2, "points": 200, **changes})


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    folder = tmp_path_factory.mktemp("board")
    files = write(folder / "good.npz"), write(folder / "weak.npz", noise=1.5, model="weak model")
    out = folder / "out"
    board.run(options(*files), out, jobs=2)
    lines, _ = results.load(out)
    return files, out, lines


def test_every_file_and_every_control_has_a_row(made):
    _, _, lines = made
    table = leaderboard.rows(lines, "newton")
    contestants = [row.model for row in table if not row.is_control]
    assert contestants == ["good", "weak model"], "the better exponents come first"
    expected = {
        *controls.names("newton"),
        f"{controls.NOISE} good, seed 0",
        f"{controls.NOISE} weak model, seed 0",
    }
    assert {row.model for row in table if row.is_control} == expected


def test_the_law_is_found_where_it_is_and_nowhere_else(made):
    _, _, lines = made
    rows = {row.model: row for row in leaderboard.rows(lines, "newton")}
    assert rows["true force"].laws[0].found == 2
    assert rows["true force"].laws[0].constant[0] == pytest.approx(39.4784176)
    for wrong in ("constant", "1/r", "m1/r^2", "m2/r^2", "Yukawa"):
        assert rows[wrong].laws[0].found == 0, wrong
        assert rows[wrong].laws[0].failed == 0, wrong
    assert rows["good"].exponents["r"][0] == pytest.approx(-2, abs=0.02)
    assert rows["weak model"].laws[0].verdicts == {"no law found": 2}


def test_a_second_run_computes_nothing(made):
    files, out, lines = made
    before = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*")}
    board.run(options(*files), out, jobs=1)
    assert {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*")} == before
    assert results.load(out)[0] == lines


def test_a_cell_is_known_by_content_not_by_place(made, tmp_path):
    files, _, _ = made
    moved = tmp_path / files[0].name
    moved.write_bytes(files[0].read_bytes())
    keys = [cell.key for cell in board.cells(options(files[0]))]
    assert [cell.key for cell in board.cells(options(moved))] == keys
    write(moved, noise=0.06)
    assert not set(keys) & {cell.key for cell in board.cells(options(moved))}


def test_contestants_come_before_controls_and_the_baseline_stands_beside_the_engine(made):
    files, _, _ = made
    grid = board.cells(options(*files, engine="operon"))
    flags = [cell.config["control"] is not None for cell in grid]
    assert flags == sorted(flags)
    searches = [cell.config["engine"] for cell in grid if cell.kind == "law" and not flags[0]]
    assert {"operon", "powerlaw"} == set(searches)


@pytest.mark.parametrize("law", laws.names())
def test_every_law_of_the_registry_is_measured(tmp_path, law):
    path = write(tmp_path / "model.npz", law=law, noise=0.01)
    grid = board.cells(options(path, law=law, seeds=1))

    def computed(kind, control):
        (cell,) = [c for c in grid if (c.kind, c.config["control"]) == (kind, control)]
        return board.COMPUTE[kind](dict(cell.config), tmp_path, dict(cell.inputs), print)

    measured = computed("predictor", None)["metrics"]
    for name, value in measured["law_exponents"].items():
        assert measured["exponents"][name][0] == pytest.approx(value, abs=0.02)
    found = computed("law", controls.TRUTH)["metrics"]
    if laws.get(law).exponents is not None:  # the closed form can say power laws alone
        assert (found["verdict"], found["symbolic"]) == ("law", "yes")
        assert found["error_outside"] < 1e-6


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({"seeds": 0}, "seeds must be at least 1"),
        ({"points": 0}, "points of a search must be at least 1"),
        ({"law": "newtn"}, "newton"),
        ({"rule": "worst"}, "worst"),
        ({"engine": "eureqa"}, "eureqa"),
        ({"arguments": {"generatons": 3}}, "generatons"),
        ({"files": ()}, "no prediction file"),
    ],
)
def test_bad_options_are_refused(made, change, named):
    with pytest.raises(ValueError, match=named):
        dataclasses.replace(options(made[0][0]), **change)


def test_two_files_of_one_row_are_refused(made, tmp_path):
    twin = write(tmp_path / "twin.npz", model="good")
    with pytest.raises(ValueError, match="same row: good"):
        board.cells(options(made[0][0], twin))


def command(*arguments):
    return [sys.executable, "-m", "symreg", "leaderboard", *map(str, arguments)]


@pytest.mark.parametrize("what", ["nan", "negative", "missing", "empty", "text"])
def test_a_bad_file_among_good_ones_is_one_line_and_changes_nothing(made, tmp_path, capsys, what):
    files, out, _ = made
    bad = tmp_path / "bad.npz"
    with np.load(files[0]) as archive:
        columns = dict(archive)
    if what == "nan":
        columns["m1"][3] = np.nan
    if what == "negative":
        columns["r"][3] = -1
    if what == "missing":
        del columns["m2"]
    if what == "empty":
        columns = {name: column[:0] for name, column in columns.items()}
    np.savez(bad, **columns)
    if what == "text":
        bad.write_text("__import__('os').system('true')")
    table = (out / "leaderboard.md").read_bytes()
    for folder in (out, tmp_path / "new"):
        call = [files[0], bad, "--engine", "powerlaw", "--out", folder, "--resume"]
        assert main(["leaderboard", *map(str, call)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert "bad.npz" in error
    assert (out / "leaderboard.md").read_bytes() == table
    assert not (tmp_path / "new").exists()


def test_a_folder_of_another_schema_is_refused(made, tmp_path):
    files, _, _ = made
    out = tmp_path / "out"
    config = options(files[0]).config()
    artefacts.save_record(out / results.CLAIM, {"schema": 0, "config": config, "manifest": {}})
    with pytest.raises(ValueError, match="schema 0"):
        board.run(options(files[0]), out, jobs=1, resume=True)


def test_a_file_that_changes_meanwhile_fails_its_cells(made, tmp_path):
    path = write(tmp_path / "model.npz")
    cell = board.cells(options(path))[0]
    write(path, noise=0.2)
    with pytest.raises(ValueError, match="changed"):
        board.measure(dict(cell.config), tmp_path, {"predictions": path}, print)


def killed_and_resumed(tmp_path, files, seeds, kills):
    """Return the table of a run that was killed at random times, and how often it was."""
    out, chance = tmp_path / "killed", random.Random(7)
    call = command(
        *files, "--engine", "powerlaw", "--seeds", seeds, "--points", 200, "--jobs", 2, "--out", out
    )
    happened = 0
    for _ in range(kills):
        child = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        done = len(list(out.glob("cells/*/cell.json")))
        wait_for = done + chance.randrange(1, 12)
        deadline = time.monotonic() + 120
        while child.poll() is None and time.monotonic() < deadline:
            if len(list(out.glob("cells/*/cell.json"))) >= wait_for:
                time.sleep(chance.random() / 5)
                os.kill(child.pid, signal.SIGKILL)
                happened += 1
                break
            time.sleep(0.01)
        child.wait()
        assert not (out / "results.jsonl").exists() or child.returncode == 0
    subprocess.run(call, check=True, capture_output=True)
    return (out / "leaderboard.md").read_text(), happened


def whole(tmp_path, files, seeds):
    settings = options(*files, seeds=seeds)
    board.run(settings, tmp_path / "whole", jobs=2)
    return (tmp_path / "whole" / "leaderboard.md").read_text()


def test_a_leaderboard_killed_at_random_times_resumes_to_the_identical_table(tmp_path):
    files = [write(tmp_path / "model.npz")]
    table, kills = killed_and_resumed(tmp_path, files, seeds=4, kills=3)
    assert kills >= 1  # a busy machine may look too late for one of them
    assert table == whole(tmp_path, files, seeds=4)


@pytest.mark.slow
def test_500_cells_killed_at_random_times(tmp_path):
    files = [write(tmp_path / f"model{i}.npz", noise=0.01 * i) for i in range(10)]
    grid = board.cells(options(*files, seeds=25))
    assert len(grid) >= 500
    table, kills = killed_and_resumed(tmp_path, files, seeds=25, kills=12)
    print(f"{len(grid)} cells, {kills} kills")
    assert table == whole(tmp_path, files, seeds=25)


def test_the_command_prints_engine_and_table_and_takes_json_arguments(tmp_path, capsys):
    path, out = write(tmp_path / "model.npz"), tmp_path / "out"
    small = '{"generations": 3, "population_size": 50, "restarts": 1}'
    call = [path, "--engine", "operon", "--engine-args", small, "--seeds", 1, "--jobs", 2]
    assert main(["leaderboard", *map(str, call), "--points", "100", "--out", str(out)]) == 0
    printed = capsys.readouterr().out
    assert "operon: pyoperon" in printed
    assert "true force" in printed
    lines, _ = results.load(out)
    searches = [line for line in lines if str(line["engine"]).startswith("operon")]
    assert {line["manifest"]["config"]["settings"]["generations"] for line in searches} == {3}
    assert all(line["front"] and line["status"] == "ok" for line in searches)
    assert main(["show", str(out), "--markdown"]) == 0
    assert capsys.readouterr().out == (out / "leaderboard.md").read_text()
    assert main(["leaderboard", str(path), "--engine-args", "[1]"]) == 2
    assert "JSON object" in capsys.readouterr().err


def test_result_lines_carry_their_proof(made):
    files, _, lines = made
    digests = {artefacts.sha256(path) for path in files}
    for line in lines:
        assert line["manifest"]["inputs"]["predictions"] in digests
        assert line["manifest"]["versions"]["numpy"]
        json.dumps(line)
    assert Path(files[0]).exists()
