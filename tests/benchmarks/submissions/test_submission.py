"""Submissions: what is asked has no answers, and what is wrong with an answer is one line."""

import json

import numpy as np
import pytest
import yaml

from benchmarks.__main__ import main
from benchmarks.newton.exam_rows import Exam, ExamRow
from benchmarks.submissions import report, sheet, submission
from benchmarks.submissions.submissions import STUDY
from orbits.runs.statistics import Interval
from worldmodel.data.orbits import OrbitData
from worldmodel.models.predictions import read_rows

SEED = 2**40 + 321


@pytest.fixture
def key(tmp_path):
    path = tmp_path / "key.json"
    plain = {"protocol": "identifiable", "law": "newton", "n_test": 12}
    path.write_text(json.dumps({"schema": 1, **plain, "seed": SEED, "held_back": True}))
    return path


def true_forces(exam, part):
    batch = exam.parts[part].batch(exam.seed, "test", np.arange(exam.n_test), "force")
    rows = [1 + 2 * step for step in exam.steps]
    return np.linalg.norm(batch["force"][:, rows], axis=-1)


def submit(folder, exam, factor=1.0, **changes):
    folder.mkdir()
    ids, steps = np.meshgrid(np.arange(exam.n_test), exam.steps, indexing="ij")
    for part in exam.parts:
        force = factor * true_forces(exam, part)
        columns = {"sequence_id": ids, "step": steps, "force_predicted": force}
        np.savez(folder / f"{part}.npz", **{name: x.ravel() for name, x in columns.items()})
    card = {
        "name": folder.name,
        "authors": ["A. Nyone"],
        "url": "https://example.org",
        "parameters": 3,
        "training_data": "none",
        "signature": exam.signature,
        **changes,
    }
    (folder / "card.yaml").write_text(yaml.safe_dump(card))
    return folder


def test_the_sheet_tells_neither_a_force_nor_a_held_back_seed(key, tmp_path):
    exam = sheet.read_key(key)
    signature = sheet.write_sheet(exam, tmp_path / "asked")
    for file in (tmp_path / "asked").iterdir():
        assert str(SEED).encode() not in file.read_bytes(), file
    with np.load(tmp_path / "asked" / "closer.npz") as arrays:
        assert set(arrays) == {"tokens", "time_step", "places"}
        assert arrays["places"].shape == (12, 24, 2, 2)
    told = json.loads((tmp_path / "asked" / "exam.json").read_text())
    assert told["signature"] == signature
    assert "seed" not in told
    other = sheet.Exam("identifiable", "newton", 12, SEED + 1, True)
    assert other.signature != signature


def test_what_is_asked_is_what_models_of_the_suite_are_asked(key):
    exam = sheet.read_key(key)
    batch = next(iter(OrbitData(**exam.data("closer")).test_dataloader()))
    rows = read_rows(batch)[0].nonzero()[:, 0].tolist()
    assert [(row - 1) // 2 for row in rows] == exam.steps
    np.testing.assert_array_equal(batch["tokens"].numpy(), exam.tokens["closer"])


def test_answers_are_read_in_the_order_of_the_questions(key, tmp_path):
    exam = sheet.read_key(key)
    found = submission.read(submit(tmp_path / "model", exam), exam)
    path = found.files["box"]
    with np.load(path) as arrays:
        shuffled = np.random.default_rng(0).permutation(len(arrays["step"]))
        np.savez(path, **{name: array[shuffled] for name, array in arrays.items()})
    answers = submission.read_answers(found, exam)
    np.testing.assert_array_equal(answers["box"], true_forces(exam, "box"))


def spoil(change):
    def spoiled(folder):
        with np.load(folder / "closer.npz") as arrays:
            columns = dict(arrays)
        change(columns)
        np.savez(folder / "closer.npz", **columns)

    return spoiled


WRONG = {
    "not finite": (spoil(lambda c: c["force_predicted"].__setitem__(5, np.nan)), r"17\) .*cted$"),
    "text": (spoil(lambda c: c.update(force_predicted=c["step"].astype(str))), "got <U"),
    "missing": (spoil(lambda c: c.update({k: v[:-2] for k, v in c.items()})), "2 of 144"),
    "not asked": (spoil(lambda c: c["step"].__setitem__(3, 4)), "not asked"),
    "twice": (spoil(lambda c: c["step"].__setitem__(1, 12)), "more than once"),
    "no column": (spoil(lambda c: c.pop("step")), "no column step"),
    "half a step": (spoil(lambda c: c.update(step=c["step"] + 0.5)), "whole numbers"),
    "no file": (lambda folder: (folder / "half_step.npz").unlink(), "found none"),
    "no card": (lambda folder: (folder / "card.yaml").unlink(), "no card"),
    "two files": (lambda folder: (folder / "box.csv").write_text("step\n"), "box.npz and box.csv"),
}


@pytest.mark.parametrize(("change", "words"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_with_answers_is_one_line(key, tmp_path, change, words):
    exam = sheet.read_key(key)
    folder = submit(tmp_path / "model", exam)
    change(folder)
    with pytest.raises((ValueError, FileNotFoundError), match=words) as raised:
        submission.read_answers(submission.read(folder, exam), exam)
    assert "\n" not in str(raised.value)
    assert str(folder) in str(raised.value)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"url": "javascript:alert(1)"}, "https://"),
        ({"name": "ceiling, causal"}, "control"),
        ({"name": "Log-linear Filter"}, "like that of a control"),
        ({"name": "<b>" * 40}, "80 characters"),
        ({"parameters": "many"}, "whole number.* got 'many'"),
        ({"parameters": [["x"]]}, "whole number.* got list"),
        ({"score": 0.1}, "unknown field"),
        ({"authors": []}, "authors"),
        ({"training_data": "a\x1b[31m"}, "do not print"),
        ({"signature": "0" * 64}, "not that of"),
    ],
)
def test_what_is_wrong_with_a_card_is_one_line(key, tmp_path, changes, words):
    exam = sheet.read_key(key)
    folder = submit(tmp_path / "model", exam, **changes)
    with pytest.raises(ValueError, match=words):
        submission.check_signature(submission.read(folder, exam), exam, exam.signature)


