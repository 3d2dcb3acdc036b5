"""A model beyond its training length: losses row by row, formulas with another L, greedy text."""

import contextlib

import pytest
import torch

import attention
from attention.layer import Attention
from worldmodel import extrapolate
from worldmodel.extrapolate import at_length, losses
from worldmodel.models.text import TextModel

pytestmark = pytest.mark.usefixtures("quiet")

TRAINED, LONGER = 8, 20
SMALL = {"n_layer": 2, "n_head": 2, "head_dim": 4}
NEEDS_LENGTH = ("sigmoid", "relu_wortsman", "log_scaled", "elastic_seqlen", "elastic_fixed")
OTHERS = ("softmax", "lssar", "sigmoid_rowlen", "sigmoid_reweighted", "lazy", "alibi", "zeros_sm")


def model(name, **arguments):
    """Return an untrained model in float64 whose attention and answers are not nearly uniform."""
    task = TextModel("bytes", attention=name, attention_args=arguments or None, **SMALL).double()
    generator = torch.Generator().manual_seed(1)
    with torch.no_grad():
        task.embedding.weight.normal_(generator=generator)
        for parameter in task.gpt.parameters():
            if parameter.dim() == 2:
                parameter.mul_(3)
        for layer in task.modules():
            if isinstance(layer, Attention):
                for parameter in layer.learned.values():
                    parameter.normal_(generator=generator)
        # Answers that do not echo what was just read, nor favour the longest embedding.
        task.embedding.weight.div_(task.embedding.weight.norm(dim=1, keepdim=True))
        task.gpt.norm.weight.copy_(torch.tensor([1.0, -1.0]).repeat(task.gpt.width // 2))
    return task.eval()


def of_length(name, length):
    return model(name, length=length) if name in NEEDS_LENGTH else model(name)


def windows(n, length):
    generator = torch.Generator().manual_seed(2)
    return torch.randint(257, (n, length + 1), generator=generator)


def directly(task, rows):
    """Return losses [N, L], one row and one position after the other."""
    found = []
    with torch.no_grad():
        for row in rows:
            logits = task({"tokens": row[None, :-1]})[0]
            chances = [torch.exp(x - x.max()) / torch.exp(x - x.max()).sum() for x in logits]
            found.append([-float(torch.log(p[t])) for p, t in zip(chances, row[1:], strict=True)])
    return torch.tensor(found, dtype=torch.float64)


@pytest.mark.parametrize("length", [1, TRAINED, LONGER])
@pytest.mark.parametrize("name", OTHERS + NEEDS_LENGTH)
def test_losses_are_the_cross_entropy_of_every_token(name, length):
    task, rows = of_length(name, TRAINED), windows(5, length)
    found = losses(task, rows)
    assert found.shape == (5, length)
    assert found.dtype == torch.float32
    torch.testing.assert_close(found.double(), directly(task, rows), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("length", [LONGER, 200])
def test_large_batches_are_split_and_stay_in_order(length, monkeypatch):
    task, rows = model("softmax"), windows(5, length)
    whole, sizes = losses(task, rows), []
    # Attention weights are what is many in long windows, logits in short ones.
    held = max(SMALL["n_head"] * length**2, length * task.embedding.num_embeddings)
    assert (held == SMALL["n_head"] * length**2) is (length == 200)
    monkeypatch.setattr(extrapolate, "_MOST_NUMBERS", 2 * held)
    task.register_forward_pre_hook(lambda _, given: sizes.append(len(given[0]["tokens"])))
    torch.testing.assert_close(losses(task, rows), whole)
    assert sizes == [2, 2, 1]
    monkeypatch.setattr(extrapolate, "_MOST_NUMBERS", 1)
    torch.testing.assert_close(losses(task, rows), whole, msg="one row at least")


@pytest.mark.parametrize("name", NEEDS_LENGTH)
def test_a_formula_with_l_takes_the_length_that_is_asked(name):
    task, rebuilt, rows = (
        model(name, length=TRAINED),
        model(name, length=LONGER),
        windows(3, LONGER),
    )
    rebuilt.load_state_dict(task.state_dict())
    unchanged = losses(task, rows)
    with at_length(task, LONGER, None):
        found = losses(task, rows)
    torch.testing.assert_close(found.double(), directly(rebuilt, rows), rtol=1e-5, atol=1e-5)
    assert (found - unchanged).abs().max() > 1e-3, "its L matters"
    torch.testing.assert_close(losses(task, rows), unchanged, rtol=0, atol=0)


@pytest.mark.parametrize("name", OTHERS)
def test_other_formulas_do_not_depend_on_it(name):
    task, rows = model(name), windows(3, LONGER)
    unchanged = losses(task, rows)
    with at_length(task, 3 * LONGER, None):
        torch.testing.assert_close(losses(task, rows), unchanged, rtol=0, atol=0)


def test_re_weighting_that_is_off_stays_off():
    task, rows = model("lssar"), windows(2, LONGER)
    on = losses(task, rows)
    for layer in task.modules():
        if isinstance(layer, Attention):
            layer.set_sharpen(0.0)
    plain = model("lssa")
    plain.load_state_dict(task.state_dict())
    with at_length(task, LONGER, None):
        off = losses(task, rows)
    torch.testing.assert_close(off.double(), directly(plain, rows), rtol=1e-5, atol=1e-5)
    assert (on - off).abs().max() > 1e-3


@pytest.mark.parametrize("name", ["softmax", "lssar", "sigmoid"])
def test_dynamic_ntk_is_that_of_a_model_built_with_it(name):
    arguments = {"length": LONGER} if name in NEEDS_LENGTH else {}
    task = of_length(name, TRAINED)
    stretched = model(name, ntk_train_length=TRAINED, **arguments)
    stretched.load_state_dict(task.state_dict())
    rows = windows(3, LONGER)
    with at_length(task, LONGER, None):
        off = losses(task, rows)
    with at_length(task, LONGER, TRAINED):
        on = losses(task, rows)
    torch.testing.assert_close(on.double(), directly(stretched, rows), rtol=1e-5, atol=1e-5)
    assert (on - off).abs().max() > 1e-3


def test_dynamic_ntk_does_nothing_at_the_training_length_and_without_rotation():
    rows = windows(3, TRAINED)
    task = model("softmax")
    with at_length(task, TRAINED, TRAINED):
        found = losses(task, rows).double()
    torch.testing.assert_close(found, directly(task, rows), rtol=1e-5, atol=1e-5)
    task, rows = model("alibi"), windows(3, LONGER)
    before = losses(task, rows)
    with at_length(task, LONGER, TRAINED):
        torch.testing.assert_close(losses(task, rows), before, rtol=0, atol=0)


@pytest.mark.parametrize("name", ["softmax", "sigmoid"])
def test_the_model_is_restored_after_an_exception(name):
    task = of_length(name, TRAINED)
    layers = [m for m in task.modules() if isinstance(m, Attention)]
    layers[1].ntk_train_length = 5  # what differs between layers is restored layer by layer
    before = [(layer.spec, layer.ntk_train_length) for layer in layers]
    inside = []
    with contextlib.suppress(KeyboardInterrupt), at_length(task, LONGER, TRAINED):
        inside += [layer.ntk_train_length for layer in layers]
        raise KeyboardInterrupt
    assert inside == [TRAINED, TRAINED]
    assert [(layer.spec, layer.ntk_train_length) for layer in layers] == before
    if name == "sigmoid":
        with pytest.raises(ValueError, match="length of sigmoid must be"), at_length(task, 0, None):
            pass
        assert [(layer.spec, layer.ntk_train_length) for layer in layers] == before


def test_every_formula_with_l_is_among_those_tested():
    assert set(NEEDS_LENGTH) == {n for n in attention.names() if attention.get(n).needs_length}
