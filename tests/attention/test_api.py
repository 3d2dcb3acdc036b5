from functools import partial

import pytest
import torch

import attention
from attention import AttnSpec, attend, explain, linear, stages, weights
from attention.backends import BACKENDS

Q = torch.zeros(1, 2, 5, 8)


def complete(name):
    """Return what a variant cannot do without, but learned numbers."""
    return {"length": 5} if attention.get(name).needs_length else {}


def test_explain_says_who_serves_and_why_others_do_not():
    softmax = explain("softmax", Q)
    assert softmax.chosen == "sdpa"
    assert softmax.refused["reference"] == "not needed"
    lssar = explain("lssar", Q, p=3)
    assert lssar.chosen == "blocked"
    assert "softmax only" in lssar.refused["sdpa"]
    assert str(lssar).splitlines()[0] == "blocked: serves this call"
    assert len(str(lssar).splitlines()) == len(BACKENDS)
    assert explain("softmax", Q, backend="reference").chosen == "reference"
    assert repr(softmax).startswith("sdpa: serves this call\n")
    assert "<tr><th>sdpa</th><td>serves this call</td></tr>" in softmax._repr_html_()


WITH_FLA = (
    "cosformer", "deltanet", "gated_deltanet", "gla", "hawk", "hedgehog", "hgrn2", "linear",
    "mamba2", "performer", "retnet", "retnet_published", "rwkv4", "rwkv6", "rwkv7",
    "zeros",
)  # fmt: skip
BY_CHANNEL = ("hawk", "rwkv4")
"""Mixers whose recurrence is one of single channels, whatever the number of heads."""


@pytest.mark.parametrize("mixer", attention.names("linear"))
def test_explain_says_how_a_mixer_is_summed(mixer, monkeypatch):
    many, one = torch.zeros(1, 2, 8, 32), torch.zeros(1, 2, 1, 32)
    found = explain(mixer, many)
    assert found.chosen == "chunks"
    assert found.refused["recurrence"] == "not needed"
    assert ("fla" in found.refused) == (mixer in WITH_FLA)
    for kernel in set(found.refused) - {"recurrence"}:
        assert "its kernels run on CUDA" in found.refused[kernel]
    assert explain(mixer, one).chosen == "recurrence"
    assert "one position" in explain(mixer, one).refused["chunks"]
    with pytest.raises(ValueError, match=f"{mixer} is a linear mixer, which has no backend"):
        explain(mixer, many, backend="triton")
    with pytest.raises(TypeError, match="not 'p'"):
        explain(mixer, many, p=3)


@pytest.mark.parametrize("mixer", WITH_FLA)
def test_explain_asks_of_the_channels_that_the_kernels_get(mixer, monkeypatch):
    asked = []
    per_channel = mixer in ("gla", "hgrn2", "rwkv6")
    name = "delta_refusal" if "deltanet" in mixer else "head_refusal"
    name = "refusal" if per_channel else name
    name = "channel_refusal" if mixer in BY_CHANNEL else name
    name = "vector_refusal" if mixer == "rwkv7" else name
    assert linear.get(mixer).kernels["fla"] is getattr(linear.fla, name)

    def refusal(k, v):
        asked.append((k.shape[-1], v.shape[-1]))
        return "no"

    monkeypatch.setattr(linear.get(mixer), "kernels", {"fla": refusal})
    monkeypatch.setattr(linear.fla, name, refusal)
    explain(mixer, torch.zeros(1, 2, 8, 32))
    linear.build(mixer, n_head=2, head_dim=32)(torch.zeros(1, 8, 64))
    assert len(set(asked)) == 1 or mixer in BY_CHANNEL
    assert len(asked) == 2


def test_every_variant_has_a_backend_and_the_reference_serves_all(name):
    found = explain(name, Q, **complete(name))
    assert found.chosen in BACKENDS
    assert set(found.refused) == set(BACKENDS) - {found.chosen}
    assert explain(name, Q, backend="reference", **complete(name)).chosen == "reference"


