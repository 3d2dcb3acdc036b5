"""Zero-shot evaluation end to end on local tasks, and its metrics by hand."""

import http.server
import json
import os
import socket
import threading

import pytest

from benchmarks.language.scorer import TextScorer
from benchmarks.language.zero_shot import catalogue, evaluation
from benchmarks.language.zero_shot.catalogue import baseline_accuracy, chance_adjusted
from benchmarks.language.zero_shot.evaluation import check, evaluate
from worldmodel.models.load import load_model


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
        assert evaluation.reachable(f"http://127.0.0.1:{running.server_port}", seconds=600)
    assert not evaluation.reachable(f"http://127.0.0.1:{running.server_port}", seconds=2)


@pytest.fixture
def scorer(uniform_checkpoint):
    return TextScorer(load_model(uniform_checkpoint), 12, device="cpu")


def values(scores):
    return {name: metric.value for name, metric in scores.metrics.items()}


@pytest.mark.full
@pytest.mark.filterwarnings("ignore")
def test_local_tasks_end_to_end(scorer, local_tasks, tmp_path, monkeypatch):
    from datasets import config

    monkeypatch.setattr(evaluation, "reachable", lambda address: False)
    summaries = [
        {"id": i, "pid": i, "input": "Ann: Hi.", "output": "a talk"} for i in ("fd_1", "fd_2")
    ]
    scrolls = tmp_path / "validation.jsonl"
    scrolls.write_text("\n".join(map(json.dumps, summaries)), "utf-8")
    monkeypatch.delenv("DISABLE_MULTIPROC", raising=False)
    known = config.HF_HUB_OFFLINE
    monkeypatch.setattr(socket.socket, "connect", lambda *_: pytest.fail("the hub was asked"))
    files = {"include_path": local_tasks, "scrolls": scrolls}

    choice = evaluate(scorer, "local_choice", **files)
    assert known == config.HF_HUB_OFFLINE
    assert "DISABLE_MULTIPROC" not in os.environ
    assert (choice.version, choice.metrics["acc"].n) == ("3.0", 5)
    # The shortest answer is right in questions 1 and 3; the best per character in 2, 4 and 5.
    assert values(choice) == pytest.approx(
        {"acc": 2 / 5, "acc_norm": 3 / 5, "acc_n": (2 / 5 - 1 / 3) / (2 / 3)}
    )
    assert choice.baseline == pytest.approx(1 / 3)
    # The standard error of a mean of 2 ones and 3 zeros, and the same on the scale of acc_n.
    stderr = (0.4 * 0.6 / 4) ** 0.5
    assert choice.metrics["acc"].stderr == pytest.approx(stderr)
    assert choice.metrics["acc_n"].stderr == pytest.approx(stderr * 1.5)
    assert {metric.direction for metric in choice.metrics.values()} == {"higher"}
    assert choice.requests == 15
    rows = map(json.loads, (local_tasks / "local_choice.jsonl").read_text("utf-8").splitlines())
    questions = [(row["ask"], row["answers"]) for row in rows]
    long = sum(
        len(f"Q: {ask}\nA: {answer}".encode()) - 1 > 12
        for ask, answers in questions
        for answer in answers
    )
    assert choice.truncated == long > 0

    pages = evaluate(scorer, "local_pages", **files)
    assert values(pages) == pytest.approx(
        {"byte_perplexity": 257, "word_perplexity": 257 ** (15 / 3)}, rel=1e-4
    )
    assert {metric.direction for metric in pages.metrics.values()} == {"lower"}
    assert {metric.n for metric in pages.metrics.values()} == {2}
    assert (pages.requests, pages.truncated, pages.baseline) == (2, 0, None)

    last = evaluate(scorer, "local_last_word", **files)
    assert values(last) == pytest.approx({"perplexity": 257**3, "acc": 0}, rel=1e-4)
    assert last.metrics["perplexity"].direction == "lower"
    assert last.metrics["perplexity"].stderr > 0

    with pytest.raises(ConnectionError, match="nobody/such-data") as away:
        evaluate(scorer, "local_away", **files)
    assert "\n" not in str(away.value)

    summaries = evaluate(scorer, "summscreen", **files)
    assert values(summaries) == {"rouge1": 0}
    rouge = summaries.metrics["rouge1"]
    assert (rouge.n, rouge.direction, summaries.version) == (2, "higher", "1")

    group = evaluate(scorer, "local_group", limit=3, include_path=local_tasks)
    # Questions 1, 2, 3 and 1, 2: three of five right.
    assert (group.metrics["acc"].n, group.requests, group.version) == (5, 15, "2")
    assert values(group) == pytest.approx({"acc": 3 / 5, "acc_n": (3 / 5 - 1 / 3) / (2 / 3)})
    monkeypatch.setenv("DISABLE_MULTIPROC", "set before")
    scorer.batch_size = 1
    assert evaluate(scorer, "local_group", limit=3, include_path=local_tasks) == group
    assert os.environ["DISABLE_MULTIPROC"] == "set before"


