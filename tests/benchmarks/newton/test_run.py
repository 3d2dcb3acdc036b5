"""The flagship's whole way at the size `tiny`: run, report, resume, and what a report refuses."""

import dataclasses
import html
import re
import shutil
from pathlib import Path

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.newton.export import export_models
from benchmarks.newton.newton import STUDY
from benchmarks.newton.world_models import world_models
from orbits import laws
from orbits.runs import artefact, folder
from orbits.runs.cell import CELLS
from orbits.runs.folder import Existing
from symreg.leaderboard import published
from tests.benchmarks.newton.small import settings
from tests.benchmarks.runs import finished
from worldmodel.models.load import load_model

ROOT = Path(__file__).parents[3]
SHIFTS = ("planet_lighter",)
TINY = ("run", "newton", "--preset", "tiny", "--attention", "softmax")
TINY += ("--engine", "powerlaw", "--shifts", *SHIFTS, "--n-test", "40")
"""Of one variant; a search takes seconds a row, and the closed form goes the same way."""
SHORT = ("--pretrain-steps", "4", "--finetune-steps", "4", "--no-scratch")
"""Trainings of which no number is asked, but that they are there and are no good."""
RESUME = Existing(resume=True)


def run(out, *arguments):
    main([*TINY, "--executor", "here", "--out", str(out), *arguments])


def report(out, capsys):
    """Return the report as it is printed, in Markdown and as a page."""
    capsys.readouterr()
    main(["report", str(out), "--full"])
    return capsys.readouterr().out, (out / folder.MARKDOWN).read_text(), page(out)


def page(out):
    return html.unescape((out / folder.PAGE).read_text())


def measured(out):
    """Return what a run found, without what differs from run to run."""
    return [(x.cell, x.metrics, x.details.get("expression")) for x in folder.load(out)[0]]


def by_row(results, kind):
    return {(x.case.variant, x.case.arm): x for x in results if x.case.kind == kind}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    out = tmp_path_factory.mktemp("tiny") / "out"
    run(out)
    return out


@pytest.fixture
def copy(tiny, tmp_path):
    """Return a copy of the first run, for another run to start from."""
    return shutil.copytree(tiny, tmp_path / "out")


@pytest.fixture(scope="module")
def short(tmp_path_factory):
    out = tmp_path_factory.mktemp("short") / "out"
    run(out, *SHORT)
    return out


@pytest.fixture
def short_copy(short, tmp_path):
    """Return a copy of a run of hardly trained models, to be shown in another way."""
    return shutil.copytree(short, tmp_path / "out")


@pytest.mark.heavy
def test_the_whole_way_ends_in_a_report(tiny, capsys):
    results = finished(tiny)
    text, table, shown = report(tiny, capsys)
    assert "Outside its training box the best model" in text
    assert "softmax, pretrained, unlimited labels (one training)" in text
    assert "no claim, for want of 3 common seeds" in text
    assert shown.index("Does a model") < shown.index("no claim") < shown.index("within 0.02")
    assert shown.count("<figcaption>") == 9, (
        "two of the exam, four of a leaderboard, three of a run"
    )
    assert {path.stem for path in (tiny / folder.FIGURES).iterdir()} == {
        "exam",
        "exam_shifts",
        "force_vectors",
        "loss_curves",
        "magnitudes",
    }
    assert "://" not in shown.split("<h2>Provenance")[0], "the page must be self-contained"
    assert "C*m1*m2/r**2" in table
    exams = by_row(results, "exam")
    assert exams["causal ceiling", "control"].value("rms_log_error") < 0.5
    assert exams["true force", "control"].value("exam") < 1e-5
    assert exams["softmax", "scratch"].value("exam") > 2
    causal = exams["ceiling, causal", "control"]
    assert causal.metrics["exam"].interval == pytest.approx([1] * 3, rel=1e-5), "it is the unit"
    assert 0.5 < causal.value("exponent@planet_lighter") < 1.1
    assert causal.value("median_exam") < exams["softmax", "scratch"].value("median_exam")
    (line,) = [x for x in table.splitlines() if x.startswith("| ceiling, causal | control | - | 1")]
    assert "| of 1 |" not in line
    assert "The exam by medians" in shown
    forces = by_row(results, "forces")
    assert forces["ceiling, causal", "control"].value("r2_log") > 0.9
    truth = forces["true force", "control"]
    assert truth.value("r2_log") == pytest.approx(1.0)
    assert truth.value("constant") == pytest.approx(39.4784, rel=1e-4)
    scratch = forces["softmax", "scratch"]
    assert scratch.value("r2_log") > forces["softmax", "untrained + ridge"].value("r2_log")
    assert scratch.value("exponent_r") < -1
    assert by_row(results, "search")["true force", "control"].details["verdict"] == "law"
    pretraining = [x.value("val_nll") for x in results if x.case.kind == "world model"]
    assert all(nll < 9.0 for nll in pretraining), "below the uniform guess of 2 ln 128 = 9.70"
    assert "nats per point" in shown
    assert "Under the paper's protocol and Newton's law" in shown
    assert all(row.source in shown for row in published.ROWS)
    assert "learnt from" not in shown, "no label leaked"