def test_a_forced_backend_that_cannot_serve_says_why(name, variant):
    arguments = variant(name, Q).given
    learned = arguments.pop("parameters")
    calls = (
        lambda: attend(Q, Q, Q, name, backend="sdpa", parameters=learned, **arguments),
        lambda: explain(name, Q, backend="sdpa", **arguments),
    )
    for call in calls:
        if name in ("softmax", "phi_exp"):  # one function
            call()
            continue
        with pytest.raises(ValueError, match=f"'sdpa' does not serve {name}: .*softmax only"):
            call()


def test_unknown_backend_lists_the_choices():
    with pytest.raises(ValueError, match="unknown backend 'cuda'; choose from auto, ") as error:
        attend(Q, Q, Q, backend="cuda")
    assert all(name in str(error.value) for name in BACKENDS)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("sofmax", "softmax"),
        ("lsar", "lssar"),
        ("zeros-sm", "zeros_sm"),
        ("zeross", "zeros"),
        ("sparse_max", "sparsemax"),
        ("elastic_seq_len", "elastic_seqlen"),
        ("LSSA", None),
        ("", None),
    ],
)
def test_unknown_name_suggests_the_near_ones_or_lists_all(typed, meant):
    calls = (
        lambda: attend(Q, Q, Q, typed),
        lambda: weights(Q, Q, typed),
        lambda: stages(Q, Q, typed),
        lambda: explain(typed, Q),
        lambda: attention.get(typed),
        lambda: attention.build(typed, n_head=1, head_dim=4),
    )
    for call in calls:
        with pytest.raises(ValueError, match="unknown attention") as error:
            call()
        said = str(error.value)
        if meant:
            assert f"did you mean {meant}" in said
            assert "`python -m attention ls` lists all" in said
        else:
            choices = said.split("choose from")[1]
            assert all(name in choices for name in attention.names("all"))


def test_p_must_be_a_positive_number(reweighted):
    for p in (0, -1, float("nan"), float("inf"), None, "3"):
        with pytest.raises(ValueError, match=f"p of .*{p}"):
            attend(Q, Q, Q, reweighted, p=p)
        with pytest.raises(ValueError, match=f"p of .*{p}"):
            attention.build(reweighted, n_head=1, head_dim=4, p=p)


@pytest.mark.parametrize(
    ("name", "argument", "value"),
    [
        ("cosine", "g", 0),
        ("relu_shen", "gamma", -1.0),
        ("sigmoid", "length", 0),
        ("sigmoid", "length", 3.5),
        ("sigmoid", "length", None),
        ("sliding_window", "window", 0),
        ("sliding_window", "window", 2.5),
        ("streaming", "sinks", 0.5),
        ("lazy", "max_distance", 0),
        ("elastic", "tau", float("nan")),
        ("elastic", "tau", "1"),
        ("lssar", "p", True),
        ("sliding_window", "window", True),
    ],
)
def test_arguments_out_of_range_are_named(name, argument, value):
    with pytest.raises(ValueError, match=f"{argument} of {name} must be a .*{value}"):
        attention.get(name, **{argument: value})


def test_an_argument_the_variant_does_not_take_is_named(name):
    takes = attention.get(name).arguments
    everything = {"p", "g", "gamma", "tau", "length", "window", "sinks", "max_distance", "beyond"}
    assert set(takes) <= everything
    for wrong in everything - set(takes):
        with pytest.raises(TypeError, match=f"{name} takes .* not '{wrong}'"):
            attend(Q, Q, Q, name, **{wrong: 1.0})
    with pytest.raises(TypeError, match=f"{name} takes .* not 'phi'"):
        attend(Q, Q, Q, name, phi="relu")


