"""The downstream task: what it refuses, what its cells depend on, and the numbers it keeps."""

import json
import shutil
from dataclasses import replace

import pytest
import torch

from benchmarks import published
from benchmarks.__main__ import main
from benchmarks.downstream import hub
from benchmarks.tasks.downstream import TASK
from orbits import artefacts
from symreg import cells
from symreg.cells import Skipped

TINY = TASK.presets["tiny"]
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


def asking(checkpoint, *names, **more):
    more = {name: str(path) for name, path in more.items()}
    return replace(TINY, limit=None, checkpoints=(str(checkpoint),), tasks=names, **more)


def test_metrics_are_the_columns_of_the_papers():
    assert set(TASK.metrics) == {f"{m}@{task}" for task, known in COLUMNS.items() for m in known}
    columns = {
        column.name: column.direction
        for name in TASK.published
        for table in published.tables(name)
        for column in table.metrics
        if column.name != "acc@average"
    }
    assert {name: metric.direction for name, metric in TASK.metrics.items()} == columns
    units = {name: metric.unit for name, metric in TASK.metrics.items()}
    perplexities = {name for name, unit in units.items() if unit == "perplexity"}
    assert perplexities == {"ppl@lambada_openai", "ppl@wikitext"}
    assert {units[name] for name in units.keys() - perplexities} == {"%"}


def test_acc_n_and_acc_norm_are_two_metrics():
    for task in ("hellaswag", "arc_challenge"):
        adjusted, normalised = (TASK.metric(f"{m}@{task}").about for m in ("acc_n", "acc_norm"))
        assert "per character" in normalised
        assert normalised.endswith("a column of LSSAR")
        assert "chance is 0" in adjusted
        assert "columns acc_n are taken to be this" in adjusted
        assert adjusted.endswith("a column of Lazy Attention")
    assert TASK.metric("acc@lambada_openai").about.endswith("of LSSAR and Lazy Attention")


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

    pytest.importorskip("rouge_score", reason="needs rouge-score: pip install 'orrery[eval]'")
    bad = scrolls.with_name("bad.jsonl")
    bad.write_text("{}", "utf-8")
    with pytest.raises(ValueError, match="line 1: not a JSON object"):
        TASK.cells(replace(TINY, tasks=("summscreen",), scrolls=str(bad)))
    from benchmarks.downstream import harness

    def index(names, include_path):
        assert names == ["arc_esy"]
        raise ValueError("unknown task")

    monkeypatch.setattr(harness, "index", index)
    with pytest.raises(ValueError, match="unknown task"):
        TASK.cells(replace(TINY, tasks=("arc_easy", "arc_esy")))
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for name, package in (("arc_easy", "lm_eval"), ("summscreen", "rouge_score")):
        with pytest.raises(ValueError, match=f"need the package {package}: pip install"):
            TASK.cells(replace(TINY, tasks=(name,)))


def test_addresses_follow_the_content_of_the_users_files(checkpoint, scrolls, tmp_path):
    pytest.importorskip("lm_eval", reason="needs lm_eval: pip install 'orrery[eval]'")
    folder = tmp_path / "tasks"
    files = [folder / name for name in ("a/t.yaml", "b/t.yaml", "prompt")]
    for path in files:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"test: {path}\n", "utf-8")

    def keys(**changes):
        given = {"include_path": folder, "scrolls": scrolls, **changes}
        arc, summscreen = TASK.cells(asking(checkpoint, "arc_easy", "summscreen", **given))
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


def test_files_are_hashed_once_for_all_models_and_tasks(local_tasks, monkeypatch):
    hashed, sha256 = [], artefacts.sha256
    monkeypatch.setattr(artefacts, "sha256", lambda path: hashed.append(path) or sha256(path))
    names = ("local_choice", "local_pages", "local_group")
    several = replace(TINY, tasks=names, include_path=str(local_tasks), seeds=(0, 1))
    found = TASK.cells(several)
    assert len([cell for cell in found if cell.kind == "evaluate"]) == 2 * 2 * 3
    assert sorted(hashed) == sorted(local_tasks.iterdir())


def compute(cell, out):
    return cells.compute_cell(TASK.compute()[cell.kind], cell, out, lambda done, n: None)["line"]


def values(line):
    return {name: found["value"] for name, found in line["metrics"].items()}


