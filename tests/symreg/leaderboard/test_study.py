"""Leaderboards of prediction files: cells, controls, resume after a kill, refusals."""

import dataclasses
import json
import os
import random
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from orbits import laws
from orbits.runs import artefact, folder, study
from orbits.runs.executors import Execution
from symreg import controls, leaderboard
from symreg.__main__ import main
from symreg.leaderboard import words
from symreg.leaderboard.leaderboard import STUDY, LeaderboardSettings

N = 600
HERE = Execution("here")


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
    small = {"engine": "powerlaw", "seeds": 2, "points": 200}
    return LeaderboardSettings(tuple(map(str, files)), **{**small, **changes})


def without_times(results):
    """Return the rows of results but for how long their searches took."""
    return [
        dataclasses.replace(row, laws=tuple(dataclasses.replace(x, cpu_s=None) for x in row.laws))
        for row in leaderboard.rows(results)
    ]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    place = tmp_path_factory.mktemp("board")
    files = write(place / "good.npz"), write(place / "weak.npz", noise=1.5, model="weak model")
    out = place / "out"
    return files, out, study.run(STUDY, options(*files), out, HERE)


@pytest.mark.full
def test_every_file_and_every_control_has_a_row_and_the_law_is_found_where_it_is(made):
    table = leaderboard.rows(made[2])
    contestants = [row.model for row in table if not row.is_control]
    assert contestants == ["good", "weak model"], "the better exponents come first"
    rows = {row.model: row for row in table}
    noisy = {f"{controls.NOISE} {name}, seed 0" for name in ("good", "weak model")}
    assert set(rows) == {*contestants, *noisy, *controls.names("newton")}
    assert rows["true force"].laws[0].found == 2
    assert rows["true force"].laws[0].constant.value == pytest.approx(39.4784176)
    for wrong in ("constant", "1/r", "m1/r^2", "m2/r^2", "Yukawa"):
        assert (rows[wrong].laws[0].found, rows[wrong].laws[0].failed) == (0, 0), wrong
    assert rows["good"].exponents["r"].value == pytest.approx(-2, abs=0.02)
    assert rows["weak model"].laws[0].verdicts == {"no law found": 2}


@pytest.mark.full
def test_a_second_run_computes_nothing_and_the_report_is_of_the_results(made):
    files, out, results = made
    before = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*")}
    assert study.run(STUDY, options(*files), out, HERE) == results
    assert {path: path.stat().st_mtime_ns for path in out.glob("cells/*/*")} == before
    text = study.report(STUDY, out)
    assert "weak model" in text
    page = (out / "report.html").read_text()
    assert page.count('src="data:image/png;base64,') >= 4
    assert "share of predictions that have no logarithm" in page


@pytest.mark.full
def test_results_carry_their_proof(made):
    digests = {artefact.sha256(path) for path in made[0]}
    for result in made[2]:
        assert result.manifest["inputs"]["predictions"] in digests
        assert result.manifest["versions"]["numpy"]
        assert all(metric.unit is not None for metric in result.metrics.values())
        json.dumps(result.to_json())


def test_a_cell_is_known_by_content_not_by_place(tmp_path):
    path, moved = write(tmp_path / "good.npz"), tmp_path / "elsewhere" / "good.npz"
    moved.parent.mkdir()
    moved.write_bytes(path.read_bytes())
    keys = [cell.key for cell in STUDY.cells(options(path))]
    assert [cell.key for cell in STUDY.cells(options(moved))] == keys
    config = STUDY.config(options(path), "small")
    assert STUDY.config(options(moved), "small") == config
    write(moved, noise=0.06)
    assert not set(keys) & {cell.key for cell in STUDY.cells(options(moved))}
    assert STUDY.config(options(moved), "small") != config


def test_contestants_come_before_controls_and_the_baseline_stands_beside_the_engine(tmp_path):
    files = write(tmp_path / "one.npz"), write(tmp_path / "two.npz", scale=2.0)
    grid = STUDY.cells(options(*files, engine="operon"))
    flags = [cell.arguments["control"] is not None for cell in grid]
    assert flags == sorted(flags)
    searches = {cell.arguments.get("engine") for cell in grid} - {None}
    assert searches == {"operon", "powerlaw"}


@pytest.mark.parametrize("law", laws.names())
@pytest.mark.full
def test_every_law_of_the_registry_is_measured(tmp_path, law):
    path = write(tmp_path / "model.npz", law=law, noise=0.01)
    grid = STUDY.cells(options(path, law=law, seeds=1))

    def computed(kind, control):
        wanted = [c for c in grid if (c.case.kind, c.arguments["control"]) == (kind, control)]
        return wanted[0].function(**wanted[0].arguments, **wanted[0].inputs)

    measured = computed("forces", None).metrics
    for name in ("r", "m1", "m2"):
        value = measured[f"law_exponent_{name}"]
        assert measured[f"exponent_{name}"][0] == pytest.approx(value, abs=0.02)
    found = computed("search", controls.TRUTH)
    if laws.get(law).exponents is not None:  # the closed form can say power laws alone
        assert (found.details["verdict"], found.details["symbolic"]) == ("law", "yes")
        assert found.metrics["error_outside"] < 1e-6