@pytest.mark.parametrize(
    ("name", "argument", "message"),
    [
        ("gla", "window", "gla has no window; sliding_window and streaming take one"),
        ("softmax", "lower_bound", "softmax has no lower_bound; hgrn1 and hgrn2 take one"),
        ("gla", "backend", "gla has no backend; every quadratic variant takes one"),
        ("zeros", "n_kv_head", "zeros has no n_kv_head; every quadratic variant takes one"),
        ("gla", "rope_base", "gla has no rope_base; every quadratic variant, .* and zeros take"),
        ("lssar", "chunk", "lssar has no chunk; every linear mixer takes one"),
        (
            "lssar",
            "seed",
            "lssar has no seed; it takes p, n_kv_head, rope_base, .*, index_dim$",
        ),
        ("mamba2", "seed", "mamba2 has no seed; it takes state, chunk$"),
    ],
)
def test_who_takes_an_argument_is_named(name, argument, message):
    for call in (attention.label, partial(attention.build, n_head=1, head_dim=4)):
        with pytest.raises(TypeError, match=message):
            call(name, **{argument: 3})


@pytest.mark.parametrize(
    ("choices", "message"),
    [
        ({"phi": "tanh"}, "unknown phi 'tanh' of x; choose from exp, "),
        ({"scale": "none"}, "unknown scale 'none' of x; choose from"),
        ({"beyond": "wrap"}, "unknown beyond 'wrap' of x; choose from zero, last, refuse"),
        ({"p": 0.0}, "p of x must be a positive number, got 0.0"),
        ({"sink": True, "phi": "relu"}, "sink of x needs phi exp"),
        ({"normalise": "sparsemax", "phi": "relu"}, "sparsemax of x replaces phi"),
        ({"modify": "zero_sum", "normalise": "none"}, "zero_sum of x needs rows that sum to 1"),
        ({"modify": "recentre", "phi": "gelu"}, "recentre of x needs rows that sum to 1"),
    ],
)
def test_a_specification_checks_itself(choices, message):
    with pytest.raises(ValueError, match=message):
        AttnSpec("x", **choices)


def shaped(*shape, dtype=torch.float32):
    return torch.zeros(*shape, dtype=dtype)


@pytest.mark.parametrize(
    ("q", "k", "v", "error", "message"),
    [
        (shaped(2, 5, 8), Q, Q, ValueError, r"q must be \[B, H, L, D\].*\(2, 5, 8\)"),
        (Q, shaped(1, 1, 2, 5, 8), Q, ValueError, "k must be"),
        (Q, Q, shaped(5), ValueError, "v must be"),
        (Q, Q, shaped(1, 2, 4, 8), ValueError, "k and v differ"),
        (Q, Q, shaped(1, 3, 5, 8), ValueError, "k and v differ"),
        (Q, shaped(1, 2, 5, 4), shaped(1, 2, 5, 4), ValueError, "q and k differ"),
        (Q, shaped(2, 2, 5, 8), shaped(2, 2, 5, 8), ValueError, "q and k differ"),
        (
            Q,
            shaped(1, 4, 5, 8),
            shaped(1, 4, 5, 8),
            ValueError,
            "2 heads of q are no multiple of 4",
        ),
        (shaped(1, 2, 6, 8), Q, Q, ValueError, "more queries than keys: 6 and 5"),
        (Q.numpy(), Q, Q, TypeError, "q must be a tensor of torch, got ndarray"),
        (Q.long(), Q, Q, TypeError, "q must be a floating tensor, got torch.int64"),
        (Q, Q.int(), Q, TypeError, "k must be a floating tensor"),
        (Q, Q, Q.bool(), TypeError, "v must be a floating tensor"),
        (Q, Q, Q.half(), TypeError, "q, k and v differ in dtype: .*float32 and torch.float16"),
        (Q.double(), Q, Q, TypeError, "q, k and v differ in dtype: torch.float64"),
    ],
)
def test_tensors_that_do_not_fit_are_refused(q, k, v, error, message, variant, monkeypatch):
    def computed(*_):
        raise AssertionError("computed before it was checked")

    arguments = variant("lazy", Q).given
    monkeypatch.setattr(attention.reference, "stages", computed)
    with pytest.raises(error, match=message):
        attend(q, k, v, "lazy", **arguments)


def test_weights_and_stages_check_their_tensors():
    for call in (weights, stages):
        with pytest.raises(ValueError, match="q must be"):
            call(shaped(5, 8), Q)
        with pytest.raises(TypeError, match="q must be a floating"):
            call(Q.long(), Q)


