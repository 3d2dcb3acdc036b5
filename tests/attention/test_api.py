import pytest
import torch

import attention
from attention import AttnSpec, attend, explain, weights
from attention.api import BACKENDS

Q = torch.zeros(1, 2, 5, 8)


def test_explain_says_who_serves_and_why_others_do_not():
    softmax = explain("softmax", Q)
    assert softmax.chosen == "sdpa"
    assert softmax.refused == {"reference": "not needed"}
    lssar = explain("lssar", Q, p=3)
    assert lssar.chosen == "reference"
    assert "softmax only" in lssar.refused["sdpa"]
    assert str(lssar).splitlines()[0] == "reference: serves this call"
    assert len(str(lssar).splitlines()) == len(BACKENDS)
    assert explain("softmax", Q, backend="reference").chosen == "reference"


@pytest.mark.parametrize("name", attention.names())
def test_every_variant_has_a_backend_and_the_reference_serves_all(name):
    assert explain(name, Q).chosen in BACKENDS
    assert set(explain(name, Q).refused) == set(BACKENDS) - {explain(name, Q).chosen}
    assert explain(name, Q, backend="reference").chosen == "reference"


@pytest.mark.parametrize("name", ["lssa", "lssar", "softmax_reweighted"])
def test_a_forced_backend_that_cannot_serve_says_why(name):
    for call in (
        lambda: attend(Q, Q, Q, name, backend="sdpa"),
        lambda: explain(name, Q, backend="sdpa"),
    ):
        with pytest.raises(ValueError, match=f"'sdpa' does not serve {name}: .*softmax only"):
            call()


def test_unknown_backend_lists_the_choices():
    with pytest.raises(ValueError, match="unknown backend 'cuda'; choose from auto, ") as error:
        attend(Q, Q, Q, backend="cuda")
    assert all(name in str(error.value) for name in BACKENDS)


@pytest.mark.parametrize(
    ("typed", "meant"), [("sofmax", "softmax"), ("lsar", "lssar"), ("LSSA", None), ("", None)]
)
def test_unknown_name_suggests_the_near_one_and_lists_all(typed, meant):
    calls = (
        lambda: attend(Q, Q, Q, typed),
        lambda: weights(Q, Q, typed),
        lambda: explain(typed, Q),
        lambda: attention.get(typed),
        lambda: attention.build(typed, n_head=1, head_dim=4),
    )
    for call in calls:
        with pytest.raises(ValueError, match="unknown attention") as error:
            call()
        assert all(name in str(error.value) for name in attention.names())
        if meant:
            assert f"did you mean {meant}?" in str(error.value)


@pytest.mark.parametrize("p", [0, -1, float("nan"), None])
def test_p_must_be_a_positive_number(p):
    for call in (
        lambda: attend(Q, Q, Q, "lssar", p=p),
        lambda: attention.build("softmax_reweighted", n_head=1, head_dim=4, p=p),
    ):
        with pytest.raises(ValueError, match=f"p .*{p}"):
            call()


@pytest.mark.parametrize("name", ["softmax", "lssa", "lssar"])
def test_an_argument_the_variant_does_not_take_is_named(name):
    wrong = "tau" if name == "lssar" else "p"
    with pytest.raises(TypeError, match=f"{name} takes .* not '{wrong}'"):
        attend(Q, Q, Q, name, **{wrong: 1.0})


@pytest.mark.parametrize("p", [0.0, -3.0])
def test_a_specification_checks_itself(p):
    with pytest.raises(ValueError, match="unknown phi 'tanh'; choose from"):
        AttnSpec("x", phi="tanh")
    with pytest.raises(ValueError, match="unknown scale 'none'; choose from"):
        AttnSpec("x", scale="none")
    with pytest.raises(ValueError, match="p must be positive"):
        AttnSpec("x", p=p)


def test_without_reweighting_is_the_first_stage(tensors):
    q, k, _ = tensors(9)
    for name, first in (("lssar", "lssa"), ("softmax_reweighted", "softmax")):
        stage = attention.get(name).without_reweighting()
        found = attention.reference.weights(q, k, stage)
        assert torch.equal(found, weights(q, k, first))


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
        (shaped(1, 2, 6, 8), Q, Q, ValueError, "more queries than keys: 6 and 5"),
        (Q.long(), Q, Q, TypeError, "q must be a floating tensor, got torch.int64"),
        (Q, Q.int(), Q, TypeError, "k must be a floating tensor"),
        (Q, Q, Q.bool(), TypeError, "v must be a floating tensor"),
    ],
)
@pytest.mark.parametrize("name", ["softmax", "lssar"])
def test_tensors_that_do_not_fit_are_refused(q, k, v, error, message, name):
    with pytest.raises(error, match=message):
        attend(q, k, v, name)


def test_weights_checks_its_tensors():
    with pytest.raises(ValueError, match="q must be"):
        weights(shaped(5, 8), Q)
    with pytest.raises(TypeError, match="q must be a floating"):
        weights(Q.long(), Q)


def test_public_names():
    assert set(attention.__all__) == {
        "AttnSpec", "attend", "build", "explain", "get", "names", "weights"
    }  # fmt: skip
    assert {"softmax", "lssa", "lssar", "softmax_reweighted"} <= set(attention.names())
    assert attention.get("lssar").p == 15
