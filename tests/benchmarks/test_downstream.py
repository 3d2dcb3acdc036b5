"""Downstream evaluation end to end on local tasks, and its metrics by hand."""

import http.server
import json
import os
import socket
import threading

import pytest

from benchmarks.downstream import catalogue, check, evaluate, hub
from benchmarks.downstream.chance import baseline_accuracy, chance_adjusted


def test_acc_n_by_hand():
    assert chance_adjusted(0.4, 0.25) == pytest.approx(0.2)
    assert chance_adjusted(0.25, 0.25) == 0
    assert chance_adjusted(1.0, 0.62) == 1
    assert chance_adjusted(0.0, 0.5) == -1
    with pytest.raises(ValueError, match=r"the baseline must be in \[0, 1\), got 1"):
        chance_adjusted(0.5, 1.0)


def test_baselines_by_hand():
    assert baseline_accuracy("chance", [4, 4, 2], ["0", "1", "0"]) == pytest.approx(1 / 3)
    assert baseline_accuracy("majority", [2, 2, 2, 2], ["1", "1", "0", "1"]) == 0.75
    with pytest.raises(ValueError, match="at least one question"):
        baseline_accuracy("chance", [], [])


def test_every_task_of_the_papers_is_listed_with_its_metric():
    lssar = {task.name: task.lssar for task in catalogue.TASKS if task.lssar}
    lazy = {task.name: task.lazy for task in catalogue.TASKS if task.lazy}
    normalised = ("arc_easy", "arc_challenge", "hellaswag", "piqa", "sciq")
    assert {name for name, metrics in lssar.items() if "acc_norm" in metrics} == set(normalised)
    assert {name for name, metrics in lazy.items() if "acc_n" in metrics} == {
        "hellaswag", "arc_challenge",
    }  # fmt: skip
    assert (len(lssar), len(lazy)) == (8, 9)
    assert catalogue.get("boolq").baseline == "majority"
    assert catalogue.get("a local task").baseline == "chance"


def server(code):
    class Handler(http.server.BaseHTTPRequestHandler):
        def do_HEAD(self):
            self.send_response(code)
            self.end_headers()

        def log_message(self, *arguments):
            pass

    return http.server.HTTPServer(("127.0.0.1", 0), Handler)


@pytest.mark.parametrize("code", [200, 404, 503])
def test_a_hub_that_answers_is_reachable(code):
    with server(code) as running:
        threading.Thread(target=running.handle_request, daemon=True).start()
        assert hub.reachable(f"http://127.0.0.1:{running.server_port}", seconds=600)
    assert not hub.reachable(f"http://127.0.0.1:{running.server_port}", seconds=2)


def values(record):
    return {name: metric["value"] for name, metric in record["metrics"].items()}


@pytest.mark.filterwarnings("ignore")
def test_local_tasks_end_to_end(uniform_checkpoint, local_tasks, tmp_path, monkeypatch):
    from datasets import config

    monkeypatch.setattr(hub, "reachable", lambda address: False)
    summaries = [
        {"id": i, "pid": i, "input": "Ann: Hi.", "output": "a talk"} for i in ("fd_1", "fd_2")
    ]
    scrolls = tmp_path / "validation.jsonl"
    scrolls.write_text("\n".join(map(json.dumps, summaries)), "utf-8")
    names = ["local_choice", "local_pages", "local_last_word", "local_away", "summscreen"]
    monkeypatch.delenv("DISABLE_MULTIPROC", raising=False)
    known = config.HF_HUB_OFFLINE
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the hub was asked"))
    arguments = {"include_path": local_tasks, "device": "cpu", "max_length": 12, "scrolls": scrolls}
    found = evaluate(uniform_checkpoint, names, **arguments)["tasks"]
    assert known == config.HF_HUB_OFFLINE
    assert "DISABLE_MULTIPROC" not in os.environ

    choice = found["local_choice"]
    assert (choice["status"], choice["version"], choice["n"]) == ("ok", "3.0", 5)
    # The shortest answer is right in questions 1 and 3; the best per character in 2, 4 and 5.
    assert values(choice) == pytest.approx(
        {"acc": 2 / 5, "acc_norm": 3 / 5, "acc_n": (2 / 5 - 1 / 3) / (2 / 3)}
    )
    assert choice["baseline"] == pytest.approx(1 / 3)
    # The standard error of a mean of 2 ones and 3 zeros, and the same on the scale of acc_n.
    stderr = (0.4 * 0.6 / 4) ** 0.5
    assert choice["metrics"]["acc"]["stderr"] == pytest.approx(stderr)
    assert choice["metrics"]["acc_n"]["stderr"] == pytest.approx(stderr * 1.5)
    assert {m["direction"] for m in choice["metrics"].values()} == {"higher"}
    assert choice["requests"] == 15
    rows = map(json.loads, (local_tasks / "local_choice.jsonl").read_text("utf-8").splitlines())
    questions = [(row["ask"], row["answers"]) for row in rows]
    long = sum(
        len(f"Q: {ask}\nA: {answer}".encode()) - 1 > 12
        for ask, answers in questions
        for answer in answers
    )
    assert choice["truncated"] == long > 0

    pages = found["local_pages"]
    assert values(pages) == pytest.approx(
        {"byte_perplexity": 257, "word_perplexity": 257 ** (15 / 3)}, rel=1e-4
    )
    assert {m["direction"] for m in pages["metrics"].values()} == {"lower"}
    assert (pages["n"], pages["requests"], pages["truncated"]) == (2, 2, 0)

    last = found["local_last_word"]
    assert values(last) == pytest.approx({"perplexity": 257**3, "acc": 0}, rel=1e-4)
    assert last["metrics"]["perplexity"]["direction"] == "lower"
    assert last["metrics"]["perplexity"]["stderr"] > 0

    assert found["local_away"]["status"] == "skipped"
    assert "nobody/such-data" in found["local_away"]["reason"]
    assert "\n" not in found["local_away"]["reason"]
    assert found["summscreen"]["metrics"]["rouge1"]["value"] == 0
    assert (found["summscreen"]["n"], found["summscreen"]["version"]) == (2, "1")
    json.dumps(found)

    group = evaluate(uniform_checkpoint, ["local_group"], limit=3, batch_size=1, **arguments)
    assert group["max_length"] == 12
    group = group["tasks"]["local_group"]
    # Questions 1, 2, 3 and 1, 2: three of five right.
    assert (group["n"], group["requests"], group["version"]) == (5, 15, "2")
    assert values(group) == pytest.approx({"acc": 3 / 5, "acc_n": (3 / 5 - 1 / 3) / (2 / 3)})
    monkeypatch.setenv("DISABLE_MULTIPROC", "set before")
    again = evaluate(uniform_checkpoint, ["local_group"], limit=3, batch_size=64, **arguments)
    assert again["tasks"]["local_group"] == group
    assert os.environ["DISABLE_MULTIPROC"] == "set before"