def test_a_missing_length_is_named(name, variant):
    these = variant(name, Q)
    arguments = {key: value for key, value in these.arguments.items() if key != "length"}
    if not these.spec.needs_length:
        assert "length" not in these.arguments
        return
    for call in (
        lambda: attend(Q, Q, Q, name, parameters=these.parameters, **arguments),
        lambda: weights(Q, Q, name, these.parameters, **arguments),
        lambda: attention.build(name, n_head=2, head_dim=8, **arguments),
    ):
        with pytest.raises(ValueError, match=f"{name} needs the sequence length: length="):
            call()


def test_parameters_that_do_not_fit_are_refused(name, variant):
    these = variant(name, Q)
    wanted = these.parameters
    assert set(wanted) == {*these.spec.learned, *(["gates"] if these.spec.gated else [])}

    def call(parameters):
        return lambda: attend(Q, Q, Q, name, parameters=parameters, **these.arguments)

    with pytest.raises(ValueError, match=f"{name} takes parameters .*got .*'slope': \\(2,\\)"):
        call({**wanted, "slope": torch.zeros(2)})()
    for key, value in wanted.items():
        left = {other: x for other, x in wanted.items() if other != key}
        for wrong in (left, {**left, key: value[..., :1]}, {**left, key: value[..., None]}):
            with pytest.raises(ValueError, match=f"{name} takes parameters .*'{key}': "):
                call(wrong)()
        with pytest.raises(TypeError, match=f"parameter {key} must be a floating tensor"):
            call({**left, key: value.long()})()
    if wanted:
        with pytest.raises(ValueError, match=f"{name} takes parameters .*got none"):
            call(None)()
    call(wanted)()


@pytest.mark.parametrize("name", ["lazy", "lazy_no_elastic"])
def test_a_distance_past_the_table_is_refused_if_asked(name, variant, monkeypatch):
    these = variant(name, Q, max_distance=4, beyond="refuse")
    monkeypatch.setattr(attention.reference, "stages", None)  # refused before computation
    with pytest.raises(ValueError, match="5 keys are more than the max_distance 4 of lazy"):
        attend(Q, Q, Q, name, **these.given)


def test_public_names():
    assert {"AttnSpec", "attend", "build", "explain", "get", "names", "stages", "weights"} <= set(
        attention.__all__
    )
    assert all(hasattr(attention, public) for public in attention.__all__)
    assert {"softmax", "lssa", "lssar", "softmax_reweighted"} <= set(attention.names())
    assert attention.get("lssar").p == 15


@pytest.mark.parametrize("name", attention.names())
def test_a_label_says_what_of_the_module_changes_the_result(name):
    plain = attention.label(name)
    assert attention.label(name, backend="eager", rope_base=10_000.0) == plain
    assert attention.label(name, rope_base=None) == f"{plain} rope_base=None"
    assert attention.label(name, n_kv_head=1, ntk_train_length=8) == (
        f"{plain} n_kv_head=1 ntk_train_length=8"
    )


@pytest.mark.parametrize("tau", [0, 1])
def test_a_whole_number_starts_an_offset(tau):
    module = attention.build("elastic", n_head=2, head_dim=4, tau=tau)
    assert module.learned["tau"].tolist() == [float(tau)] * 2
    module(torch.randn(1, 3, 8)).sum().backward()
    assert module.learned["tau"].grad is not None


@pytest.mark.parametrize("name", ["softmax", "lssar", "sparsemax"])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_an_output_has_the_type_of_its_queries_under_autocast(name, dtype):
    q, k, v = torch.randn(3, 1, 2, 8, 8).to(dtype)
    with torch.autocast("cpu", torch.bfloat16):
        assert attend(q, k, v, name).dtype == dtype


@pytest.mark.parametrize(
    "name", ["softmax", "lssar", "sparsemax", "entmax", "softmax_recentred_l1"]
)
def test_no_position_has_no_weights(name):
    empty = torch.zeros(1, 2, 0, 8)
    assert weights(empty, empty, name).shape == (1, 2, 0, 0)
    layer = attention.build(name, n_head=2, head_dim=8, causal=False)
    assert layer(torch.zeros(1, 0, 16)).shape == (1, 0, 16)
