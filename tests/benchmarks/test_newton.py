"""The flagship: its grid, its refusals, and the whole way at the size `tiny`."""

import dataclasses
import html
import json
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import attention
from benchmarks import newton, newton_cells, next_points, presets, report
from benchmarks.__main__ import main
from orbits import artefacts, laws
from symreg import cells, engines, published, results
from worldmodel.tasks import NextTokenTask

ROOT = Path(__file__).parents[2]


def options(preset="small", protocol="identifiable", sharpen_after=0, law="newton", **changes):
    size = dataclasses.replace(presets.get(preset), **changes)
    return newton.Options(protocol, size, sharpen_after, law)


def test_every_model_stands_beside_its_controls():
    rows = [c.config["row"] for c in newton.cells(options()) if c.kind not in ("law", "pretrain")]
    kinds = {(row["model"], row["arm"], row["labels"]) for row in rows}
    for model in ("softmax", "lssar p=15"):
        for arm in ("pretrained", "scratch"):
            assert {(model, arm, 300), (model, arm, "unlimited")} <= kinds
        assert (model, "untrained + ridge", 4000) in kinds
    for control in ("true force", "ceiling", "k-NN oracle", "power law"):
        assert any(row["model"] == control for row in rows)


def test_the_scratch_arm_is_compute_matched_and_budgets_reach_the_data():
    grid = [c for c in newton.cells(options()) if c.kind == "force"]
    steps = {c.config["row"]["arm"]: c.config["steps"] for c in grid}
    preset = presets.get("small")
    assert steps["scratch"] == steps["pretrained"] + preset.pretrain_steps
    for cell in grid:
        budget = cell.config["row"]["labels"]
        assert cell.config["data"]["n_train"] == (None if budget == "unlimited" else budget)
        assert bool(cell.needs) == (cell.config["row"]["arm"] == "pretrained")


def test_every_predictor_is_searched_by_every_engine_and_seed():
    grid = newton.cells(options(seeds=(0, 1, 2), law_seeds=4))
    predictors = [c for c in grid if c.config["line_kind"] == "predictor"]
    laws = [c for c in grid if c.kind == "law"]
    assert len(laws) == len(predictors) * 2 * 4
    assert len({c.key for c in grid}) == len(grid)


def test_a_schedule_adds_a_row_for_reweighted_variants_alone():
    added = {c.config["row"]["model"] for c in newton.cells(options(sharpen_after=100))} - {
        c.config["row"]["model"] for c in newton.cells(options())
    }
    assert added == {"lssar p=15, off to step 100"}


def test_models_from_elsewhere_keep_their_world_until_they_are_asked_here():
    size = dataclasses.replace(presets.get("small"), attentions=("softmax",), labels=(300,))
    away = newton.Options("identifiable", size, law="power_1_5", elsewhere=("newton",))
    grid = newton.cells(away)
    by_arm = {c.config["row"]["arm"]: c for c in grid if c.kind in ("force", "transfer")}
    tuned, asked, head = (
        by_arm[arm] for arm in ("pretrained on newton", "trained on newton", "head, newton")
    )
    for cell, law in ((tuned, "power_1_5"), (asked, "power_1_5"), (head, "newton")):
        assert cell.config["world"]["law"] == law
        assert (cell.config["data"]["protocol_args"] or {}).get("law", "newton") == law
    assert tuned.needs["pretrained"] == head.needs["pretrained"]
    assert tuned.needs["pretrained"].config["world"]["law"] == "newton"
    assert asked.needs == {"head": head}
    assert asked.config["row"]["labels"] == 0
    assert head.config["task"] == "newton", "it makes no row of this world's table"
    searched = {c.config["row"]["arm"] for c in grid if c.kind == "law"}
    assert {"pretrained", "pretrained on newton", "trained on newton"} <= searched
    assert "head, newton" not in searched


def test_searches_can_be_kept_to_some_budgets():
    away = newton.Options("identifiable", presets.get("small"), law_labels=(300,))
    rows = [c.config["row"] for c in newton.cells(away) if c.kind == "law"]
    assert {x["labels"] for x in rows if x["arm"] != "control"} == {300}
    controls = {x["model"] for x in rows if x["arm"] == "control"}
    assert controls == {"true force", "ceiling", "k-NN oracle", "power law"}


