"""The downstream study: what it refuses, what its cells depend on, and the numbers it keeps."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from benchmarks.__main__ import main
from benchmarks.language.downstream import METRICS, STUDY
from benchmarks.language.downstream_cells import evaluate_task
from benchmarks.language.zero_shot import evaluation
from benchmarks.published import tables as published
from orbits.runs import artefact, cell, study
from orbits.runs.cell import Skipped
from orbits.runs.executors import Execution

TINY = STUDY.settings("tiny")
HERE = Execution("here")
COLUMNS = {
    "arc_easy": ("acc_norm", "acc"),
    "arc_challenge": ("acc_norm", "acc_n"),
    "hellaswag": ("acc_norm", "acc_n"),
    "piqa": ("acc_norm", "acc"),
    "mmlu": ("acc",),
    "sciq": ("acc_norm",),
    "winogrande": ("acc",),
    "social_iqa": ("acc",),
    "boolq": ("acc",),
    "lambada_openai": ("acc", "ppl"),
    "wikitext": ("ppl",),
    "summscreen": ("rouge1",),
}


@pytest.fixture
def checkpoint(uniform_checkpoint, tmp_path):
    """Return the uniform model with the length of its training windows, as training saves it."""
    saved = torch.load(uniform_checkpoint, weights_only=True)
    path = tmp_path / "model.ckpt"
    torch.save({**saved, "datamodule_hyper_parameters": {"seq_len": 12}}, path)
    return path


@pytest.fixture
def scrolls(tmp_path):
    path = tmp_path / "validation.jsonl"
    row = {"id": "fd_1", "pid": "fd_1_0", "input": "Ann: Hi.", "output": "a talk"}
    path.write_text(json.dumps(row), "utf-8")
    return path


def settings(checkpoint, *names, **more):
    more = {name: str(path) for name, path in more.items()}
    return replace(TINY, limit=None, checkpoints=(str(checkpoint),), tasks=names, **more)


def test_metrics_are_the_columns_of_the_papers():
    assert set(METRICS) == {f"{m}@{task}" for task, known in COLUMNS.items() for m in known}
    columns = {
        column.name: column.direction
        for name in STUDY.published
        for table in published.tables(name)
        for column in table.metrics
        if column.name != "acc@average"
    }
    assert {name: metric.direction for name, metric in METRICS.items()} == columns
    units = {name: metric.unit for name, metric in METRICS.items()}
    perplexities = {name for name, unit in units.items() if unit == "perplexity"}
    assert perplexities == {"ppl@lambada_openai", "ppl@wikitext"}
    assert {units[name] for name in units.keys() - perplexities} == {"%"}


def test_acc_n_and_acc_norm_are_two_metrics():
    for task in ("hellaswag", "arc_challenge"):
        adjusted, normalised = (STUDY.quantity(f"{m}@{task}").about for m in ("acc_n", "acc_norm"))
        assert "per character" in normalised
        assert normalised.endswith("a column of LSSAR")
        assert "chance is 0" in adjusted
        assert "columns acc_n are taken to be this" in adjusted
        assert adjusted.endswith("a column of Lazy Attention")
    assert STUDY.quantity("acc@lambada_openai").about.endswith("of LSSAR and Lazy Attention")


@pytest.mark.parametrize(
    ("changes", "error", "message"),
    [
        ({"limit": 0}, ValueError, "limit must be at least 1, got 0"),
        ({"tasks": ()}, ValueError, "tasks must not be empty"),
        ({"tasks": ("piqa", "sciq", "piqa")}, ValueError, "duplicate piqa in tasks; keep one"),
        ({"scrolls": "."}, FileNotFoundError, r"\.: no such file"),
        ({"include_path": __file__}, FileNotFoundError, "no such folder of tasks"),
    ],
)
def test_bad_settings_are_refused(changes, error, message):
    with pytest.raises(error, match=message):
        replace(TINY, **changes)


def test_cells_refuse_what_would_fail_after_training(scrolls, monkeypatch):
    import importlib.util

    pytest.importorskip("rouge_score", reason="needs rouge-score: pip install -e '.[eval]'")
    bad = scrolls.with_name("bad.jsonl")
    bad.write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="line 1: not a JSON object"):
        STUDY.cells(replace(TINY, tasks=("summscreen",), scrolls=str(bad)))
    from benchmarks.language.zero_shot import harness

    def index(names, include_path):
        assert names == ["arc_esy"]
        raise ValueError("unknown task")

    monkeypatch.setattr(harness, "index", index)
    with pytest.raises(ValueError, match="unknown task"):
        STUDY.cells(replace(TINY, tasks=("arc_easy", "arc_esy")))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name, package in (("arc_easy", "lm_eval"), ("summscreen", "rouge_score")):
        with pytest.raises(ValueError, match=f"need the package {package}: pip install"):
            STUDY.cells(replace(TINY, tasks=(name,)))


def test_addresses_follow_the_content_of_the_users_files(checkpoint, scrolls, tmp_path):
    pytest.importorskip("lm_eval", reason="needs lm_eval: pip install -e '.[eval]'")
    folder = tmp_path / "tasks"
    files = [folder / name for name in ("a/t.yaml", "b/t.yaml", "prompt")]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"test: {path}\n", "utf-8")

    def keys(**changes):
        given = {"include_path": folder, "scrolls": scrolls, **changes}
        arc, summscreen = STUDY.cells(settings(checkpoint, "arc_easy", "summscreen", **given))
        return arc.key, summscreen.key

    before = keys()
    shutil.copytree(folder, tmp_path / "moved")
    assert keys(include_path=tmp_path / "moved") == before
    assert keys(scrolls=shutil.copy(scrolls, tmp_path / "moved.jsonl")) == before
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "functions.pyc").write_bytes(b"compiled")
    assert keys() == before
    for path in files:
        kept = path.read_text("utf-8")
        path.write_text(f"{kept}# changed", "utf-8")
        now = keys()
        assert now[0] != before[0]
        assert now[1] == before[1], "SummScreen does not read them"
        path.write_text(kept, "utf-8")
    assert keys() == before
    scrolls.write_text(f"{scrolls.read_text('utf-8')}\n", "utf-8")
    now = keys()
    assert now[0] == before[0], "only SummScreen reads the transcripts"
    assert now[1] != before[1]


def test_files_are_hashed_once_for_all_models_and_tasks(local_tasks, tmp_path, monkeypatch):
    folder = shutil.copytree(local_tasks, tmp_path / "tasks")  # which no test has read
    hashed, sha256 = [], artefact.sha256
    monkeypatch.setattr(artefact, "sha256", lambda path: hashed.append(path) or sha256(path))
    names = ("local_choice", "local_pages", "local_group")
    found = STUDY.cells(replace(TINY, tasks=names, include_path=str(folder), seeds=(0, 1)))
    evaluations = [each for each in found if each.function is evaluate_task]
    assert len({each.key for each in evaluations}) == 2 * 2 * 3
    assert sorted(hashed) == sorted(folder.iterdir())


def values(result):
    return {name: metric.value for name, metric in result.metrics.items()}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_is_evaluated(checkpoint, local_tasks, scrolls, tmp_path, monkeypatch):
    pytest.importorskip("rouge_score", reason="needs rouge-score: pip install -e '.[eval]'")
    monkeypatch.setattr(evaluation, "reachable", lambda address: False)
    names = ("local_choice", "local_pages", "local_last_word", "wikitext", "summscreen")
    chosen = settings(checkpoint, *names, "local_away", include_path=local_tasks, scrolls=scrolls)
    results = study.run(STUDY, chosen, tmp_path / "out", HERE)
    *found, away = results
    assert [(result.status, result.error) for result in found] == [("ok", None)] * len(names)
    choice, pages, last, wikitext, summscreen = found

    # By hand in zero_shot/test_evaluation.py, there as shares: accuracies are per cent here.
    assert values(choice) == pytest.approx(
        {"acc@local_choice": 40, "acc_norm@local_choice": 60, "acc_n@local_choice": 10}
    )
    accuracy = choice.metrics["acc@local_choice"]
    assert (accuracy.n, accuracy.direction, accuracy.unit) == (5, "higher", "%")
    assert accuracy.stderr == pytest.approx(100 * (0.4 * 0.6 / 4) ** 0.5)
    perplexities = {"byte_perplexity": 257, "word_perplexity": 257 ** (15 / 3)}
    assert values(pages) == pytest.approx(
        {f"{name}@local_pages": value for name, value in perplexities.items()}, rel=1e-4
    )
    assert pages.metrics["byte_perplexity@local_pages"].direction == "lower", "as the harness says"
    assert values(last) == pytest.approx(
        {"perplexity@local_last_word": 257**3, "acc@local_last_word": 0}, rel=1e-4
    )
    # Of a task of the papers, their columns alone and by their names.
    assert values(wikitext) == pytest.approx({"ppl@wikitext": 257 ** (15 / 3)}, rel=1e-4)
    assert wikitext.metrics["ppl@wikitext"].unit == "perplexity"
    assert values(summscreen) == {"rouge1@summscreen": 0}

    assert away.status == "skipped"
    assert "nobody/such-data" in away.error
    assert away.metrics == {}
    assert (away.case.kind, away.case.get("task")) == ("measurement", "local_away")

    assert choice.manifest["inputs"]["model"] == artefact.sha256(checkpoint)
    assert choice.details["harness"] == {"version": "3.0", "requests": 15, "truncated": 15}
    (table,) = STUDY.tables(results)
    assert table.title.endswith("acc, acc_norm, acc_n, rouge1 in %")
    headings = [column.heading for column in table.columns]
    row = dict(zip(headings, (value.text for value in table.rows[0]), strict=True))
    assert row["variant"] == str(checkpoint)
    assert row["acc@local_choice"] == "40.0"
    assert len(STUDY.figures(results, tmp_path)) == len(names)


@pytest.mark.filterwarnings("ignore")
def test_a_task_out_of_reach_is_skipped(checkpoint, local_tasks, monkeypatch):
    monkeypatch.setattr(evaluation, "reachable", lambda address: False)
    with pytest.raises(Skipped, match="nobody/such-data"):
        evaluate_task("local_away", None, checkpoint, include_path=local_tasks)


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_a_run_without_a_network_reports_what_it_skipped(
    checkpoint, local_tasks, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(evaluation, "reachable", lambda address: False)
    out = tmp_path / "out"
    given = ["--tasks", "local_away", "--include-path", str(local_tasks), "--executor", "here"]
    main(["run", "downstream", "--checkpoints", str(checkpoint), *given, "--out", str(out)])
    said = capsys.readouterr().out
    assert "1 cell, 0 failed, 1 skipped" in said
    assert "nobody/such-data" in said
    main(["report", str(out)])
    assert "- skipped: " in (out / "report.md").read_text()
    assert "skipped: " in (out / "report.html").read_text()


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_trained_models_are_evaluated(local_tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(evaluation, "reachable", lambda address: False)
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be; " * 1000, "utf-8")
    chosen = replace(
        TINY, attention=("lssar",), seeds=(3,), steps=2, path=str(text), tasks=("local_choice",),
        include_path=str(local_tasks), limit=4,
    )  # fmt: skip
    training, evaluated = STUDY.cells(chosen)
    assert (training.case.kind, evaluated.needs) == ("training", {"model": training})
    assert cell.succeeded(cell.compute(training, tmp_path))
    assert cell.succeeded(cell.compute(evaluated, tmp_path))
    (result,) = evaluated.results(tmp_path)
    assert (result.case.seed, result.case.get("task")) == (3, "local_choice")
    assert {metric.n for metric in result.metrics.values()} == {4}
    assert values(result)["acc@local_choice"] in (0, 25, 50, 75, 100), "a share of 4, in %"
