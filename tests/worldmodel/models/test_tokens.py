"""The token model: its blocks, its positions, what its loss asks for, and its checkpoints."""

import math

import numpy as np
import pytest
import torch
from torch.nn import functional

from tests.worldmodel.trainings import save, trainer
from worldmodel.models import optim
from worldmodel.models.load import load_model
from worldmodel.models.mlp import SwiGLU, build_mlp, build_norm
from worldmodel.models.text import IGNORE, TokenModel

pytestmark = pytest.mark.usefixtures("quiet")

VOCAB = 11
SMALL = {"n_layer": 2, "n_head": 2, "head_dim": 4}


def task(**changes):
    """Return a model whose answers differ clearly: embeddings of unit size."""
    made = TokenModel(VOCAB, **{**SMALL, **changes})
    torch.nn.init.normal_(made.embedding.weight)
    return made.eval()


def batch(n=3, length=7, asked=0.4):
    generator = torch.Generator().manual_seed(5)
    tokens = torch.randint(VOCAB, (n, length), generator=generator)
    targets = torch.randint(VOCAB, (n, length), generator=generator)
    targets[torch.rand(n, length, generator=generator) > asked] = IGNORE
    assert 0 < (targets != IGNORE).sum() < n * length
    return {"tokens": tokens, "targets": targets}


def test_swiglu_is_its_formula_with_as_many_weights_as_a_gelu_mlp():
    for width in (8, 20, 96):
        mlp, x = SwiGLU(width).double(), torch.randn(3, width, dtype=torch.float64)
        gate, up, down = (layer.weight for layer in (mlp.gate, mlp.up, mlp.down))
        opened = x @ gate.T
        expected = (opened / (1 + torch.exp(-opened)) * (x @ up.T)) @ down.T
        torch.testing.assert_close(mlp(x), expected)
        inside = gate.shape[0]
        assert inside % 8 == 0
        assert 0 <= inside - 8 * width / 3 < 8, "the next multiple of 8 of 8/3 of the width"
        assert all(layer.bias is None for layer in (mlp.gate, mlp.up, mlp.down))


def test_the_gelu_mlp_is_four_times_as_wide():
    mlp, x = build_mlp("gelu", 8).double(), torch.randn(3, 8, dtype=torch.float64)
    into, out = (layer.weight for layer in (mlp[0], mlp[2]))
    assert into.shape == (32, 8)
    raised = x @ into.T
    expected = (raised * 0.5 * (1 + torch.erf(raised / math.sqrt(2)))) @ out.T
    torch.testing.assert_close(mlp(x), expected)


def test_norms_are_their_formulas():
    x = torch.randn(5, 8, dtype=torch.float64) * 3 + 1
    rms, layer = (build_norm(name, 8).double() for name in ("rms", "layer"))
    torch.testing.assert_close(
        rms(x), x / x.square().mean(dim=1, keepdim=True).sqrt(), rtol=1e-6, atol=0
    )
    spread = (x - x.mean(dim=1, keepdim=True)).square().mean(dim=1, keepdim=True).sqrt()
    torch.testing.assert_close(
        layer(x), (x - x.mean(dim=1, keepdim=True)) / spread, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("norm", ["layer", "rms"])
@pytest.mark.parametrize("mlp", ["gelu", "swiglu", "none"])
def test_a_block_adds_attention_and_then_its_mlp(mlp, norm):
    model = task(mlp=mlp, norm=norm)
    kind = torch.nn.RMSNorm if norm == "rms" else torch.nn.LayerNorm
    norms = [m for m in model.modules() if isinstance(m, torch.nn.RMSNorm | torch.nn.LayerNorm)]
    assert all(isinstance(m, kind) for m in norms)
    assert len(norms) == 1 + len(model.gpt.blocks) * (1 if mlp == "none" else 2)
    x = torch.randn(2, 5, model.gpt.width)
    for block in model.gpt.blocks:
        expected = x + block.attention(block.norm_attention(x))
        if mlp != "none":
            expected = expected + block.mlp(block.norm_mlp(expected))
        torch.testing.assert_close(block(x), expected, rtol=0, atol=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"mlp": "relu"}, "unknown mlp 'relu'; choose from gelu, swiglu, none"),
        ({"norm": "batch"}, "unknown norm 'batch'; choose from layer, rms"),
        ({"n_positions": 0}, "n_positions must be at least 1, got 0"),
        ({"min_lr_ratio": 1.5}, r"min_lr_ratio must be in \[0, 1\], got 1.5"),
        ({"n_head": 0}, "n_head must be at least 1, got 0"),
    ],
)
def test_bad_input_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        task(**changes)
    with pytest.raises(ValueError, match="vocab_size must be at least 1, got 0"):
        TokenModel(0, **SMALL)