@pytest.mark.parametrize("labels", [(300, "unlimited"), ("unlimited", 300)])
def test_heads_elsewhere_learn_from_the_largest_budget_wherever_it_stands(labels):
    size = dataclasses.replace(presets.get("small"), attentions=("softmax",), labels=labels)
    away = newton.Options("identifiable", size, law="power_1_5", elsewhere=("newton",))
    heads = [c for c in newton.cells(away) if c.config["row"]["arm"] == "head, newton"]
    assert [(c.config["row"]["labels"], c.config["data"]["n_train"]) for c in heads] == [
        ("unlimited", None)
    ]
    lines = [{"row": c.config["row"]} for c in newton.cells(away)]
    (sentence,) = report.heads_elsewhere(lines)
    assert sentence.startswith("Rows trained on newton: their heads learnt from unlimited labels")


def test_another_law_is_another_world_and_another_answer():
    ours, theirs = newton.cells(options(law="harmonic")), newton.cells(options())
    assert not {c.key for c in ours} & {c.key for c in theirs}
    for cell in ours:
        assert cell.config["task"] == "harmonic", "rows of two laws must not share a table"
        for part in ("data", "model"):
            if part in cell.config:
                assert cell.config[part]["protocol_args"]["law"] == "harmonic"
    for grid, law in ((ours, "harmonic"), (theirs, "newton")):
        searched = {c.config["law"]["expression"] for c in grid if c.kind == "law"}
        assert searched == {laws.get(law).expression}


@pytest.mark.parametrize("law", ["harmonic", "power_2_5"])
def test_controls_answer_by_the_law_of_their_world(law, tmp_path):
    grid = newton.cells(options("tiny", law=law, n_test=60))
    controls = {c.config["row"]["model"]: c for c in grid if c.kind == "control"}
    truth = laws.get(law)
    for control, tolerance in (("true force", 1e-3), ("ceiling", 0.1)):
        (tmp_path / control).mkdir()
        line = newton_cells.control(
            dict(controls[control].config), tmp_path / control, {}, lambda *_: None
        )
        fitted = {name: value[0] for name, value in line["metrics"]["exponents"].items()}
        assert fitted == pytest.approx(dict(truth.exponents), abs=tolerance)
        assert line["metrics"]["constant"][0] == pytest.approx(39.4784, rel=tolerance)


@pytest.mark.parametrize("name", attention.all_names())
def test_every_variant_can_be_benchmarked(name):
    grid = newton.cells(options("tiny", attentions=(name,)))
    model = next(c.config["model"] for c in grid if c.kind == "pretrain")
    assert repr(name) in repr(NextTokenTask(**model).gpt.blocks[0].attention)


@pytest.mark.parametrize("preset", presets.names())
@pytest.mark.parametrize("protocol", ["identifiable", "paper"])
def test_every_preset_describes_a_run(preset, protocol):
    grid = newton.cells(options(preset, protocol))
    json.dumps([dict(cell.config) for cell in grid])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nwton"], "newton"),
        (["newton", "--preset", "large"], "tiny, small, gpu, paper"),
        (["newton", "--protocol", "fixd"], "identifiable, paper"),
        (["newton", "--attention", "softmax,linnear"], "linnear"),
        (["newton", "--engines", "eureqa"], "operon"),
        (["newton", "--labels", "300,many"], "'many'"),
        (["newton", "--labels", "2"], "2"),
        (["newton", "--seeds", ""], "seeds must not be empty"),
        (["newton", "--jobs", "0"], "--jobs"),
        (["newton", "--law-seeds", "0"], "--law-seeds"),
        (["newton", "--sharpen-after", "1100"], "[0, 1100)"),
        (["newton", "--elsewhere", "newton"], "elsewhere must not name 'newton'"),
        (["newton", "--elsewhere", "newtonian"], "did you mean newton"),
        (["newton", "--law-labels", "77"], "must be among labels"),
        (["newton", "--label-leak", "1"], "--label-leak"),
        (["newton", "--label-leak", "2"], "add --no-images"),
        (["newton", "--seeds", "0,1"], "needs at least 3 of them, got 2"),
        (["newton", "--protocol", "nbody"], "'nbody' has no labelled forces"),
        (["newton", "--seeds", "4294967000"], "seeds must be at most 4294966295"),
        (["newton", "--protocol", "paper", "--seeds", "600000000"], "seed must be at most"),
        (["newton", "--protocol", "paper", "--seeds", "1,2,21"], "seeds 1 and 21 share"),
        (["newton", "--protocol", "paper", "--seeds", "20"], "seeds 0 and 20 share"),
        (["newton", "--attention", "softmax", "--exponents", "3"], "needs a re-weighted variant"),
        (["newton", "--exponents", "0"], "positive numbers separated by commas, got '0'"),
        (["newton", "--law", "hook"], "harmonic, inverse_cube"),
        (["newton", "--law", "inverse_cube"], "does not bind"),
        (["newton", "--protocol", "fixed", "--law", "yukawa"], "does not bind"),
    ],
)
def test_bad_input_is_one_line_and_nothing_is_written(tmp_path, capsys, arguments, message):
    out = tmp_path / "out"
    with pytest.raises(SystemExit) as refused:
        main(["run", *arguments, "--out", str(out)])
    assert refused.value.code == 2
    error = capsys.readouterr().err
    assert error.count("\n") == 1
    assert message in error
    assert not out.exists()