@pytest.mark.heavy
def test_models_of_a_run_are_exported_and_answer_as_they_did(tiny, tmp_path, capsys):
    main(["export", str(tiny), "--out", str(tmp_path)])
    said, after = capsys.readouterr().out.splitlines()[-2:]
    assert said.startswith("2 models, ")
    assert after == f"next: python -m worldmodel probe {tmp_path / 'softmax-world-model-0'}"
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {"softmax-world-model-0", "softmax-head-0"}
    heads = [
        x for x in folder.load(tiny)[0] if (x.case.kind, x.case.arm) == ("forces", "pretrained")
    ]
    (made,) = heads
    ours = load_model(tmp_path / "softmax-head-0").state_dict()
    theirs = load_model(tiny / CELLS / made.cell / "last.ckpt").state_dict()
    assert all(torch.equal(ours[name], theirs[name]) for name in theirs)
    assert "fine-tuned on unlimited labelled" in (tmp_path / "softmax-head-0/README.md").read_text()
    with pytest.raises(FileExistsError, match="choose another folder"):
        export_models(tiny, tmp_path)


@pytest.mark.heavy
def test_world_models_stand_beside_references(tiny):
    table = world_models(folder.load(tiny)[0])
    rows = {row[0].text: row for row in table.rows}
    assert rows["softmax"][2].order < 9.0
    errors = {name: row[3].order for name, row in rows.items() if row[3].order is not None}
    assert errors["orbit fit"] == min(errors.values())
    names = {"softmax, untrained", "true orbit in bins", "cubic extrapolation"}
    names |= {"linear autoregression", "nearest training orbit"}
    assert len(errors) == 4, "a model and three references"
    assert names <= set(rows)
    assert rows["true orbit in bins"][5].order == pytest.approx(-2, abs=0.15)
    assert "| softmax | 1 | " in table.to_markdown()


@pytest.mark.heavy
def test_a_run_again_computes_nothing_and_other_settings_are_refused(copy, refusal):
    def written():
        return {path: path.stat().st_mtime_ns for path in copy.glob("cells/*/cell.json")}

    before = written()
    run(copy)
    assert written() == before
    error = refusal(run, copy, "--seeds", "0,1,2", alone=False)
    assert "different: seeds" in error
    assert "--resume" in error
    assert "--overwrite" in error


@pytest.mark.heavy
def test_an_edited_result_is_refused_by_name(copy, refusal):
    path = copy / folder.LINES
    path.write_bytes(path.read_bytes().replace(b'"value": 0', b'"value": 1', 1))
    assert "results.jsonl" in refusal(main, ["report", str(copy)])


@pytest.mark.parametrize("content", ["folder", "unfinished"])
def test_a_report_needs_a_finished_run(tmp_path, refusal, content):
    if content == "unfinished":
        folder.claim(tmp_path, STUDY.config(settings(), "small"), Existing())
    assert str(tmp_path) in refusal(main, ["report", str(tmp_path)])


@pytest.mark.full
@pytest.mark.usefixtures("undrawn")
def test_a_world_with_models_from_elsewhere(tmp_path, capsys):
    out = tmp_path / "out"
    run(out, "--law", "power_1_5", "--elsewhere", "newton", *SHORT, "--n-test", "20")
    text, table, shown = report(out, capsys)
    assert "softmax, pretrained on newton, unlimited labels (one training)" in text
    assert "softmax, trained on newton, 0 labels (one training)" in text
    assert "Rows trained on newton: their heads learnt from unlimited labels there" in text
    assert "Under the paper's protocol" in shown
    assert "law of the world / laws that formulas are" in table
    assert r"power\_1\_5 / power\_1\_5 1" in table, "found in the true force"
    assert "## newton" not in table
    assert "Newtonian observer, averaged over the past" in table


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_models_of_a_world_where_the_force_knows_the_planet_alone(short_copy, capsys):
    run(short_copy, "--elsewhere", "m1_over_r2", *SHORT, "--resume")
    results = finished(short_copy)
    text, table, _ = report(short_copy, capsys)
    assert "softmax, pretrained on m1_over_r2, unlimited labels (one training)" in text
    assert "softmax, trained on m1_over_r2, 0 labels (one training)" in text
    assert "m1_over_r2 observer" not in table, "motion gives it no mass"
    exams = by_row(results, "exam")
    assert exams["softmax", "trained on m1_over_r2"].value("exam") > 2
    elsewhere = by_row(results, "forces")["k-NN of m1_over_r2's world", "control"]
    assert elsewhere.value("exponent_m1") > 0.3 + elsewhere.value("exponent_m2")


