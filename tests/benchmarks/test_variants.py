"""Attention variants and linear mixers as the rows of a benchmark."""

import pytest

import attention
from benchmarks.tasks import sink
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


@pytest.mark.parametrize("name", attention.all_names())
def test_arguments_build_the_module(name):
    (row,) = variants([name])
    arguments = row.arguments(20)
    assert ("length" in arguments) is ("length" in attention.arguments(name))
    module = attention.build(name, n_head=1, head_dim=4, **arguments)
    assert repr(name) in repr(module)
    assert name in attention.linear.names() or module.spec.label == row.label


def test_an_unknown_name_is_refused():
    with pytest.raises(ValueError, match=r"unknown attention 'zeross' \(did you mean zeros"):
        variants(["zeross"])


def test_the_sink_benchmark_refuses_what_has_no_weights():
    task = sink.TASK
    settings = task.presets["tiny"]
    with pytest.raises(ValueError, match="zeros is a linear mixer, which has no attention weights"):
        task.cells(type(settings)(**{**vars(settings), "attentions": ("softmax", "zeros")}))
