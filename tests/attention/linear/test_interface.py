"""How every linear mixer is named, built and refused, and how one is added."""

import copy
import importlib
import json
import sys
from functools import partial

import pytest
import torch

import attention
from attention import linear
from attention.__main__ import main as listing
from attention.listing import takes
from benchmarks.variants import variants
from tests.attention.linear.by_name import arguments_of, inputs, mixer_of
from worldmodel.models.backbone import GPT


def test_what_it_is_called_and_what_it_takes(name):
    mixer = linear.get(name)
    assert mixer.__module__.split(".")[:2] == ["attention", "linear"]
    assert mixer.__module__.split(".")[-1] == name
    assert importlib.import_module(mixer.__module__).MIXER is mixer
    assert mixer.source
    assert mixer.about.endswith(".")
    # The listing reads the file, without importing it: arguments of a base class it would not see.
    assert set(takes(name)) == {*mixer.arguments, "chunk"}
    assert json.loads(json.dumps(dict(mixer.arguments))) == dict(mixer.arguments)
    assert attention.arguments(name) == tuple(mixer.arguments)
    assert attention.label(name) == attention.label(name, chunk=8) == name
    assert attention.build(name, n_head=1, head_dim=4, **mixer.arguments).label == name
    assert name in attention.names("all")
    assert name not in attention.names()


def test_bad_arguments_are_refused(name):
    for argument in ("p", "window", "backend"):
        for call in (attention.label, partial(attention.build, n_head=2, head_dim=4)):
            with pytest.raises(TypeError, match=f"{name} has no {argument}; .* takes? one") as said:
                call(name, **{argument: 3})
            if argument == "window":
                assert "sliding_window and streaming take one" in str(said.value)
    takes = ", ".join(["chunk", *linear.get(name).arguments])
    with pytest.raises(TypeError, match=f"{name} takes {takes}, not 'window'"):
        linear.build(name, n_head=2, head_dim=4, window=3)
    for size in ("n_head", "head_dim", "chunk", "n_layer"):
        for wrong in (0, 2.5, True, "junk"):
            with pytest.raises(ValueError, match=f"{size} must be .*, got {wrong!r}"):
                attention.build(name, **{"n_head": 2, "head_dim": 4, size: wrong})
    for wrong in (-1, True, "x"):
        with pytest.raises(ValueError, match=f"layer must be .*, got {wrong!r}"):
            attention.build(name, n_head=2, head_dim=4, layer=wrong)
    with pytest.raises(ValueError, match="n_layer must be at least 3, got 2"):
        attention.build(name, n_head=2, head_dim=4, layer=2, n_layer=2)
    with pytest.raises(ValueError, match="chunk must be a whole number, got 'junk'"):
        attention.label(name, chunk="junk")


def test_what_needs_weights_says_who_has_them(name):
    q = torch.zeros(1, 1, 3, 4)
    for call in (
        lambda: attention.get(name),
        lambda: attention.attend(q, q, q, name),
        lambda: attention.weights(q, q, name),
    ):
        with pytest.raises(ValueError, match=f"{name} is a linear mixer, .* choose from softmax"):
            call()
    with pytest.raises(ValueError, match=f"{name} has no attention weights; .* softmax"):
        attention.layer.with_weights(mixer_of(name))


def test_a_gpt_is_made_of_it_and_decodes_with_it(name):
    torch.manual_seed(0)
    gpt = GPT(name, {"chunk": 4}, n_layer=2, n_head=2, head_dim=4).double()
    places = [(block.attention.layer, block.attention.n_layer) for block in gpt.blocks]
    assert places == [(0, 2), (1, 2)]
    x = inputs(9)
    whole = gpt(x)
    caches, found = gpt.new_caches(), []
    for step in x.split(1, dim=1):
        for block, cache in zip(gpt.blocks, caches, strict=True):
            step = block(step, cache)
        found.append(gpt.norm(step))
    torch.testing.assert_close(torch.cat(found, dim=1), whole, rtol=0, atol=1e-9)


MEAN = """
from attention.linear.mixer import Mixer


class RunningMean(Mixer):
    name = "running_mean"
    source = "nowhere"
    about = "The mean of what came before."
    kept = "H D"

    def __init__(self, n_head, head_dim, **args):
        super().__init__(n_head, head_dim, **args)
        self.project = torch.nn.Linear(self.width, self.width, bias=False)

    def _mix(self, x, cache, chunk):
        total = x.cumsum(dim=1) + cache.tensors.get("total", 0)
        cache.tensors = {**cache.tensors, "total": total[:, -1:].clone()}
        count = torch.arange(x.shape[1]) + (cache.length + 1)
        return self.project(total / count[:, None].to(x))


MIXER = RunningMean
"""


