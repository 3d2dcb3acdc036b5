"""Steps after similar pieces of orbits: exact on its own, causal, better than a filter."""

import numpy as np
import pytest

from orbits import protocols
from orbits.implied.one_step import OneStep
from worldmodel.controls.linear_autoregression import linear_autoregression
from worldmodel.controls.orbit_pieces import NEAREST, STEPS, OrbitPieces
from worldmodel.controls.orbit_table import OrbitTable, as_complex
from worldmodel.probes.motion.held_out import HeldOutSystems

PROTOCOL = protocols.get("identifiable")
FIRST = 1 + 2 * STEPS


def test_a_step_of_its_own_orbits_is_theirs_moved_turned_and_scaled():
    own = PROTOCOL.batch(0, "train", [7], "pretrain")["coordinates"]
    many = np.repeat(as_complex(own), NEAREST, axis=0)
    pieces = OrbitPieces(PROTOCOL, 0, many)
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    moved = np.concatenate([own[:, :1], 0.7 * own[:, 1:] @ turn.T + [0.3, -0.2]], axis=1)
    found = pieces.next_points(moved)
    assert np.isnan(found[:, :FIRST]).all()
    np.testing.assert_allclose(found[:, FIRST:], moved[:, FIRST:], rtol=0, atol=1e-9)


def test_a_step_does_not_know_the_rows_after_it():
    points = PROTOCOL.batch(0, "test", np.arange(3), "pretrain")["coordinates"]
    pieces = OrbitPieces(PROTOCOL, 0, as_complex(PROTOCOL.batch(0, "train", [1, 2])["coordinates"]))
    changed = points.copy()
    changed[:, 40:] += 1.0
    before, after = pieces.next_points(points), pieces.next_points(changed)
    np.testing.assert_array_equal(before[:, FIRST:41], after[:, FIRST:41])
    assert (before[:, 41:] != after[:, 41:]).all()


def test_memory_of_pieces_misses_less_of_a_kick_than_a_pasted_orbit_and_a_linear_filter():
    """The attack: a small share of a kick that is missed is not knowledge of a law."""
    test = HeldOutSystems(PROTOCOL, PROTOCOL.systems(0, "test", np.arange(40)))
    table = OrbitTable(PROTOCOL, 0, n_sequences=3000)
    steps = OneStep(PROTOCOL, test.world, (test.n_prompt - 1) // 2)
    missed = [
        steps.missed(points, test.batch["coordinates"]).value
        for points in (
            OrbitPieces(PROTOCOL, 0, table.orbits).next_points(test.observed),
            linear_autoregression(PROTOCOL).next_points(test.observed),
            table.next_points(test.observed),
        )
    ]
    assert missed == sorted(missed)
    assert missed[0] < 0.7 * missed[1]


@pytest.mark.parametrize("n", [1, 2])
def test_fewer_pieces_than_a_mean_takes_are_all_taken(n):
    points = PROTOCOL.batch(0, "train", np.arange(n), "pretrain")["coordinates"]
    few = as_complex(points)[:, : STEPS + 1]
    found = OrbitPieces(PROTOCOL, 0, few).next_points(points)
    assert np.isfinite(found[:, FIRST:]).all()


def test_continuations_of_its_own_orbits_are_theirs_and_prompts_are_kept():
    own = PROTOCOL.batch(0, "train", [7], "pretrain")["coordinates"]
    pieces = OrbitPieces(PROTOCOL, 0, np.repeat(as_complex(own), NEAREST, axis=0))
    seen = own.copy()
    seen[:, FIRST:] = 0.0
    rolled = pieces.rollout(seen, FIRST)
    np.testing.assert_array_equal(rolled[:, :FIRST], own[:, :FIRST])
    np.testing.assert_allclose(rolled[:, FIRST:], own[:, FIRST:], rtol=0, atol=1e-9)


def test_a_prompt_without_a_piece_is_refused():
    points = PROTOCOL.batch(0, "train", [7], "pretrain")["coordinates"]
    pieces = OrbitPieces(PROTOCOL, 0, as_complex(points))
    with pytest.raises(ValueError, match="a prompt of 5 steps has no piece of 6"):
        pieces.rollout(points, 11)