def test_learned_positions_are_added_and_bound_the_length():
    blind = task(attention_args={"rope_base": None})
    told = task(attention_args={"rope_base": None}, n_positions=6)
    constant = {"tokens": torch.full((1, 6), 3)}
    logits = blind(constant)
    torch.testing.assert_close(logits, logits[:, :1].expand_as(logits), msg="one token, no places")
    assert (told(constant)[:, 1:] - told(constant)[:, :1]).abs().amax(dim=-1).min() > 1e-4
    tokens = torch.tensor([[1, 4, 1, 9]])
    rows = [(told.embedding.weight[t] + told.positions.weight[i]) * math.sqrt(told.gpt.width)
            for i, t in enumerate(tokens[0])]  # fmt: skip
    torch.testing.assert_close(told.embedded(tokens)[0], torch.stack(rows))
    assert told(constant).shape == (1, 6, VOCAB)
    with pytest.raises(ValueError, match="7 tokens, but the model has 6 learned positions"):
        told({"tokens": torch.full((1, 7), 3)})


@pytest.mark.parametrize("attention", ["softmax", "lssar", "zeros_sm"])
def test_answers_are_the_forward_pass_where_it_is_asked(attention):
    model, given = task(attention=attention), batch()
    asked = given["targets"] != IGNORE
    torch.testing.assert_close(model.answers(given, asked), model(given)[asked])


def test_the_loss_is_of_the_asked_tokens_alone():
    model, given = task(), batch()
    logits = model(given).detach().double().numpy()
    rows, places = np.nonzero(given["targets"].numpy() != IGNORE)
    chosen = logits[rows, places]
    top = chosen.max(axis=1)
    normaliser = top + np.log(np.exp(chosen - top[:, None]).sum(axis=1))
    targets = given["targets"].numpy()[rows, places]
    expected = np.mean(normaliser - chosen[np.arange(len(targets)), targets])
    assert float(model._loss(given)) == pytest.approx(expected, rel=1e-5)


def test_what_follows_the_last_question_does_not_matter():
    model, given = task(), batch()
    given["targets"][:, 4:] = IGNORE
    given["targets"][:, 2] = 1
    changed = {**given, "tokens": given["tokens"].clone()}
    changed["tokens"][:, 5:] = (changed["tokens"][:, 5:] + 1) % VOCAB
    torch.testing.assert_close(model._loss(changed), model._loss(given))


def test_a_text_asks_for_each_next_token():
    model, tokens = task(), batch()["tokens"]
    text = model._loss({"tokens": tokens})
    shifted = {"tokens": tokens[:, :-1], "targets": tokens[:, 1:]}
    torch.testing.assert_close(text, model._loss(shifted))


def test_validation_logs_loss_and_accuracy(monkeypatch):
    model, given = task(), batch()
    logged = {}
    monkeypatch.setattr(model, "log", lambda name, value, **_: logged.update({name: float(value)}))
    model.validation_step(given, 0)
    asked = given["targets"] != IGNORE
    right = model(given).argmax(dim=-1)[asked] == given["targets"][asked]
    assert logged["val_accuracy"] == pytest.approx(float(right.sum()) / int(asked.sum()))
    assert logged["val_loss"] == pytest.approx(float(model._loss(given)), rel=1e-6)
    perfect = {**given, "targets": torch.where(asked, model(given).argmax(dim=-1), IGNORE)}
    model.validation_step(perfect, 0)
    assert logged["val_accuracy"] == 1.0
    logged.clear()
    model.validation_step({"tokens": given["tokens"]}, 0)
    assert set(logged) == {"val_loss"}, "a text has no targets to be right about"


