"""The adapter to lm-evaluation-harness: requests in, the scorer's numbers out."""

import random
import string

import pytest
import torch
from torch.nn import functional

pytest.importorskip("lm_eval", reason="needs lm_eval: pip install -e '.[eval]'")

from lm_eval.api.instance import Instance
from lm_eval.api.model import TemplateLM
from lm_eval.utils import get_rolling_token_windows, make_disjoint_window

from benchmarks.language.scorer import TextScorer
from benchmarks.language.zero_shot.harness import OrreryLM
from worldmodel.models.text import TextModel

END = 256


def task(tokenizer="bytes"):
    torch.manual_seed(0)
    made = TextModel(tokenizer, attention="lssar", n_layer=2, n_head=2, head_dim=8)
    torch.nn.init.normal_(made.embedding.weight, std=0.5)
    return made.eval()


def adapter(max_length=64, batch_size=4, **more):
    return OrreryLM(TextScorer(task(**more), max_length, batch_size, "cpu"))


def requests(kind, *arguments):
    return [Instance(kind, {}, a, i, ("orbits", i, 1)) for i, a in enumerate(arguments)]


def direct(model, tokens, n):
    """Return the log-likelihood and greediness of the last n of some tokens."""
    with torch.no_grad():
        logits = model({"tokens": torch.tensor([tokens[:-1]])})[0, -n:].double()
    answers = torch.tensor(tokens[-n:])
    picked = functional.log_softmax(logits, -1)[torch.arange(n), answers]
    return picked.sum().item(), bool((logits.argmax(-1) == answers).all())


def bpe():
    tokenizers = pytest.importorskip("tokenizers", reason="needs tokenizers")
    made = tokenizers.Tokenizer(tokenizers.models.BPE())
    made.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    made.decoder = tokenizers.decoders.ByteLevel()
    made.train_from_iterator(
        ["the planet moves around the sun and the moon moves around the planet"] * 4,
        tokenizers.trainers.BpeTrainer(
            vocab_size=400,
            special_tokens=["<|endoftext|>"],
            initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        ),
    )
    return made.to_str()


class Harness(TemplateLM):
    """The harness's own way from texts to tokens."""

    eot_token_id = 0

    def __init__(self, tokenizer):
        super().__init__()
        self.text_tokenizer = tokenizer

    def tok_encode(self, string, add_special_tokens=None, **kwargs):
        return self.text_tokenizer.encode(string).tolist()

    def _loglikelihood_tokens(self, requests, **kwargs):
        raise NotImplementedError

    loglikelihood_rolling = generate_until = _loglikelihood_tokens


def test_texts_become_tokens_as_in_the_harness():
    lm = adapter(tokenizer=bpe())
    harness = Harness(lm.scorer.tokenizer)
    texts = [
        ("the planet", " moves"),
        ("the planet ", "moves"),  # the space moves to the continuation
        ("the planet  \n", "moves around the sun"),
        ("Q: 日本語?\nA:", " Größe \U0001f30d"),
        ("the p", "lanet moves around"),  # tokens that the joint text does not have
    ]
    for context, continuation in texts:
        before, after = lm._pair(context, continuation)
        assert (before, after) == harness._encode_pair(context, continuation)
    assert lm._pair("the planet ", "moves") == lm._pair("the planet", " moves")
    assert len(lm._pair("the planet", " moves")[1]) == 1, "one token, or the space would not matter"


