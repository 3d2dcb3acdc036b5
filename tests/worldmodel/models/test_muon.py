"""Batched Muon against torch's, one matrix at a time, and against the singular values it is for."""

import copy

import pytest
import torch

from worldmodel.models.optim import BatchedMuon, orthogonalised

COEFFICIENTS = (3.4445, -4.7750, 2.0315)


def newton_schulz(matrix, steps=5):
    """One matrix in float64, by its singular values: each goes through the polynomial alone."""
    u, s, v = torch.linalg.svd(matrix.double(), full_matrices=False)
    s = s / s.norm()
    a, b, c = COEFFICIENTS
    for _ in range(steps):
        s = a * s + b * s**3 + c * s**5
    return u @ torch.diag(s) @ v


@pytest.mark.parametrize("shape", [(5, 5), (4, 9), (9, 4), (1, 3)])
def test_orthogonalised_acts_on_singular_values_alone(shape):
    torch.manual_seed(0)
    batch = torch.randn(3, *shape)
    found = orthogonalised(batch, COEFFICIENTS, 5, 1e-7)
    expected = torch.stack([newton_schulz(matrix) for matrix in batch])
    torch.testing.assert_close(found.double(), expected, rtol=1e-4, atol=1e-4)


def test_a_zero_matrix_stays_zero():
    assert not orthogonalised(torch.zeros(2, 3, 4), COEFFICIENTS, 5, 1e-7).any()


def test_it_is_muon_up_to_the_rounding_of_bfloat16():
    torch.manual_seed(0)
    shapes = [(6, 4), (4, 6), (6, 4), (8, 8)]
    ours = [torch.nn.Parameter(torch.randn(shape)) for shape in shapes]
    theirs = [copy.deepcopy(parameter) for parameter in ours]
    start = [parameter.detach().clone() for parameter in ours]
    one = BatchedMuon(ours, lr=0.1, weight_decay=0.05)
    other = torch.optim.Muon(theirs, lr=0.1, weight_decay=0.05, adjust_lr_fn="match_rms_adamw")
    for _ in range(4):
        for mine, its in zip(ours, theirs, strict=True):
            mine.grad = torch.randn_like(mine)
            its.grad = mine.grad.clone()
        ours[2].grad = theirs[2].grad = None  # a matrix without a gradient is left alone
        one.step()
        other.step()
    for mine, its, before in zip(ours, theirs, start, strict=True):
        moved = (its - before).norm().clamp(min=1e-9)
        assert (mine - its).norm() / moved < 0.02
    torch.testing.assert_close(ours[2].detach(), start[2])


def test_its_state_goes_to_and_from_torchs_muon():
    torch.manual_seed(0)
    parameter = torch.nn.Parameter(torch.randn(3, 5))
    ours = BatchedMuon([parameter], lr=0.1, weight_decay=0.0)
    parameter.grad = torch.randn(3, 5)
    ours.step()
    other = torch.optim.Muon([parameter], lr=0.1, adjust_lr_fn="match_rms_adamw")
    other.load_state_dict(ours.state_dict())
    states = [next(iter(o.state_dict()["state"].values())) for o in (ours, other)]
    torch.testing.assert_close(*(state["momentum_buffer"] for state in states))