def test_a_mixer_is_added_by_one_file(tmp_path, monkeypatch, capsys):
    (tmp_path / "running_mean.py").write_text(f"import torch\n{MEAN}", "utf-8")
    monkeypatch.setattr(linear, "__path__", [*linear.__path__, str(tmp_path)])
    linear._catalogue.cache_clear()
    try:
        assert "running_mean" in attention.names("all")
        x = inputs(6)
        test_a_gpt_is_made_of_it_and_decodes_with_it("running_mean")
        mixer = mixer_of("running_mean")
        expected = mixer.project(x.cumsum(dim=1) / torch.arange(1, 7)[:, None])
        torch.testing.assert_close(mixer(x), expected, rtol=0, atol=1e-12)
        torch.testing.assert_close(mixer.recurrent(x), expected, rtol=0, atol=1e-12)
        assert variants(("running_mean",))[0].label == "running_mean"
        listing(["ls"])
        assert "The mean of what came before." in capsys.readouterr().out
    finally:
        monkeypatch.undo()
        linear._catalogue.cache_clear()
        sys.modules.pop("attention.linear.running_mean", None)


def test_a_gpt_refuses_to_read_ahead():
    with pytest.raises(ValueError, match=r"zeros causal=False sees .* GPT .* leave causal=False"):
        GPT("zeros", {"causal": False}, n_layer=1, n_head=2, head_dim=4)


@pytest.mark.parametrize("name", [x for x in linear.names() if "max_length" in arguments_of(x)])
def test_longer_sequences_than_the_longest_are_refused(name):
    mixer, x = mixer_of(name, max_length=7), inputs(8)
    whole = mixer(x[:, :7])
    for run in (mixer, mixer.recurrent):
        with pytest.raises(ValueError, match=f"{name} was built for max_length=7 .* got 8: raise"):
            run(x)
        cache = mixer.new_cache()
        torch.testing.assert_close(run(x[:, :7], cache), whole, rtol=0, atol=1e-9)
        kept = copy.copy(cache)
        with pytest.raises(ValueError, match="max_length=7 positions, got 8"):
            run(x[:, 7:], cache)
        assert cache == kept, "a refused position leaves the cache as it was"


SIZES = [
    (name, argument)
    for name in linear.names()
    for argument, default in arguments_of(name).items()
    if isinstance(default, int) and not isinstance(default, bool)
]
"""Arguments that are whole numbers: positions, states, segments."""


@pytest.mark.parametrize(("name", "argument"), SIZES)
def test_a_size_is_a_whole_number_above_0(name, argument):
    for wrong in (0, -3, 2.5, "many", True, None):
        with pytest.raises(ValueError, match=f"{argument} of {name} must be .*, got {wrong!r}"):
            linear.build(name, n_head=2, head_dim=4, **{argument: wrong})


@pytest.mark.parametrize(
    ("name", "sizes", "message"),
    [
        ("gla", {"head_dim": 5}, "keys of head_dim / 2 channels: 5 is odd"),
        ("gss", {"head_dim": 3}, "needs a width that is a multiple of 4, got 6"),
        ("s4", {"state": 5}, "state of s4 must be even, got 5"),
        ("s4d", {"state": 5}, "state of s4d must be even, got 5"),
        ("flash_gau", {"state": 3}, "state of flash_gau must be even for RoPE, got 3"),
        *(
            (name, {"head_dim": 5}, "rotates pairs of channels: head_dim 5 is odd")
            for name in ("retnet", "retnet_published", "titans", "ttt_linear")
        ),
        *(
            (name, {"head_dim": 3}, "RoPE needs an even head_dim, got 3")
            for name in ("hedgehog", "linear", "performer", "zeros")
        ),
    ],
)
def test_sizes_that_do_not_divide_are_refused(name, sizes, message):
    with pytest.raises(ValueError, match=message):
        linear.build(name, **{"n_head": 2, "head_dim": 4, **sizes})


@pytest.mark.parametrize("name", ["hgrn1", "hgrn2"])
def test_a_lower_bound_is_a_share_below_1(name):
    for wrong in (-0.1, 1.0, float("nan"), "high", True, False):
        with pytest.raises(ValueError, match=rf"lower_bound of {name} must be in \[0, 1\)"):
            linear.build(name, n_head=2, head_dim=4, lower_bound=wrong)


@pytest.mark.parametrize("name", [x for x in linear.names() if "rope_base" in arguments_of(x)])
def test_a_base_is_a_positive_number(name):
    for wrong in (0, -1.0, "10", True, float("inf")):
        message = f"rope_base of {name} must be a .* number, got {wrong!r}"
        with pytest.raises(ValueError, match=message):
            linear.build(name, n_head=2, head_dim=4, rope_base=wrong)
