"""Attention variants and linear mixers as the rows of a benchmark."""

import pytest
import torch

import attention
from attention.parts.projections import TensorProduct
from benchmarks.attention_names import ABLATIONS, LAYERS
from benchmarks.published import tables as published
from benchmarks.variants import Variant, variants


def test_rows_are_variants_with_every_exponent_and_mixers_once():
    found = variants(["softmax", "lssar", "zeros", "linear"], (3.0, 15.0), sharpen_after=5)
    assert [row.label for row in found] == [
        "softmax",
        "lssar p=3",
        "lssar p=15",
        "zeros",
        "linear",
        "lssar p=3, off to step 5",
        "lssar p=15, off to step 5",
    ]
    assert variants(["lssar"]) == [Variant("lssar", attention.get("lssar").p)]


@pytest.mark.parametrize("name", attention.names("all"))
def test_arguments_build_the_module(name):
    (row,) = variants([name])
    arguments = row.arguments(20)
    assert ("length" in arguments) is ("length" in attention.arguments(name))
    if "max_length" in attention.arguments(name):
        assert arguments["max_length"] == 1024, "tests may be longer than the training"
        assert row.arguments(2000)["max_length"] == 2000
    if "window" in attention.arguments(name):
        assert arguments["window"] == 20
        assert row.arguments(2000)["window"] == 256, "that of the variant"
    module = attention.build(name, n_head=1, head_dim=4, **arguments)
    assert repr(name) in repr(module)
    assert name in attention.linear.names() or module.spec.label == row.label


# ZeroS, Tables 5, 6 and 8: "w/ 0-th", "w/o RWSM", "w/o Gating", "w/o Norm", "w/o Angular", ...
LEFT_OUT = {
    "zeros_zeroth": {"zeroth": "all"},
    "zeros_softmax": {"radial": "softmax"},
    "zeros_no_gate": {"gated": False},
    "zeros_no_norm": {"norm": False},
    "zeros_no_angular": {"angular": "none"},
    "zeros_no_position": {"angular": "plain"},
    "zeros_additive_position": {"angular": "additive"},
    "zeros_no_radial": {"radial": "none"},
    "zeros_radial_linear": {"logits": "linear"},
    "zeros_radial_quadratic": {"logits": "quadratic"},
    "zeros_radial_distance": {"logits": "distance"},
    "zeros_radial_mean": {"logits": "averaging"},
}


@pytest.mark.parametrize("name", ABLATIONS)
def test_an_ablation_is_built_with_its_arguments_under_its_own_name(name):
    (row,) = variants([name])
    assert row.label == name
    module = attention.build(row.attention, n_head=1, head_dim=4, **row.arguments(20))
    if name == "lazy_no_rope":
        assert module.spec.name == "lazy"
        assert module.rope_base is None
        assert not row.stretches
        return
    if name == "elastic_seqlen_from_zero":
        assert module.spec.name == "elastic_seqlen"
        assert module.learned["tau"].tolist() == [0.0]
        return
    changed = {k: v for k, v in module.args.items() if v != module.arguments[k]}
    assert changed == LEFT_OUT[name]


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_is_built_with_its_arguments_under_its_own_name(name):
    re_weighted = name.startswith("lssar")
    rows = variants([name], (3.0, 15.0), sharpen_after=4 if re_weighted else 0)
    if not re_weighted:
        assert [row.label for row in rows] == [name]
    else:
        assert [row.label for row in rows] == [
            f"{name} {rest}"
            for rest in ("p=3", "p=15", "p=3, off to step 4", "p=15, off to step 4")
        ]
        assert variants([name]) == [Variant(name, attention.get("lssar").p)]
    module = attention.build(rows[0].attention, n_head=2, head_dim=8, **rows[0].arguments(20))
    kind, *parts = name.split("_")
    assert module.spec.name == kind
    assert isinstance(module.key, TensorProduct) == ("tpa" in parts)
    selects = [part for part in parts if part.startswith("dsa")]
    assert ([] if module.selection is None else [f"dsa{module.selection.top_k}"]) == selects


def test_ablations_bear_the_names_of_published_rows():
    rows = {x.row for t in ("5", "6", "8_ablation") for x in published.get(f"zeros_table_{t}").rows}
    rows |= {x.row for x in published.get("lazy_table_2").rows}
    rows |= {"lazy_no_rope"}  # of a figure, which prints no number
    assert set(ABLATIONS) <= rows


@pytest.mark.parametrize("name", [*attention.names("all"), *ABLATIONS])
def test_models_with_positions_of_their_own_have_no_rotary_ones(name):
    (row,) = variants([name])
    arguments = row.arguments(20, rotary=False)
    module = attention.build(row.attention, n_head=1, head_dim=4, **arguments)
    if row.attention == "zeros":
        assert module.args["angular"] in ("plain", "additive", "none")
    elif row.attention not in attention.linear.names():
        assert module.rope_base is None


def test_linear_attention_knows_order_by_rotary_positions_alone():
    x, order = torch.randn(1, 9, 4), [3, 0, 6, 1, 7, 2, 5, 4, 8]
    last = {}
    for rotary in (False, True):
        torch.manual_seed(0)
        arguments = Variant("linear").arguments(9, rotary=rotary)
        module = attention.build("linear", n_head=1, head_dim=4, **arguments)
        last[rotary] = (module(x)[:, -1], module(x[:, order])[:, -1])
    torch.testing.assert_close(*last[False])
    assert (last[True][0] - last[True][1]).abs().max() > 1e-3


def test_what_dynamic_ntk_changes():
    stretched = {v.name for v in variants(attention.names("all")) if v.stretches}
    for name in attention.names("all"):
        torch.manual_seed(0)
        module = attention.build(name, n_head=1, head_dim=4, **Variant(name).arguments(8))
        x = torch.randn(1, 16, 4)
        before = module(x)
        module.ntk_train_length = 8
        assert torch.equal(module(x), before) is (name not in stretched), name


def test_rows_are_shown_once():
    assert variants(["softmax", "lssar", "softmax"], (3.0, 3.0)) == [
        Variant("softmax"),
        Variant("lssar", 3.0),
    ]


@pytest.mark.parametrize(
    ("arguments", "error", "message"),
    [
        (("lssar", -1.0), ValueError, "p of lssar"),
        (("zeros_no_gate", 3.0), TypeError, "zeros has no p"),
        (("lssar", 3.0, -5), ValueError, "sharpen_after must be at least 0, got -5"),
    ],
)
def test_a_row_that_cannot_be_is_refused(arguments, error, message):
    with pytest.raises(error, match=message):
        Variant(*arguments)