@pytest.mark.filterwarnings("ignore")
def test_a_checkpoint_is_asked(checkpoint, local_tasks, scrolls, tmp_path, monkeypatch):
    pytest.importorskip("rouge_score", reason="needs rouge-score: pip install 'orrery[eval]'")
    monkeypatch.setattr(hub, "reachable", lambda address: False)
    names = ("local_choice", "local_pages", "local_last_word", "wikitext", "summscreen")
    settings = asking(checkpoint, *names, "local_away", include_path=local_tasks, scrolls=scrolls)
    asked = TASK.cells(settings)
    lines = [compute(cell, tmp_path) for cell in asked]
    *found, away = lines
    assert [(line["status"], line["error"]) for line in found] == [("ok", None)] * len(names)
    choice, pages, last, wikitext, summscreen = found

    # By hand in test_downstream.py, there as shares: accuracies are per cent here.
    assert values(choice) == pytest.approx(
        {"acc@local_choice": 40, "acc_norm@local_choice": 60, "acc_n@local_choice": 10}
    )
    accuracy = choice["metrics"]["acc@local_choice"]
    assert (accuracy["n"], accuracy["direction"]) == (5, "higher")
    assert accuracy["stderr"] == pytest.approx(100 * (0.4 * 0.6 / 4) ** 0.5)
    perplexities = {"byte_perplexity": 257, "word_perplexity": 257 ** (15 / 3)}
    assert values(pages) == pytest.approx(
        {f"{name}@local_pages": value for name, value in perplexities.items()}, rel=1e-4
    )
    assert values(last) == pytest.approx(
        {"perplexity@local_last_word": 257**3, "acc@local_last_word": 0}, rel=1e-4
    )
    # Of a task of the papers, their columns alone and by their names.
    assert values(wikitext) == pytest.approx({"ppl@wikitext": 257 ** (15 / 3)}, rel=1e-4)
    assert TASK.metric("ppl@wikitext").unit == "perplexity"
    assert values(summscreen) == {"rouge1@summscreen": 0}

    assert away["status"] == "skipped"
    assert "nobody/such-data" in away["error"]
    assert away["metrics"] == {}
    assert (away["kind"], away["row"]["asked"]) == ("measurement", "local_away")

    assert choice["manifest"]["inputs"] == {"model": artefacts.sha256(checkpoint)}
    assert choice["harness"] == {"version": "3.0", "requests": 15, "truncated": 15}
    (table,) = TASK.tables(lines)
    assert table.title.endswith("acc, acc_norm, acc_n, rouge1 in %")
    row = dict(zip(*table.cells, strict=True))
    assert row["model"] == str(checkpoint)
    assert row["acc@local_choice"] == "40.000 (1 seed)"
    assert len(TASK.draw(lines, tmp_path)) == len(names)


@pytest.mark.filterwarnings("ignore")
def test_a_skipped_task_ends_before_its_manifest(checkpoint, local_tasks, tmp_path, monkeypatch):
    import orbits.manifest

    monkeypatch.setattr(hub, "reachable", lambda address: False)
    monkeypatch.setattr(orbits.manifest, "manifest", lambda *a, **k: pytest.fail("made too early"))
    (cell,) = TASK.cells(asking(checkpoint, "local_away", include_path=local_tasks))
    with pytest.raises(Skipped, match="nobody/such-data"):
        TASK.evaluate(dict(cell.config), tmp_path, dict(cell.inputs), lambda done, n: None)


@pytest.mark.filterwarnings("ignore")
def test_a_run_without_a_network_reports_what_it_skipped(
    checkpoint, local_tasks, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(hub, "reachable", lambda address: False)
    out = tmp_path / "out"
    asked = ["--tasks", "local_away", "--include-path", str(local_tasks), "--jobs", "1"]
    main(["run", "downstream", "--checkpoints", str(checkpoint), *asked, "--out", str(out)])
    said = capsys.readouterr().out
    assert "1 cells, 0 failed, 1 skipped" in said
    assert "nobody/such-data" in said
    main(["report", str(out)])
    assert "- skipped: " in (out / "report.md").read_text()
    assert "skipped: " in (out / "report.html").read_text()


@pytest.mark.filterwarnings("ignore")
def test_trained_models_are_asked(local_tasks, tmp_path, monkeypatch):
    monkeypatch.setattr(hub, "reachable", lambda address: False)
    text = tmp_path / "text.txt"
    text.write_text("to be or not to be; " * 1000, "utf-8")
    settings = replace(
        TINY, attentions=("lssar",), exponents=(), seeds=(3,), steps=2, path=str(text),
        tasks=("local_choice",), include_path=str(local_tasks), limit=4,
    )  # fmt: skip
    training, asked = TASK.cells(settings)
    assert (training.kind, asked.needs) == ("language_model", {"model": training})
    assert compute(training, tmp_path)["status"] == "ok"
    line = compute(asked, tmp_path)
    assert (line["status"], line["error"]) == ("ok", None)
    assert (line["seed"], line["row"]["asked"]) == (3, "local_choice")
    assert {found["n"] for found in line["metrics"].values()} == {4}
    assert values(line)["acc@local_choice"] in (0, 25, 50, 75, 100), "a share of 4, in %"
