"""A language model and tasks whose metrics follow by hand, without a network."""

import json

import pytest

import tests.with_torch  # noqa: F401

QUESTIONS = [
    ("which one?", ["aa", "bbbb", "cccccc"], 0),
    ("which two?", ["aa", "bbbb", "cccccc"], 2),
    ("and now?", ["dddd", "a", "bb"], 1),
    ("and then?", ["dddd", "a", "bb"], 0),
    # Per byte the first would win (7/6 against 5/4), per character the second (7/3).
    ("letters?", ["ééé", "abcd", "z"], 1),
]


@pytest.fixture(scope="session")
def uniform_checkpoint(tmp_path_factory):
    """Return a model's checkpoint that gives every byte the probability 1/257.

    The shortest answer then has the largest log-likelihood, the longest one the largest per
    character (an answer of n bytes follows a space).
    """
    import torch

    from tests.worldmodel.trainings import save
    from worldmodel.models.text import TextModel

    task = TextModel(n_layer=1, n_head=1, head_dim=8)
    torch.nn.init.zeros_(task.embedding.weight)
    return save(task, tmp_path_factory.mktemp("model") / "uniform.ckpt")


@pytest.fixture(scope="session")
def local_tasks(tmp_path_factory):
    """Return a folder of tasks of the harness with their data."""
    pytest.importorskip("lm_eval", reason="needs lm_eval: pip install -e '.[eval]'")
    folder, cache = tmp_path_factory.mktemp("tasks"), tmp_path_factory.mktemp("cache")

    def write(name, rows, lines):
        data = folder / f"{name}.jsonl"
        data.write_text("\n".join(map(json.dumps, rows)), "utf-8")
        settings = {
            "task": name,
            "dataset_path": "json",
            "dataset_kwargs": {"data_files": {"test": str(data)}, "cache_dir": str(cache)},
            "test_split": "test",
            "metadata": {"version": 3.0},
        }
        # JSON is YAML.
        (folder / f"{name}.yaml").write_text(json.dumps(settings | lines), "utf-8")

    rows = [{"ask": ask, "answers": answers, "right": right} for ask, answers, right in QUESTIONS]
    choice = {
        "output_type": "multiple_choice",
        "doc_to_text": "Q: {{ask}}\nA:",
        "doc_to_choice": "{{answers}}",
        "doc_to_target": "right",
        "metric_list": [{"metric": "acc"}, {"metric": "acc_norm"}],
    }
    write("local_choice", rows, choice)
    write("local_choice_again", rows[:2], choice)
    write("local_away", [], {"dataset_path": "nobody/such-data", "dataset_kwargs": {}, **choice})
    group = {
        "group": "local_group",
        "task": ["local_choice", "local_choice_again"],
        "aggregate_metric_list": [{"metric": "acc", "weight_by_size": True}],
        "metadata": {"version": 2},
    }
    (folder / "local_group.yaml").write_text(json.dumps(group), "utf-8")
    pages = {
        "output_type": "loglikelihood_rolling",
        "doc_to_text": "",
        "doc_to_target": "{{page}}",
        "metric_list": [{"metric": "word_perplexity"}, {"metric": "byte_perplexity"}],
    }
    for name in ("local_pages", "wikitext"):  # the second in the stead of the harness's own
        write(name, [{"page": "sun moon"}, {"page": "planets"}], pages)
    write(
        "local_last_word",
        [{"text": "the sun b"}, {"text": "the moon ccc"}],
        {
            "output_type": "loglikelihood",
            "doc_to_text": "{{text.split(' ')[:-1]|join(' ')}}",
            "doc_to_target": "{{' '+text.split(' ')[-1]}}",
            "metric_list": [
                {"metric": "perplexity", "aggregation": "perplexity", "higher_is_better": False},
                {"metric": "acc", "aggregation": "mean", "higher_is_better": True},
            ],
        },
    )
    return folder