@pytest.mark.full  # reading the harness's index of tasks takes ten seconds
@pytest.mark.filterwarnings("ignore")
def test_the_papers_tasks_are_known_to_the_harness_and_out_of_reach_without_a_network(
    scorer, tmp_path, monkeypatch
):
    pytest.importorskip("lm_eval", reason="needs lm_eval: pip install -e '.[eval]'")
    from datasets import config
    from huggingface_hub import constants

    from benchmarks.language.zero_shot import harness

    monkeypatch.setattr(evaluation, "reachable", lambda address: False)
    for module, name in ((config, "HF_DATASETS_CACHE"), (constants, "HF_HUB_CACHE")):
        monkeypatch.setattr(module, name, tmp_path / "empty")
    with pytest.raises(ValueError, match=r"unknown task 'arc_esy' .* did you mean .*arc_easy"):
        check(["arc_easy", "arc_esy"])
    manager = harness.index([name for name in catalogue.names() if name != catalogue.SUMMSCREEN])
    monkeypatch.setattr(harness, "index", lambda names, include_path: manager)
    for name in catalogue.names():
        with pytest.raises(ConnectionError, match="Couldn't reach"):
            evaluate(scorer, name)


def test_a_limit_below_one_is_refused(scorer):
    with pytest.raises(ValueError, match="limit must be at least 1 sample, got 0"):
        evaluate(scorer, "summscreen", limit=0)


def test_a_missing_package_is_named_before_any_work(scorer, monkeypatch):
    import importlib.util

    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    for task, package in (("arc_easy", "lm_eval"), ("summscreen", "rouge_score")):
        with pytest.raises(ValueError, match=f"need the package {package}: pip install"):
            evaluate(scorer, task)
    with pytest.raises(ValueError, match="these tasks need the package lm_eval: pip install"):
        check(["summscreen", "arc_easy"])


def test_what_cannot_be_evaluated_is_refused_without_a_model(local_tasks, tmp_path, monkeypatch):
    pytest.importorskip("rouge_score", reason="needs rouge-score: pip install -e '.[eval]'")
    from benchmarks.language.zero_shot import harness

    class LocalOnly(harness.TaskManager):
        """The index without the harness's own tasks, which take ten seconds to read."""

        def __init__(self, include_path=None, include_defaults=True):
            super().__init__(include_path=include_path, include_defaults=False)

    monkeypatch.setattr(harness, "TaskManager", LocalOnly)
    check(["arc_easy", "local_choice", "local_away", "local_group"], local_tasks)
    with pytest.raises(ValueError, match=r"unknown task 'local_chioce' .*mean local_choice"):
        check(["arc_easy", "local_chioce"], local_tasks)
    with pytest.raises(FileNotFoundError, match="no such folder of tasks"):
        check(["local_choice"], tmp_path / "none")
    with pytest.raises(ValueError, match="unknown task 'local_chioce'"):
        evaluate(None, "local_chioce", include_path=local_tasks)
    scrolls = tmp_path / "validation.jsonl"
    scrolls.write_text("{}", "utf-8")
    check(["arc_easy"], scrolls=scrolls)
    with pytest.raises(ValueError, match="line 1: not a JSON object"):
        check(["summscreen"], scrolls=scrolls)