def test_a_folder_of_another_configuration_is_refused(tmp_path):
    config = options().config()
    results.claim(tmp_path / "out", config, resume=False, overwrite=False)
    results.claim(tmp_path / "out", config, resume=False, overwrite=False)
    other = options(seeds=(0, 1, 2)).config()
    with pytest.raises(ValueError, match=r"preset\.seeds.*--resume.*--overwrite"):
        results.claim(tmp_path / "out", other, resume=False, overwrite=False)
    results.claim(tmp_path / "out", other, resume=True, overwrite=False)
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.tex").touch()
    with pytest.raises(ValueError, match="not results"):
        results.claim(tmp_path / "mine", config, resume=True, overwrite=True)
    assert (tmp_path / "mine" / "thesis.tex").exists()


@pytest.mark.parametrize("content", ["folder", "unfinished"])
def test_a_report_needs_a_finished_run(tmp_path, capsys, content):
    if content == "unfinished":
        results.claim(tmp_path, options().config(), resume=False, overwrite=False)
    with pytest.raises(SystemExit) as refused:
        main(["report", str(tmp_path)])
    assert refused.value.code == 2
    assert str(tmp_path) in capsys.readouterr().err


def command(out, *arguments):
    return [
        sys.executable,
        "-m",
        "benchmarks",
        "run",
        "newton",
        "--preset",
        "tiny",
        "--engines",
        "powerlaw",  # a search takes seconds a row; the closed form goes the same way
        "--out",
        str(out),
        *arguments,
    ]


def measured(out):
    """Return what a run found, without what differs from run to run."""
    lines, _ = results.load(out)
    return [{k: line.get(k) for k in ("cell", "metrics", "expression")} for line in lines]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    out = tmp_path_factory.mktemp("tiny") / "out"
    subprocess.run(command(out), cwd=ROOT, check=True, capture_output=True)
    return out