def test_rows_that_would_be_taken_for_others_are_refused(tmp_path):
    good, twin = write(tmp_path / "good.npz"), write(tmp_path / "twin.npz", model="good")
    with pytest.raises(ValueError, match="same row: good"):
        STUDY.cells(options(good, twin))
    with pytest.raises(ValueError, match="'control' is reserved"):
        STUDY.cells(options(write(tmp_path / "sly.npz", arm="control")))
    with pytest.raises(ValueError, match="no prediction file is given"):
        STUDY.cells(options())


def test_points_of_one_mass_are_refused_before_any_work(tmp_path):
    path = tmp_path / "one_mass.csv"
    lines = ["sequence_id,r,m1,m2,force_predicted"]
    lines += [f"{k},{1 + k / 10},{0.1 + k / 50},1.0,{3.0 + k}" for k in range(30)]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(ValueError, match="m2 is 1 at every point, which leaves its exponent open"):
        list(STUDY.cells(LeaderboardSettings(files=(str(path),), engine="powerlaw")))


@pytest.mark.full
def test_a_leaderboard_killed_at_random_times_resumes_to_the_same_rows(tmp_path):
    path, out, chance = write(tmp_path / "model.npz"), tmp_path / "killed", random.Random(7)
    flags = ["--engine", "powerlaw", "--seeds", "4", "--points", "200", "--workers", "2", "--out"]
    call = [sys.executable, "-m", "symreg", "leaderboard", str(path), *flags, str(out)]

    def finished():
        return len(list(out.glob("cells/*/cell.json")))

    kills = 0
    for _ in range(2):
        child = subprocess.Popen(call, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        wait_for = finished() + chance.randrange(1, 12)
        while child.poll() is None and finished() < wait_for:
            time.sleep(0.01)
        time.sleep(chance.random() / 5)
        if child.poll() is None:
            os.kill(child.pid, signal.SIGKILL)
            kills += 1
        child.wait()
        assert not (out / folder.LINES).exists() or child.returncode == 0
    done = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/cell.json")}
    subprocess.run(call, check=True, capture_output=True)
    assert kills >= 1  # a busy machine may look too late for one of them
    assert {path: path.stat().st_mtime_ns for path in done} == done, "done cells stay untouched"
    whole = study.run(STUDY, options(path, seeds=4), tmp_path / "whole", HERE)
    assert without_times(folder.load(out)[0]) == without_times(whole)


@pytest.mark.full
def test_the_command_prints_engine_and_table_and_takes_json_arguments(tmp_path, capsys):
    path, out = write(tmp_path / "model.npz"), tmp_path / "out"
    small = '{"generations": 3, "population_size": 50, "restarts": 1}'
    call = [path, "--engine", "operon", "--engine-args", small, "--seeds", 1, "--points", 100]
    main(["leaderboard", *map(str, call), "--executor", "here", "--out", str(out)])
    printed = capsys.readouterr().out
    assert "operon: pyoperon" in printed
    assert "true force" in printed
    results, _ = folder.load(out)
    searches = [x for x in results if str(x.case.get("engine")).startswith("operon")]
    settings = [x.manifest["config"]["definition"]["settings"] for x in searches]
    assert {each["generations"] for each in settings} == {3}
    assert all(x.details["front"] and x.ok for x in searches)
    main(["show", str(out), "--markdown"])
    shown = capsys.readouterr().out
    table = shown[shown.index("| \\# |") : shown.index("## Published")]
    assert table in (out / "report.md").read_text()


@pytest.mark.full
def test_the_verdict_has_the_control_among_the_files_beside_the_models(tmp_path):
    control = write(tmp_path / "a.npz", noise=0.02, model="filter", arm="implied, control")
    mine = write(tmp_path / "b.npz", model="mine", arm="implied")
    found = leaderboard.rows(study.run(STUDY, options(control, mine), tmp_path / "out", HERE))
    said, elsewhere = words.verdict(found, "newton")
    assert elsewhere == words.ELSEWHERE
    assert ": mine, implied 2 of 2 [" in said
    assert "; filter, implied, control 2 of 2 [" in said
    assert "look-up table" not in said
    alone, _ = words.verdict([x for x in found if x.model != "filter"], "newton")
    assert "; of a look-up table of true forces, " in alone
