"""SummScreen: local rows in the columns of SCROLLS, prompts that fit, ROUGE-1 by hand."""

import json
import zipfile

import pytest
import torch

from benchmarks.language.scorer import TextScorer
from benchmarks.language.zero_shot import summscreen
from benchmarks.language.zero_shot.summscreen import Episode
from worldmodel.models.text import TextModel

rouge = pytest.importorskip("rouge_score", reason="needs rouge-score: pip install -e '.[eval]'")


def row(identity, text, summary, pid=0):
    fields = {"id": identity, "pid": f"{identity}_{pid}", "input": text, "output": summary}
    return json.dumps(fields, ensure_ascii=False)


def write(path, *rows):
    path.write_text("\n".join(rows) + "\n", "utf-8")
    return path


class Recorder(TextScorer):
    """A scorer that says what it is told and keeps what it was asked."""

    def __init__(self, summaries, **more):
        task = TextModel(n_layer=1, n_head=1, head_dim=8, **more)
        super().__init__(task, 16, 4, "cpu")
        self.summaries = summaries

    def generate(self, prompts, use_cache=True):
        self.prompts = prompts
        return self.summaries


@pytest.mark.full
def test_rouge_1_by_hand():
    # 4 of the 5 predicted words and of the 6 in the reference: P = 4/5, R = 4/6, F1 = 8/11.
    assert summscreen.rouge1("The cat sat quietly today.", ["the cat sat today on mats"]) == (
        pytest.approx(8 / 11)
    )
    # "the" is shared as often as it is in both: P = 2/4, R = 2/3.
    assert summscreen.rouge1("the the the end", ["the story the"]) == pytest.approx(4 / 7)
    # No stemming: "cats" is not "cat".
    assert summscreen.rouge1("cats", ["cat"]) == 0
    assert summscreen.rouge1("", ["a summary"]) == 0
    assert summscreen.rouge1("one two", ["three", "one two three"]) == pytest.approx(4 / 5)


def test_episodes_with_the_same_id_are_one_with_several_summaries(tmp_path):
    path = write(
        tmp_path / "validation.jsonl",
        row("fd_1", "Ann: Hello.\nBob: Größe!", "They meet."),
        row("fd_2", "Cid: Bye.", "He leaves."),
        row("fd_1", "Ann: Hello.\nBob: Größe!", "Ann greets Bob.", 1),
    )
    assert summscreen.read_episodes(path) == [
        Episode("Ann: Hello.\nBob: Größe!", ("They meet.", "Ann greets Bob.")),
        Episode("Cid: Bye.", ("He leaves.",)),
    ]


def test_the_archive_of_the_hub_is_read_too(tmp_path, monkeypatch):
    hub = pytest.importorskip("huggingface_hub", reason="needs huggingface_hub")
    with zipfile.ZipFile(tmp_path / "x.zip", "w") as archive:
        archive.writestr(
            "summ_screen_fd/validation.jsonl", row("fd_1", "Ann: Hi.", "A talk.\u2028")
        )
    asked = []

    def download(repository, name, repo_type):
        asked.append((repository, name, repo_type))
        return tmp_path / "x.zip"

    monkeypatch.setattr(hub, "hf_hub_download", download)
    assert summscreen.read_episodes() == [Episode("Ann: Hi.", ("A talk.\u2028",))]
    assert asked == [("tau/scrolls", "summ_screen_fd.zip", "dataset")]


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["{}"], "line 1: not a JSON object with id, pid, input, output"),
        ([row("a", "b", "c"), "text"], "line 2: not a JSON object"),
        (["[1, 2]"], "line 1: not a JSON object"),
        ([row("a", "b", None)], "line 1: input and output must be texts"),  # the test split
    ],
)
def test_other_rows_are_refused_by_line(tmp_path, lines, message):
    with pytest.raises(ValueError, match=message):
        summscreen.read_episodes(write(tmp_path / "x.jsonl", *lines))


def test_an_empty_or_missing_file_is_refused(tmp_path):
    (tmp_path / "x.jsonl").touch()
    with pytest.raises(ValueError, match="has no episode"):
        summscreen.read_episodes(tmp_path / "x.jsonl")
    with pytest.raises(FileNotFoundError):
        summscreen.read_episodes(tmp_path / "y.jsonl")


@pytest.mark.full
def test_prompts_keep_the_question_and_fit_into_2048_tokens_with_the_summary():
    question = "\n\nQuestion: What is a summary of the preceding text?\nAnswer:"
    room = 2048 - 256 - len(question)
    texts = ["Ann: Hi.", "x" * room, "y" * room + "z"]
    scorer = Recorder(["Ann says hi", "no", "no"])
    found = summscreen.summarise(scorer, [Episode(text, ("Ann says hi",)) for text in texts])
    assert found.rouge1 == [1, 0, 0]
    assert (found.truncated, found.max_length) == (1, 2048)
    written = [bytes(prompt.tokens).decode() for prompt in scorer.prompts]
    assert written == [text[:room] + question for text in texts]
    assert {(p.max_new_tokens, p.until) for p in scorer.prompts} == {(256, ("\n",))}


def test_learned_positions_bound_the_prompts():
    scorer = Recorder(["no"], n_positions=400)
    found = summscreen.summarise(scorer, [Episode("x" * 500, ("yes",))])
    assert len(scorer.prompts[0].tokens) + 256 == found.max_length == 400
    with pytest.raises(ValueError, match="300 learned positions leave no room for a transcript"):
        summscreen.summarise(Recorder([], n_positions=300), [Episode("x", ("yes",))])


@pytest.mark.full
def test_a_model_summarises():
    torch.manual_seed(0)
    scorer = TextScorer(TextModel(n_layer=1, n_head=1, head_dim=8), 8, 2, "cpu")
    episodes = [Episode("Ann: Hi.", ("A talk.",)), Episode("Bob: Bye.", ("An end.",))]
    found = summscreen.summarise(scorer, episodes)
    assert found == summscreen.summarise(scorer, episodes)
    assert len(found.rouge1) == 2