@pytest.mark.slow  # reading the harness's index of tasks takes ten seconds
@pytest.mark.filterwarnings("ignore")
def test_the_papers_tasks_are_known_to_the_harness_and_skipped_without_a_network(
    uniform_checkpoint, monkeypatch
):
    pytest.importorskip("lm_eval", reason="needs lm_eval: pip install 'orrery[eval]'")
    from datasets import config
    from huggingface_hub import constants

    monkeypatch.setattr(hub, "reachable", lambda address: False)
    for module, name in ((config, "HF_DATASETS_CACHE"), (constants, "HF_HUB_CACHE")):
        monkeypatch.setattr(module, name, uniform_checkpoint.parent / "empty")
    names = [task.name for task in catalogue.TASKS]
    found = evaluate(uniform_checkpoint, names, max_length=12, device="cpu")["tasks"]
    assert list(found) == names
    assert {record["status"] for record in found.values()} == {"skipped"}
    assert all("Couldn't reach" in record["reason"] for record in found.values())
    with pytest.raises(ValueError, match=r"unknown task 'arc_esy' .* did you mean .*arc_easy"):
        check(["arc_easy", "arc_esy"])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"tasks": []}, "no task is asked"),
        ({"limit": 0}, "limit must be at least 1 sample, got 0"),
        ({"batch_size": 0}, "batch_size must be at least 1, got 0"),
        ({"max_length": None}, "does not say how long its training windows were"),
    ],
)
def test_bad_input_is_refused(uniform_checkpoint, arguments, message):
    pytest.importorskip("rouge_score", reason="needs rouge-score: pip install 'orrery[eval]'")
    given = {"tasks": ["summscreen"], "max_length": 12, "device": "cpu"} | arguments
    with pytest.raises(ValueError, match=message):
        evaluate(uniform_checkpoint, **given)


def test_a_missing_package_is_named_before_any_work(tmp_path, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match="these tasks need the package lm_eval: pip install"):
        evaluate(tmp_path / "none.ckpt", ["arc_easy"])
    with pytest.raises(ValueError, match="these tasks need the package rouge_score: pip install"):
        evaluate(tmp_path / "none.ckpt", ["summscreen"])
    with pytest.raises(ValueError, match="these tasks need the package lm_eval: pip install"):
        check(["summscreen", "arc_easy"])


def test_what_cannot_be_asked_is_refused_without_a_model(local_tasks, tmp_path, monkeypatch):
    pytest.importorskip("rouge_score", reason="needs rouge-score: pip install 'orrery[eval]'")
    import lm_eval.tasks

    class LocalOnly(lm_eval.tasks.TaskManager):
        """The index without the harness's own tasks, which take ten seconds to read."""

        def __init__(self, include_path=None, include_defaults=True):
            super().__init__(include_path=include_path, include_defaults=False)

    monkeypatch.setattr(lm_eval.tasks, "TaskManager", LocalOnly)
    check(["arc_easy", "local_choice", "local_away", "local_group"], local_tasks)
    with pytest.raises(ValueError, match=r"unknown task 'local_chioce' .*mean local_choice"):
        check(["arc_easy", "local_chioce"], local_tasks)
    with pytest.raises(FileNotFoundError, match="no such folder of tasks"):
        check(["local_choice"], tmp_path / "none")
    with pytest.raises(ValueError, match="unknown task 'local_chioce'"):
        evaluate(tmp_path / "none.ckpt", ["local_chioce"], include_path=local_tasks)
    scrolls = tmp_path / "validation.jsonl"
    scrolls.write_text("{}", "utf-8")
    check(["arc_easy"], scrolls=scrolls)
    with pytest.raises(ValueError, match="line 1: not a JSON object"):
        check(["summscreen"], scrolls=scrolls)