def test_the_whole_way_ends_in_a_report(tiny, capsys):
    lines, _ = results.load(tiny)
    assert all(line["status"] == "ok" for line in lines)
    main(["report", str(tiny)])
    text = capsys.readouterr().out
    assert "softmax, pretrained, unlimited labels (1 seed)" in text
    assert "no claim (1 seed and 1 seed" in text
    page = (tiny / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4
    assert "://" not in page.split("<h2>Provenance")[0], "the page must be self-contained"
    assert "C*m1*m2/r**2" in (tiny / "leaderboard.md").read_text()
    by_model = {
        (line["row"]["model"], line["row"]["arm"]): line["metrics"]
        for line in lines
        if line["kind"] == "predictor"
    }
    truth = by_model["true force", "control"]
    assert truth["r2_log"] == pytest.approx(1.0)
    assert truth["constant"][0] == pytest.approx(39.4784, rel=1e-4)
    scratch = by_model["softmax", "scratch"]
    assert scratch["r2_log"] > by_model["softmax", "untrained + ridge"]["r2_log"]
    assert scratch["exponents"]["r"][0] < -1
    law = next(
        line for line in lines if line["kind"] == "law" and line["row"]["model"] == "true force"
    )
    assert law["metrics"]["verdict"] == "law"
    pretraining = [line["metrics"]["val_nll"] for line in lines if line["kind"] == "pretraining"]
    assert all(nll < 9.0 for nll in pretraining), "below the uniform guess of 2 ln 128 = 9.70"
    table = {row.model: row for row in next_points.rows(lines)}
    assert table["softmax"].nll[0] < 9.0
    fitted = table["orbit fit"].planet_error[0]
    known = {row.planet_error[0] for row in table.values()}
    assert fitted == min(known)
    assert len(known) == 5, "two models and three references"
    assert "| softmax | 1 | " in (tiny / "leaderboard.md").read_text()
    assert "nats per point" in page
    assert "Under the paper&#39;s protocol and Newton&#39;s law" in page
    assert all(row.source in html.unescape(page) for row in published.ROWS)
    assert "learnt from" not in page, "no label leaked"


def test_a_world_with_models_from_elsewhere(tmp_path, capsys):
    out = tmp_path / "out"
    world = ("--jobs", "1", "--law", "power_1_5", "--elsewhere", "newton", "--attention", "softmax")
    subprocess.run(command(out, *world), cwd=ROOT, check=True, capture_output=True)
    main(["report", str(out)])
    text = capsys.readouterr().out
    assert "softmax, pretrained on newton, unlimited labels (1 seed)" in text
    assert "softmax, trained on newton, 0 labels (1 seed)" in text
    assert "Rows trained on newton: their heads learnt from unlimited labels there" in text
    assert "Under the paper&#39;s protocol" in (out / "report.html").read_text()
    table = (out / "leaderboard.md").read_text()
    assert "law of the world / laws found" in table
    assert r"power\_1\_5 / power\_1\_5 1" in table, "found in the true force"
    assert "### newton" not in table


def test_a_report_names_the_law_and_compares_constants_only_of_power_laws(tiny, tmp_path, capsys):
    lines, _ = results.load(tiny)
    for law, compared in (("harmonic", True), ("yukawa", False)):
        out = tmp_path / law
        shutil.copytree(tiny, out)
        results.claim(out, options("tiny", law=law).config(), resume=True, overwrite=False)
        results.save(out, [{**line, "task": law} for line in lines])
        for path in out.glob("cells/*/predictions.npz"):  # the true force is that of the law
            arrays, record = artefacts.load_arrays(path)
            arrays["force"] = laws.get(law).magnitude(arrays["r"], arrays["m1"], arrays["m2"])
            artefacts.save_arrays(path, arrays, record)
        main(["report", str(out)])
        text = capsys.readouterr().out
        assert f"{law}, protocol identifiable" in text
        assert ("from the law's" in text) == compared
        assert f"True law: {law}, F = " in (out / "report.html").read_text()
    assert "length = 20 AU" in (out / "report.html").read_text()


@pytest.mark.parametrize("kind", ["pretraining", "predictor", "law"])
def test_a_failed_cell_stays_in_the_report(tiny, tmp_path, kind, capsys):
    out = tmp_path / "out"
    shutil.copytree(tiny, out)
    lines, _ = results.load(out)
    broken = next(line for line in lines if line["kind"] == kind)
    broken |= {"status": "failed", "error": "ValueError: no such orbit", "metrics": {}}
    broken.pop("files", None)
    results.save(out, lines)
    main(["report", str(out)])
    assert "no such orbit" in (out / "report.html").read_text()
    assert "no such orbit" in capsys.readouterr().out
    if kind == "law":
        kept = (out / "leaderboard.md").read_text()
        assert "| 0/1 all failed [0.00, 0.79], 1 failed |" in kept


def test_a_failed_search_counts_under_the_version_of_its_engine(tmp_path):
    law = next(c for c in newton.cells(options("tiny")) if c.kind == "law")
    line = cells.fail(law, tmp_path, "ValueError: none")["line"]
    assert line["engine"] == f"operon@{engines.get('operon').version()}"
    assert line["manifest"]["config"] == dict(law.config)


def test_seeds_draw_their_own_labels_and_share_the_test_set():
    grid = [c for c in newton.cells(options(seeds=(0, 5, 7))) if c.kind == "force"]
    drawn = {(c.config["row"]["seed"], c.config["data"]["train_seed"]) for c in grid}
    assert drawn == {(0, 0), (5, 5), (7, 7)}
    assert not any("seed" in c.config["data"] for c in grid)


def test_an_edited_result_is_refused_by_name(tiny, capsys):
    path = tiny / results.LINES
    original = path.read_bytes()
    path.write_bytes(original.replace(b'"r2_log": 0', b'"r2_log": 1', 1))
    try:
        with pytest.raises(SystemExit) as refused:
            main(["report", str(tiny)])
    finally:
        path.write_bytes(original)
    assert refused.value.code == 2
    assert "results.jsonl" in capsys.readouterr().err


def test_a_killed_run_finishes_with_the_same_leaderboard(tiny, tmp_path):
    out = tmp_path / "out"
    softmax = command(out, "--attention", "softmax")
    with subprocess.Popen(
        softmax, cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        while len(list(out.glob("cells/*/cell.json"))) < 3:
            assert process.poll() is None
            time.sleep(0.05)
        # The main process alone: its workers must notice and stop.
        process.send_signal(signal.SIGKILL)
    assert not (out / results.LINES).exists()
    done = {path: path.stat().st_mtime_ns for path in out.glob("cells/*/cell.json")}
    assert len(done) < 17
    subprocess.run(softmax, cwd=ROOT, check=True, capture_output=True)
    assert {path: path.stat().st_mtime_ns for path in done} == done, "done cells stay untouched"
    uninterrupted = {line["cell"]: line for line in measured(tiny)}
    again = measured(out)
    assert len(again) == 17
    assert again == [uninterrupted[line["cell"]] for line in again]
