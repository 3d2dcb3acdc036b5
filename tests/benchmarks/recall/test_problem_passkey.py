import re

import numpy as np
import pytest
from scipy import stats

from benchmarks.language.passkey_prompts import is_right, prompt, prompts
from benchmarks.recall.measures import IGNORE, right_by_row, whole_by_row
from benchmarks.recall.passkey_short import Passkey

SENTENCES = (
    "The grass is green. The sky is blue. The sun is yellow. Here we go. There and back again."
)


class Bytes:
    def encode(self, text):
        return list(text.encode())

    def decode(self, ids):
        return bytes(ids).decode()


class Words:
    """Longest match first: as in many vocabularies, a longer text may have fewer tokens."""

    pieces = (
        "The grass", " grass", " green", " is", "The", " sk", " sky is blue", " sun", " yellow",
        " Here we", " There and back", " again", ". ", "12", " irrelevant",
    )  # fmt: skip

    def encode(self, text):
        ids, t = [1], 0  # a token of its own in front
        while t < len(text):
            fitting = [piece for piece in self.pieces if text.startswith(piece, t)]
            piece = max(fitting, key=len, default=text[t])
            ids.append(self.pieces.index(piece) + 300 if fitting else ord(piece))
            t += len(piece)
        return np.array(ids)

    def decode(self, ids):
        return "".join(self.pieces[i - 300] if i >= 300 else chr(i) for i in ids if i != 1)


class Pairs(Bytes):
    def encode(self, text):
        return list(text.encode()) * 2


def trial(text):
    """Read a prompt by the rule; return its key and the lengths of its fillers."""
    task, before, information, after, question = text.split("\n")
    assert task == (
        "There is an important info hidden inside a lot of irrelevant text. Find it and memorize "
        "them. I will quiz you about the important information there."
    )
    (key,) = set(re.findall(r"\d+", information))
    assert information == f"The pass key is {key}. Remember it. {key} is the pass key."
    assert question == "What is the pass key? The pass key is"
    endless = " ".join([SENTENCES] * 200)
    assert before == endless[: len(before)]
    assert after == endless[: len(after)]
    return int(key), len(before), len(after)


def test_the_five_lines():
    assert trial(prompt(12345, 200, 31)) == (12345, 200, 31)
    assert trial(prompt(7, 0, 0)) == (7, 0, 0)


@pytest.mark.full
@pytest.mark.parametrize("tokenizer", [Bytes(), Words()])
@pytest.mark.parametrize("n_tokens", [350, 640, 1501])
def test_prompts_have_exactly_as_many_tokens(tokenizer, n_tokens):
    made = prompts(tokenizer, n_tokens, n_trials=8)
    assert len(made) == 8
    for each in made:
        assert len(tokenizer.encode(each.text)) == n_tokens
        key, before, after = trial(each.text)
        assert key == each.key
        assert abs(before - each.depth * (before + after)) <= 1


def test_prompts_fit_a_trained_tokenizer():
    tokenizers = pytest.importorskip("tokenizers")
    tokenizer = tokenizers.Tokenizer(tokenizers.models.BPE())
    tokenizer.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=320, initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )  # fmt: skip
    tokenizer.train_from_iterator([prompt(k, 100, 300) for k in range(100, 900, 7)], trainer)

    class Trained:
        def encode(self, text):
            return tokenizer.encode(text).ids

    for n_tokens in (180, 181, 182, 183, 1024):
        made = prompts(Trained(), n_tokens, n_trials=10)
        assert {len(Trained().encode(each.text)) for each in made} == {n_tokens}


def test_trials_are_the_same_at_every_length_and_other_with_another_seed():
    short, long = prompts(Bytes(), 400, 6), prompts(Words(), 900, 9)
    assert [(p.key, p.depth) for p in short] == [(p.key, p.depth) for p in long[:6]]
    assert [p.key for p in short] != [p.key for p in prompts(Bytes(), 400, 6, seed=1)]
    assert len(prompts(Bytes(), 500)) == 100


def test_keys_and_depths_are_uniform():
    read = [trial(made.text) for made in prompts(Bytes(), 1024, n_trials=1000)]
    keys = np.array([key for key, _, _ in read])
    assert keys.min() >= 1
    assert keys.max() <= 50_000
    assert stats.kstest(keys / 50_000, "uniform").pvalue > 1e-3
    depths = [before / (before + after) for _, before, after in read]
    assert stats.kstest(depths, "uniform").pvalue > 1e-3


def test_prompts_that_cannot_be():
    shortest = max(len(prompt(p.key, 0, 0)) for p in prompts(Bytes(), 400))
    assert {len(p.text) for p in prompts(Bytes(), shortest)} == {shortest}
    message = f"n_tokens must be at least {shortest}, the prompt itself, got {shortest - 1}"
    with pytest.raises(ValueError, match=message):
        prompts(Bytes(), shortest - 1)
    with pytest.raises(ValueError, match="no amount of filler gives exactly 1001 tokens"):
        prompts(Pairs(), 1001, n_trials=2)


@pytest.mark.parametrize(
    ("answer", "right"),
    [
        (" 12345. Remember", True),
        ("12345", True),
        (" 012345", True),  # as an integer
        (" 1234", False),
        (" 123456", False),
        (" 9 or 12345", False),  # only the first counts
        (" the key", False),
        ("", False),
    ],
)
def test_the_first_integer_counts(answer, right):
    assert is_right(answer, 12345) is right


@pytest.mark.parametrize("problem", [Passkey(), Passkey(64), Passkey(1000, n_digits=2)], ids=str)
def test_a_reader_of_the_short_form_answers_every_digit(problem):
    made = problem.examples("test", 0, np.arange(100))
    n = problem.n_digits
    answers = np.full_like(made.targets, IGNORE)
    for row, tokens in enumerate(made.tokens.tolist()):
        before, information, after, question = bytes(tokens).decode().split("\n")
        (key,) = re.fullmatch(rf"The pass key is (\d{{{n}}})\.", information).groups()
        assert question == f"The pass key is {key[:-1]}"
        endless = " ".join([SENTENCES] * 20)
        assert before == endless[: len(before)]
        assert after == endless[: len(after)]
        answers[row, -n:] = list(key.encode())
    np.testing.assert_array_equal(made.targets, answers)
    assert (right_by_row(answers, made.targets) == 1).all()
    assert (whole_by_row(answers, made.targets) == 1).all()


def test_digits_and_depths_of_the_short_form_are_uniform():
    made = Passkey(seq_len=128, n_digits=5).examples("train", 0, np.arange(3000))
    digits = made.targets[:, -5:] - ord("0")
    for place in range(5):
        assert stats.chisquare(np.bincount(digits[:, place], minlength=10)).pvalue > 1e-3
    before = np.argmax(made.tokens == ord("\n"), axis=1)
    n_garbage = 128 + 1 - len("\nThe pass key is 12345.\n\nThe pass key is 12345")
    assert stats.chisquare(np.bincount(before, minlength=n_garbage + 1)).pvalue > 1e-3


def test_bad_settings():
    assert Passkey(seq_len=45).examples("test", 0, np.arange(3)).tokens.shape == (3, 45)
    with pytest.raises(ValueError, match="seq_len must be at least 45 for 5 digits, got 44"):
        Passkey(seq_len=44)
    with pytest.raises(ValueError, match="n_digits must be at least 1, got 0"):
        Passkey(n_digits=0)