@pytest.mark.parametrize(
    "text",
    ["parameters: 1" + 200 * ":00" + ".0", "name: !!bool foo", "parameters: !!int ''",
     "name: !!timestamp x", "training_data: 2024-02-30"],
    ids=["sexagesimal", "bool", "int", "timestamp", "date"],
)  # fmt: skip
def test_yaml_without_a_value_is_refused(tmp_path, text):
    (tmp_path / "card.yaml").write_text(text)
    with pytest.raises(ValueError, match=r"card\.yaml is not YAML or JSON"):
        submission.read_card(tmp_path)


def test_yaml_that_grows_is_refused(tmp_path):
    """Nine aliases of nine aliases, and so on, would be gigabytes by the tenth line."""
    (tmp_path / "card.yaml").write_text("a: &a x\nb: [*a, *a]\n")
    with pytest.raises(ValueError, match=r"card\.yaml has an alias"):
        submission.read_card(tmp_path)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"held_back": False}, "is no held-back exam: its sheet tells the seed"),
        ({"seed": 77}, "the seed of a held-back exam must be at least 4294967296"),
    ],
)
def test_a_key_whose_seed_can_be_told_is_refused(key, tmp_path, refusal, changes, words):
    record = {**json.loads(key.read_text()), **changes}
    key.write_text(json.dumps(record))
    out = tmp_path / "questions"
    assert words in refusal(main, ["questions", str(out), "--key", str(key)])
    assert not out.exists()


def test_a_key_that_is_given_away_is_refused(tmp_path, refusal):
    out = tmp_path / "asked"
    assert "give away" in refusal(main, ["questions", str(out), "--key", str(out / "key.json")])
    assert not out.exists()


def test_the_old_name_of_the_questions_names_the_new_one(tmp_path, refusal):
    words = refusal(main, ["exam", str(tmp_path / "asked")])
    assert "python -m benchmarks questions OUT" in words
    assert not (tmp_path / "asked").exists()


def row(variant, score, arm="submission", labels="-"):
    times = {"closer": Interval(*score)}
    return ExamRow(variant, arm, labels, 0, 0, Interval(*score), None, times, {}, {})


def test_a_row_that_knows_more_than_its_past_is_named_and_wins_nothing():
    rows = [
        row("table of answers", (0.0, 0.0, 0.1)),
        row("honest", (9.0, 8.0, 10.0)),
        row("log-linear filter", (9.5, 9.0, 10.5), "control", "1000"),
        row("spline on the true state", (2.0, 1.9, 2.1), "control", "1000"),
    ]
    assert "table of answers" in " ".join(report.suspicions(rows))
    (said,) = report.verdict(Exam(rows))
    assert said.startswith("Outside the training box honest, the one submission")
    assert "no difference is shown" in said
    assert [x.variant for x in report.ranked(rows)][-1] == "spline on the true state"
    assert "No verdict" in report.verdict(Exam(rows[:1]))[0]


@pytest.mark.full
def test_a_run_scores_answers_itself_and_tells_no_seed(key, tmp_path, capsys):
    exam, out = sheet.read_key(key), tmp_path / "out"
    folders = [submit(tmp_path / "right", exam), submit(tmp_path / "tenth", exam, 1.1)]
    options = ["--key", str(key), "--preset", "tiny", "--workers", "1", "--out", str(out)]
    main(["run", "submissions", *map(str, folders), *options])
    results = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
    rows = {each["variant"]: each["metrics"] for each in results}
    assert rows["ceiling, causal"]["exam"]["value"] == pytest.approx(1)
    assert rows["right"]["exam"]["value"] < 1e-3
    unit = rows["causal ceiling"]["rms_log_error@closer"]["value"]
    assert rows["tenth"]["times_ceiling@closer"]["value"] == pytest.approx(
        np.log(1.1) / unit, rel=1e-3
    )
    for file in out.rglob("*"):
        assert not file.is_file() or str(SEED).encode() not in file.read_bytes(), file
    main(["report", str(out), "--quiet"])
    page = (out / "report.html").read_text()
    assert "right errs less than an orbit fit" in page
    assert str(SEED) not in page
    main(["site", str(tmp_path / "site"), str(out), "--only"])
    index = (tmp_path / "site" / "index.html").read_text()
    assert 'href="out.html"' in index
    assert "Not checked, because no file shows it" in index


def test_a_baseline_that_there_is_not_is_refused_with_the_settings():
    with pytest.raises(ValueError, match="unknown baseline 'knn'"):
        STUDY.settings("small", baselines=("knn",))
