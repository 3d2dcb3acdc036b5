"""The text scorer against direct forward passes, one unpadded row at a time."""

import numpy as np
import pytest
import torch
from torch.nn import functional

from attention import linear
from benchmarks.language.scorer import Prompt, TextScorer, windows
from worldmodel.models.text import TextModel

pytestmark = pytest.mark.full

END = 256
WHOLE = ("softmax", "lssar", "lazy", "mamba2")
"""Variants that score many texts, in batches of every size; the others are asked once."""
VARIANTS = [
    ("softmax", {}),
    ("lssar", {"p": 3.0}),
    ("lazy", {"max_distance": 16}),
    ("softmax", {"ntk_train_length": 12}),
    ("sigmoid", {"length": 32}),
    ("relu_wortsman", {"length": 32}),
    ("elastic_seqlen", {"length": 32}),
    ("alibi", {}),
    ("zeros_sm", {}),
    ("sliding_window", {"window": 5}),
    *((name, {"chunk": 5}) for name in linear.names()),
]


def model(attention="softmax", arguments=None, **more):
    torch.manual_seed(0)
    task = TextModel(
        attention=attention, attention_args=arguments, n_layer=2, n_head=2, head_dim=8, **more
    )
    # Distributions far from uniform, and learned parameters away from where they start.
    torch.nn.init.normal_(task.embedding.weight, std=0.5)
    for layer in task.modules():
        for value in getattr(layer, "learned", {}).values():
            torch.nn.init.normal_(value, std=0.3)
    return task.eval()


def ids(text):
    return list(text.encode())


def pairs():
    rng = np.random.default_rng(0)
    words = ["sun", "Größe", "日本語", "\U0001f30d", "\n", "a b", "0123", "mass", " ", "é"]
    texts = [" ".join(rng.choice(words, rng.integers(1, 6))) for _ in range(100)]
    return [(ids(a), ids(b)) for a, b in zip(texts[::2], texts[1::2], strict=True)]


def direct(task, context, continuation):
    """Return log-likelihood and greediness from one forward pass of one row, in float64."""
    tokens = [END, *continuation] if not context else context + continuation
    with torch.no_grad():  # nothing follows the last token, so it is not read
        logits = task({"tokens": torch.tensor([tokens[:-1]])})[0].double()
    n = len(continuation)
    logits, answers = logits[-n:], torch.tensor(continuation)
    picked = functional.log_softmax(logits, -1)[torch.arange(n), answers]
    return picked.sum().item(), bool((logits.argmax(-1) == answers).all())


def greedy_path(task, tokens, n):
    tokens = list(tokens)
    for _ in range(n):
        with torch.no_grad():
            tokens.append(int(task({"tokens": torch.tensor([tokens])})[0, -1].argmax()))
    return tokens[-n:]


@pytest.mark.parametrize(("attention", "arguments"), VARIANTS)
def test_scores_are_those_of_one_row_alone(attention, arguments):
    task, asked = model(attention, arguments), pairs()[: 50 if attention in WHOLE else 16]
    # Some continuations that are greedy, short and long, in batches with others that are not.
    asked += [(c, greedy_path(task, c, n)) for n, (c, _) in enumerate(asked[:4], 1)]
    asked.append(([], ids("from nothing")))
    expected = [direct(task, *pair) for pair in asked]
    assert {greedy for _, greedy in expected} == {True, False}
    for size in (1, 7, 64) if attention in WHOLE else (7,):
        found = TextScorer(task, 200, size, "cpu").score(asked)
        assert [s.greedy for s in found] == [greedy for _, greedy in expected]
        np.testing.assert_allclose(
            [s.loglikelihood for s in found], [value for value, _ in expected], rtol=1e-5, atol=1e-4
        )
        assert not any(s.truncated for s in found)


def test_a_context_that_does_not_fit_loses_its_oldest_tokens():
    task = model("lssar", {"p": 3.0})
    context, continuation = ids("the oldest tokens of this text are dropped"), ids(" here")
    scorer = TextScorer(task, 12, 4, "cpu")
    exact = context[-(12 - len(continuation) + 1) :]
    found, whole = scorer.score([(context, continuation), (exact, continuation)])
    assert (found.truncated, whole.truncated) == (True, False)
    assert found.loglikelihood == pytest.approx(direct(task, exact, continuation)[0], abs=1e-4)
    assert abs(found.loglikelihood - direct(task, context, continuation)[0]) > 1e-3


def test_a_text_longer_than_the_model_is_the_sum_over_its_windows():
    task, text = model(), ids("0123456789")
    first = direct(task, [END], text[:4])
    second = direct(task, [text[3]], text[4:8])
    third = direct(task, text[5:8], text[8:])  # the last window has all the context that fits
    found = TextScorer(task, 4, 2, "cpu").score([([], text)])[0]
    total = first[0] + second[0] + third[0]
    assert found.loglikelihood == pytest.approx(total, abs=1e-4)
    assert not found.truncated
    greedy = greedy_path(task, [END], 4)
    again = [*greedy, *greedy_path(task, greedy[-1:], 4)]
    late, early = [*greedy, again[4] ^ 1], [greedy[0] ^ 1, *again[1:]]
    scores = TextScorer(task, 4, 2, "cpu").score([([], again), ([], late), ([], early)])
    assert [s.greedy for s in scores] == [True, False, False]


