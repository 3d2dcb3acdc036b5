"""Autoregressive rollouts of a world model."""

import numpy as np
import pytest
import torch

import attention
from orbits import protocols
from tests.tiers import corners
from worldmodel.data.orbit_sequences import OrbitSequences
from worldmodel.models.orbit import NextTokenModel
from worldmodel.models.rollout import rollout

ARGS = {"n_points": 20, "n_bins": 40}
PROTOCOL = protocols.get("identifiable", ARGS)


def model(seed=0, **changes):
    """Return a random model in double precision, whose answers no rounding can turn."""
    torch.manual_seed(seed)
    options = {"protocol_args": ARGS, "n_layer": 2, "n_head": 2, "head_dim": 8}
    task = NextTokenModel(**options | changes).eval().double()
    torch.nn.init.normal_(task.head.logits.weight)  # or every bin would be as likely as the next
    return task


def prompt(n=5, rows=7):
    batch = OrbitSequences(PROTOCOL, "pretrain", "test", 0, n).as_batch()
    return {name: batch[name][:, :rows] for name in ("tokens", "coordinates")}


def by_hand(task, start, n_rows):
    """Ask the model for the row after the last one, as if it were being trained on it."""
    tokens, coordinates = start["tokens"].clone(), start["coordinates"].double()
    for _ in range(n_rows):
        blank = torch.zeros(len(tokens), 1, 2)
        asked = {
            "tokens": torch.cat([tokens, blank.long()], dim=1),
            "coordinates": torch.cat([coordinates, blank.double()], dim=1),
        }
        with torch.no_grad():
            row = task(asked)[:, -1:].argmax(dim=-1)
        tokens = torch.cat([tokens, row], dim=1)
        centres = torch.from_numpy(PROTOCOL.tokens.decode(row.numpy()))
        coordinates = torch.cat([coordinates, centres], dim=1)
    return tokens


@pytest.mark.parametrize("use_cache", [False, True])
@pytest.mark.parametrize("kind", ["tokens", "bin_centres", "coordinates"])
def test_every_row_is_the_likeliest_after_all_before_it(kind, use_cache):
    task, start = model(input=kind), prompt()
    rolled = rollout(task, start, 13, use_cache=use_cache)
    torch.testing.assert_close(rolled, by_hand(task, start, 13), rtol=0, atol=0)
    assert len(rolled[:, 7:].unique()) > 10, "a constant answer would prove nothing"


@pytest.mark.full
@pytest.mark.parametrize(
    "name",
    [
        *("softmax", "lssar", "alibi", "sliding_window", "lazy"),
        *corners(["raw", *attention.linear.names()], "zeros", "mamba2", "rwkv7"),
    ],
)
def test_the_cache_changes_no_answer(name):
    known = attention.arguments(name)
    args = {"p": 3.0, "length": 21, "window": 5}
    args = {key: value for key, value in args.items() if key in known} or None
    task = model(attention=name, attention_args=args)
    for rows in (1, 8):  # the time-step row alone is a prompt too
        start = prompt(3, rows)
        torch.testing.assert_close(
            rollout(task, start, 12), rollout(task, start, 12, use_cache=False), rtol=0, atol=0
        )


@pytest.mark.full
def test_exact_coordinates_are_read_in_the_prompt_alone():
    task, start = model(input="coordinates"), prompt()
    moved = {**start, "coordinates": start["coordinates"] + 0.05}
    assert not torch.equal(rollout(task, start, 6), rollout(task, moved, 6))
    tokens = model(input="bin_centres")
    torch.testing.assert_close(rollout(tokens, start, 6), rollout(tokens, moved, 6))


@pytest.mark.full
def test_samples_follow_the_models_distribution():
    task, n = model(), 20_000
    start = {name: value[:1].expand(n, -1, -1) for name, value in prompt(1).items()}
    drawn = rollout(task, start, 1, generator=torch.Generator().manual_seed(0))[:, -1]
    blank = {name: torch.cat([v[:1], v[:1, -1:]], dim=1) for name, v in start.items()}
    with torch.no_grad():
        expected = task(blank)[0, -1].softmax(dim=-1)
    for axis in range(2):
        share = torch.bincount(drawn[:, axis], minlength=40) / n
        error = (expected[axis] * (1 - expected[axis]) / n).sqrt()
        assert ((share - expected[axis]).abs() < 5 * error + 1e-4).all()
    assert np.abs(np.corrcoef(drawn.numpy().T)[0, 1]) < 0.04, "x and y are drawn independently"


def test_a_generator_makes_samples_repeatable():
    task, start = model(), prompt()
    first, again, other = (
        rollout(task, start, 8, generator=torch.Generator().manual_seed(seed)) for seed in (1, 1, 2)
    )
    torch.testing.assert_close(first, again, rtol=0, atol=0)
    assert not torch.equal(first, other)
    assert not torch.equal(first, rollout(task, start, 8))


def test_the_prompt_is_kept_and_may_be_all():
    task, start = model(), prompt()
    torch.testing.assert_close(rollout(task, start, 5)[:, :7], start["tokens"], rtol=0, atol=0)
    torch.testing.assert_close(rollout(task, start, 0), start["tokens"], rtol=0, atol=0)


def test_impossible_prompts_are_refused():
    with pytest.raises(ValueError, match="time-step row"):
        rollout(model(), prompt(rows=0), 3)
    with pytest.raises(ValueError, match="n_rows must not be negative, got -1"):
        rollout(model(), prompt(), -1)


def test_rows_are_those_without_a_cache_where_positions_follow_the_length():
    """Under dynamic NTK earlier rows turn otherwise as the sequence grows."""
    task = model(attention_args={"ntk_train_length": 6})
    start = prompt()
    without, cached = (rollout(task, start, 12, use_cache=each) for each in (False, True))
    assert torch.equal(cached, without)


def test_an_input_that_is_misspelt_is_refused():
    with pytest.raises(ValueError, match="'bin_centers'; did you mean bin_centres"):
        model(input="bin_centers")