@pytest.mark.parametrize(
    "changes",
    [
        {"mlp": "swiglu", "norm": "rms"},
        {"mlp": "none", "attention": "lssar", "attention_args": {"p": 3.0}},
        {"n_positions": 9, "attention_args": {"rope_base": None}, "optimizer": "adamw"},
        {"attention": "sigmoid", "attention_args": {"length": 7}, "min_lr_ratio": 0.1},
    ],
)
def test_a_checkpoint_gives_the_same_model_back(changes, tmp_path):
    model, given, path = task(**changes), batch(), tmp_path / "model.ckpt"
    loaded = load_model(save(model, path)).eval()
    assert type(loaded) is TokenModel
    assert dict(loaded.hparams) == dict(model.hparams)
    assert loaded.hparams["vocab_size"] == VOCAB
    torch.testing.assert_close(loaded(given), model(given), rtol=0, atol=0)


@pytest.mark.parametrize("optimizer", ["adamw", "muon"])
@pytest.mark.parametrize("ratio", [0.0, 0.25])
def test_the_rate_warms_up_and_falls_to_its_minimum(optimizer, ratio):
    steps, warm, top = 12, 3, 0.5
    found, schedule = optim.configure(
        task(), optimizer, lr=top, weight_decay=0.0, warmup_steps=warm, total_steps=steps,
        min_lr_ratio=ratio,
    )  # fmt: skip
    rates = []
    for _ in range(steps + 3):
        assert len({group["lr"] for group in found.param_groups}) == 1
        rates.append(found.param_groups[0]["lr"])
        found.step()
        schedule.step()
    low = ratio * top
    expected = [top / 3, 2 * top / 3, top]  # the warm-up
    expected += [
        low + (top - low) * (1 + math.cos(math.pi * (step - warm) / (steps - warm))) / 2
        for step in range(warm, steps)
    ]
    assert rates[:steps] == pytest.approx(expected)
    assert rates[steps:] == pytest.approx([low] * 3), "and stays there"


def test_training_takes_the_minimum_from_the_model(tmp_path):
    model = task(lr=0.1, min_lr_ratio=0.5, warmup_steps=1, optimizer="adamw")
    run = trainer(tmp_path, 4)
    given = batch()
    rows = [{name: value[i] for name, value in given.items()} for i in range(3)] * 8
    run.fit(model, torch.utils.data.DataLoader(rows, batch_size=3))
    assert run.global_step == 4
    (group,) = run.optimizers[0].param_groups
    assert group["lr"] == pytest.approx(0.05)


def test_an_unknown_optimiser_is_refused():
    with pytest.raises(ValueError, match="sgd"):
        optim.configure(task(), "sgd", lr=0.1, weight_decay=0, warmup_steps=1, total_steps=2)


def test_the_embedding_is_the_head_too():
    """A token that nothing read still moves as an answer that was not given."""
    model, targets = task(), torch.tensor([[IGNORE, IGNORE, 2]])
    given = {"tokens": torch.zeros(1, 3, dtype=torch.int64), "targets": targets}
    model._loss(given).backward()
    gradient = model.embedding.weight.grad
    probability = functional.softmax(model(given)[0, 2], dim=-1).detach()
    hidden = model.hidden(given)[0, 2].detach()
    torch.testing.assert_close(gradient[7], probability[7] * hidden)
    torch.testing.assert_close(gradient[2], (probability[2] - 1) * hidden)


def test_an_untied_head_is_its_own(tmp_path):
    model = task(tied=False)
    tokens = torch.tensor([[1, 2, 3]])
    logits = model({"tokens": tokens})
    expected = model.hidden({"tokens": tokens}) @ model.head.weight.T
    torch.testing.assert_close(logits, expected)
    assert not torch.equal(model.head.weight, model.embedding.weight)
    assert task().head is None