def test_windows_of_the_harness_documentation():
    # lm_eval.api.model: ten tokens, a prefix P and four tokens at most.
    found = list(windows(["P"], list(range(10)), 4))
    assert found == [
        (["P"], [0, 1, 2, 3]),
        ([3], [4, 5, 6, 7]),
        ([5, 6, 7], [8, 9]),
    ]
    assert list(windows([1, 2], [3], 8)) == [([1, 2], [3])]
    assert list(windows([1, 2], [], 8)) == []


def test_nothing_is_certain():
    found = TextScorer(model(), 8, 4, "cpu").score([(ids("a"), []), ([], [])])
    assert [(s.loglikelihood, s.greedy) for s in found] == [(0.0, True)] * 2
    assert TextScorer(model(), 8, 4, "cpu").score([]) == []


@pytest.mark.parametrize(("attention", "arguments"), VARIANTS)
def test_continuations_are_greedy_with_and_without_a_cache(attention, arguments):
    task = model(attention, arguments)
    prompts = [Prompt(tuple(ids(t)), 12) for t in ("mass", "a", "b", "", "the sun and the moon")]
    expected = []
    for prompt in prompts:
        new = greedy_path(task, prompt.tokens or (END,), 12)
        new = new[: new.index(END)] if END in new else new
        expected.append(bytes(new).decode(errors="replace"))
    for size in (1, 2) if attention in WHOLE else (2,):
        scorer = TextScorer(task, 64, size, "cpu")
        assert scorer.generate(prompts) == expected
        assert scorer.generate(prompts, use_cache=False) == expected
    assert TextScorer(task, 64, 4, "cpu").generate([Prompt((97,), 0)]) == [""]


def test_nothing_is_cached_where_the_rotary_base_follows_the_length():
    task = model(arguments={"ntk_train_length": 4})
    with torch.no_grad():  # attention that matters: a cache would change these texts
        for name, value in task.gpt.named_parameters():
            if name.endswith(("query.weight", "key.weight", "value.weight", "project.weight")):
                value.mul_(4)
    scorer = TextScorer(task, 64, 2, "cpu")
    for text in ("the sun and the moon", "orbits of planets"):
        prompt = Prompt(tuple(ids(text)), 12)
        expected = bytes(greedy_path(task, prompt.tokens, 12)).decode(errors="replace")
        assert scorer.generate([prompt]) == [expected]


def saying(tokens):
    """Return a scorer of a model that says tokens[i] after i + 1 tokens, whatever they are."""
    task = model(n_positions=32)
    for name, value in task.gpt.named_parameters():
        if name.endswith(("project.weight", "mlp.2.weight")):  # a block changes nothing
            torch.nn.init.zeros_(value)
    with torch.no_grad():
        task.positions.weight[: len(tokens)] = 100 * task.embedding.weight[list(tokens)]
    return TextScorer(task, 32, 8, "cpu")


def test_continuations_end_before_the_first_stop_and_at_end_of_text():
    scorer, start = saying([*b"abcdefgh", END, *b"ij"]), (65,)
    cases = {
        (): "abcdefgh",
        ("fg", "de"): "abc",
        ("x", "h"): "abcdefg",
        ("ij",): "abcdefgh",  # after end-of-text nothing counts
        ("a",): "",
    }
    prompts = [Prompt(start, 12, until) for until in cases]
    assert scorer.generate(prompts) == list(cases.values())
    assert scorer.generate([Prompt(start, 4, ("fg",))]) == ["abcd"]
    assert scorer.generate([Prompt((65, 66), 12, ("fg",))]) == ["bcde"]


def test_what_has_ended_ignores_the_rest_of_its_batch(monkeypatch):
    scorer = TextScorer(model(), 32, 8, "cpu")
    said = zip(b"abcdef", b"uvwxyz", strict=True)
    monkeypatch.setattr(
        scorer, "_logits", lambda hidden: functional.one_hot(torch.tensor(next(said)), 257)
    )
    # The first row ends at the short stop; a step later the long one would begin before it.
    prompts = [Prompt((token,), 6, ("bcd", "c")) for token in (65, 66)]
    assert scorer.generate(prompts) == ["ab", "uvwxyz"]


def test_learned_positions_bound_what_is_read():
    task = model(n_positions=16)
    scorer = TextScorer(task, 16, 4, "cpu")
    asked = [(ids("short"), ids(" x")), (ids("a much longer context"), ids(" y"))]
    found = scorer.score(asked)
    assert found[1].loglikelihood == pytest.approx(
        direct(task, asked[1][0][-15:], asked[1][1])[0], abs=1e-4
    )
    prompt = Prompt(tuple(ids("orbits")), 11)
    assert scorer.generate([prompt]) == scorer.generate([prompt], use_cache=False)
    with pytest.raises(ValueError, match="6 tokens and 12 new ones exceed the model's 16 learned"):
        scorer.generate([Prompt(tuple(ids("orbits")), 12)])
    with pytest.raises(ValueError, match="max_length 17 exceeds the model's 16 learned positions"):
        TextScorer(task, 17)


@pytest.mark.parametrize("choice", [{"max_length": 0}, {"max_length": 8, "batch_size": 0}])
def test_bad_sizes_are_refused(choice):
    with pytest.raises(ValueError, match="must be at least 1, got 0"):
        TextScorer(model(), **choice)