def test_fifty_strings_have_the_loglikelihoods_of_a_direct_forward_pass():
    """Contexts and continuations of all lengths in one call, in batches of mixed rows."""
    lm, draw = adapter(max_length=48, batch_size=7), random.Random(0)
    letters = string.ascii_letters + "é日 \n"
    texts = [
        ("".join(draw.choices(letters, k=draw.randrange(90))), f" {'x' * draw.randrange(30)}é")
        for _ in range(50)
    ]
    found = lm.loglikelihood(requests("loglikelihood", *texts))
    assert any(len(before.encode()) > 60 for before, _ in texts), "some contexts are cut"
    for (before, after), (value, greedy) in zip(texts, found, strict=True):
        kept = before.rstrip()  # spaces that end a context belong to the continuation
        n = len((before + after).encode()) - len(kept.encode())
        tokens = [*(before + after).encode()] if kept else [END, *(before + after).encode()]
        expected, is_greedy = direct(lm.scorer.task, tokens[-49:], n)
        assert value == pytest.approx(expected, abs=1e-4)
        assert greedy is is_greedy


def test_loglikelihoods_of_texts():
    lm = adapter(max_length=16)
    model = lm.scorer.task
    texts = [("Größe", " 日本"), ("", "from nothing"), ("a context that is too long", " here")]
    found = lm.loglikelihood(requests("loglikelihood", *texts))
    rows = [
        ([*"Größe 日本".encode()], 7),
        ([END, *b"from nothing"], 12),
        ([*b"ext that is too long here"][-17:], 5),
    ]
    for (value, greedy), row in zip(found, rows, strict=True):
        expected, is_greedy = direct(model, *row)
        assert value == pytest.approx(expected, abs=1e-4)
        assert greedy is is_greedy
    assert lm.requests == {"orbits": 3}
    assert lm.truncated == {"orbits": 1}
    assert found == adapter(max_length=16).loglikelihood(requests("loglikelihood", *texts))


@pytest.mark.parametrize("context", ["", "some text"])
def test_an_empty_continuation_is_refused(context):
    with pytest.raises(ValueError, match=r"the continuation '' of .* has no token of its own"):
        adapter().loglikelihood(requests("loglikelihood", (context, "")))


@pytest.mark.parametrize("max_length", [1, 5, 64])
def test_rolling_loglikelihoods_are_sums_over_the_harness_s_windows(max_length):
    lm = adapter(max_length=max_length)
    texts = ["a text longer than the model: Größe \U0001f30d", "b", ""]
    found = lm.loglikelihood_rolling(requests("loglikelihood_rolling", *((t,) for t in texts)))
    for text, value in zip(texts, found, strict=True):
        tokens = list(text.encode())
        windows = map(make_disjoint_window, get_rolling_token_windows(tokens, END, max_length, 1))
        expected = [direct(lm.scorer.task, before + after, len(after)) for before, after in windows]
        assert value == pytest.approx(sum(v for v, _ in expected), abs=1e-4)
    assert lm.truncated == {"orbits": 0}


def test_generation_drops_what_does_not_fit_and_stops_where_it_is_told():
    lm = adapter(max_length=16)
    settings = {"until": ["none of this"], "max_gen_toks": 6, "do_sample": False}
    asked = [("the oldest words go", settings), ("words go", settings), ("", settings)]
    found = lm.generate_until(requests("generate_until", *asked))
    tokens = [[*b"t words go"], [*b"words go"], [END]]
    for text, start in zip(found, tokens, strict=True):
        row = list(start)
        for _ in range(6):
            with torch.no_grad():
                row.append(int(lm.scorer.task({"tokens": torch.tensor([row])})[0, -1].argmax()))
        assert text == bytes(row[len(start) :]).decode(errors="replace")
    assert (lm.requests, lm.truncated) == ({"orbits": 3}, {"orbits": 1})
    for until in (found[1][0], [found[1][0]]):
        stop = requests("generate_until", ("words go", {**settings, "until": until}))
        assert lm.generate_until(stop) == [""]


def test_what_cannot_be_generated_is_refused():
    sampled = requests("generate_until", ("a", {"do_sample": True}))
    with pytest.raises(ValueError, match="decoding is greedy"):
        adapter(max_length=512).generate_until(sampled)
    long = requests("generate_until", ("a", {}))
    with pytest.raises(ValueError, match=r"max_gen_toks 256 leaves no room .* max_length 64"):
        adapter(max_length=64).generate_until(long)