@pytest.mark.slow
@pytest.mark.usefixtures("undrawn")
def test_a_world_where_masses_do_not_show_says_so(tmp_path, capsys):
    out = tmp_path / "out"
    run(out, "--law", "m1_over_r2", *SHORT, "--n-test", "20")
    results = finished(out)
    assert "Under m1_over_r2 paths show m1 / m2 and neither mass" in report(out, capsys)[0]
    forces, searches = by_row(results, "forces"), by_row(results, "search")
    ceiling = forces["ceiling", "control"]
    masses = [ceiling.value(f"exponent_{x}") for x in ("m1", "m2")]
    assert masses == pytest.approx([0.5, -0.5], abs=0.1)
    assert ceiling.value("r2_log") < 0.95
    assert searches["true force", "control"].details["verdict"] == "law"
    assert searches["ceiling", "control"].details["verdict"] != "law"
    assert by_row(results, "exam")["true force", "control"].value("exam") < 1e-5


@pytest.mark.full
@pytest.mark.usefixtures("undrawn")
def test_a_run_with_leaked_labels_says_so_wherever_it_is_shown(short_copy, capsys):
    run(short_copy, *SHORT, "--label-leak", "2", "--labels", "30", "--resume")
    results, manifest = folder.load(short_copy)
    assert all(result.ok for result in results)
    assert manifest["config"]["label_leak"] == 2
    text, table, shown = report(short_copy, capsys)
    for view, arm in ((text, "pretrained"), (table, "pretrained"), (shown, "pre-trained")):
        assert "2 labels of every scored sequence were learnt from" in view
        said = rf"[sS]oftmax, leaked labels, {arm}, 30 labels \(one training\)"
        assert re.search(said, view), "a sentence of the page begins with a capital letter"
        assert not re.search("[sS]oftmax, pre-?trained", view)
    assert "## newton, protocol identifiable, 2 leaked labels per test sequence" in table
    assert "## newton, protocol identifiable\n" not in table


@pytest.mark.full
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize(("law", "compared"), [("harmonic", True), ("yukawa", False)])
def test_a_report_names_the_law_and_compares_constants_only_of_power_laws(
    short_copy, capsys, law, compared
):
    results, _ = folder.load(short_copy)
    folder.claim(short_copy, STUDY.config(settings("tiny", law=law), "tiny"), RESUME)
    cases = [dataclasses.replace(result.case, law=law) for result in results]
    folder.save(
        short_copy,
        [dataclasses.replace(x, case=case) for x, case in zip(results, cases, strict=True)],
    )
    for path in short_copy.glob(f"{CELLS}/*/predictions.npz"):  # the true force is that of the law
        arrays, record = artefact.load_arrays(path)
        force = laws.get(law).magnitude(arrays["r"], arrays["m1"], arrays["m2"])
        arrays["force_vector"] *= (force / arrays["force"])[:, None]
        arrays["force"] = force
        artefact.save_arrays(path, arrays, record)
    text, _, shown = report(short_copy, capsys)
    assert f"{law}, protocol identifiable" in text
    assert ("% from the law's" in text) == compared
    assert f"True law: {law}, F = " in shown
    assert ("length = 20 AU" in shown) == (law == "yukawa")


@pytest.mark.full
@pytest.mark.usefixtures("undrawn")
@pytest.mark.parametrize("kind", ["world model", "forces", "search"])
def test_a_failed_cell_stays_in_the_report(short_copy, kind, capsys):
    results, _ = folder.load(short_copy)
    place = next(i for i, result in enumerate(results) if result.case.kind == kind)
    results[place] = dataclasses.replace(
        results[place],
        status="failed",
        error="ValueError: no such orbit",
        metrics={},
        details={},
        files={},
    )
    folder.save(short_copy, results)
    views = report(short_copy, capsys)
    assert all("no such orbit" in view for view in views)
    if kind == "search":
        assert "| 0/1 all failed [0.00, 0.79], 1 failed |" in views[1]
