"""S4, S4D, DSS and GSS against their systems, discretised and stepped by hand."""

import math

import numpy as np
import pytest
import torch
from scipy.linalg import expm
from torch.nn.functional import gelu

from attention import linear
from attention.linear.state_space._diagonal import expm1
from attention.linear.state_space._hippo import legendre
from tests.attention.linear.published import check, few_cases


def pairs(parameter):
    return torch.complex(parameter[..., 0], parameter[..., 1])


def stepped(matrix, enter, read, inputs):
    """Return read . x_t, x_t = matrix x_{t-1} + enter u_t, of the inputs u_t to one system."""
    x, rows = torch.zeros(len(matrix), dtype=matrix.dtype), []
    for u in inputs:
        x = matrix @ x + enter * u
        rows.append(read @ x)
    return torch.stack(rows)


def held(a, step):
    """Return exp(step A) and the integral of what it makes of a constant input of 1, diagonal."""
    return torch.diag(torch.exp(step * a)), (torch.exp(step * a) - 1) / a


def layer(mixer, x, outputs):
    """Add the skip and the position-wise part to systems' outputs [L, C]."""
    y = gelu(outputs + mixer.skip * x) @ mixer.project.weight.T + mixer.project.bias
    return y[..., :8] * torch.sigmoid(y[..., 8:]) if mixer.gated else y


def by_channel(x, run):
    """Return run(channel, its inputs [L]) of all channels of a sequence, [L, C]."""
    return torch.stack([run(c, x[:, c]) for c in range(x.shape[-1])], -1)


def s4(mixer, x):
    """Conjugate pairs in full, and the bilinear rule with an inverse."""

    def run(c, inputs):
        half = torch.complex(-mixer.rate[c].exp(), mixer.frequency[c])
        p, enter, read = (pairs(z[c]) for z in (mixer.low_rank, mixer.enter, mixer.read))
        p, enter, read, factors = (torch.cat([z, z.conj()]) for z in (p, enter, read, half))
        a = torch.diag(factors) - torch.outer(p, p.conj())
        one, step = torch.eye(len(a), dtype=a.dtype), mixer.step[c].exp()
        inverse = torch.linalg.inv(one - step / 2 * a)
        matrix = inverse @ (one + step / 2 * a)
        return stepped(matrix, inverse @ (step * enter), read, inputs.to(a.dtype)).real

    return layer(mixer, x, by_channel(x, run))


def s4d(mixer, x):
    def run(c, inputs):
        half = torch.complex(-mixer.rate[c].exp(), mixer.frequency[c])
        a, read = torch.cat([half, half.conj()]), pairs(mixer.read[c])
        matrix, enter = held(a, mixer.step[c].exp())
        return stepped(matrix, enter, torch.cat([read, read.conj()]), inputs.to(a.dtype)).real

    return layer(mixer, x, by_channel(x, run))


def dss(mixer, x):
    a = torch.complex(-mixer.rate.exp(), mixer.frequency)

    def run(c, inputs):
        matrix, enter = held(a, mixer.step[c].exp())
        return stepped(matrix, enter, pairs(mixer.read[c]), inputs.to(a.dtype)).real

    return layer(mixer, x, by_channel(x, run))


def gss(mixer, x):
    a = torch.complex(-mixer.rate.exp(), mixer.frequency.exp())
    matrix, enter = held(a, 1.0)
    u = gelu(x @ mixer.inputs.weight.T)
    u = u - u.mean(-1, keepdim=True)
    u = u / (u.square().mean(-1, keepdim=True) + 1e-5).sqrt() * mixer.norm.weight + mixer.norm.bias

    def run(c, inputs):
        return stepped(matrix, enter, pairs(mixer.read[c]), inputs.to(a.dtype)).real

    y = (by_channel(u, run) + mixer.skip * u) @ mixer.widen.weight.T
    y = y * gelu(x @ mixer.gate.weight.T)
    return y @ mixer.project.weight.T + mixer.project.bias


@few_cases
@pytest.mark.parametrize("published", [s4, s4d, dss, gss])
def test_both_forms_are_the_published_system(published, length, seen):
    check(published.__name__, published, length, seen, state=4)


def test_expm1_keeps_its_digits():
    z = torch.tensor([1e-9 + 2e-9j, -0.3 + 2.0j, -4.0 - 9.0j], dtype=torch.complex128)
    expected = torch.tensor(
        [complex(1e-9 - 1.5e-18, 2e-9 + 2e-18), *(z[1:].exp() - 1).tolist()],
        dtype=torch.complex128,
    )
    torch.testing.assert_close(expm1(z), expected, rtol=1e-14, atol=0)


def hippo(state):
    """Return HiPPO-LegS from its definition (Gu et al. 2020, Theorem 2)."""
    matrix = torch.zeros(state, state, dtype=torch.float64)
    for n in range(state):
        for k in range(n + 1):
            matrix[n, k] = -(n + 1) if n == k else -math.sqrt((2 * n + 1) * (2 * k + 1))
    return matrix, torch.tensor([2.0 * n + 1 for n in range(state)], dtype=torch.float64).sqrt()


def test_s4_starts_as_hippo_whatever_the_coordinates():
    """The traces of B C A^j do not depend on coordinates: what they are for C = B^T."""
    matrix, enter = hippo(6)
    factors, low_rank, turned = (torch.cat([z, z.conj()]) for z in legendre(6))
    ours = torch.diag(factors) - torch.outer(low_rank, low_rank.conj())
    x, z = enter, turned
    for _ in range(7):
        torch.testing.assert_close((turned.conj() @ z).real, enter @ x, rtol=1e-9, atol=1e-9)
        x, z = matrix @ x / 4, ours @ z / 4


def test_a_step_of_s4d_is_that_of_a_held_input():
    """With scipy's exponential of the system that carries its input along."""
    torch.manual_seed(0)
    mixer = linear.build("s4d", n_head=1, head_dim=1, state=2).double()
    a = complex(-mixer.rate.exp().item(), mixer.frequency.item())
    step, read = mixer.step.exp().item(), complex(*mixer.read.flatten().tolist())
    carried = expm(step * np.array([[a, 1.0], [0.0, 0.0]]))
    with torch.no_grad():
        y = mixer._system(torch.ones(1, 1, 1).double(), mixer.new_cache(), None)
    assert y.item() == pytest.approx(2 * (read * carried[0, 1]).real, rel=1e-9)


def test_start_values_are_the_published_ones():
    torch.manual_seed(0)
    for name in ("s4", "s4d", "dss"):
        mixer = linear.build(name, n_head=4, head_dim=64, state=8)
        steps = mixer.step.detach().exp()
        assert (steps.min() >= 1e-3, steps.max() <= 0.1) == (True, True)
        assert steps.median() == pytest.approx(0.01, rel=0.5)
        torch.testing.assert_close(mixer.rate.detach().exp(), torch.full_like(mixer.rate, 0.5))
        size = 2.0 if name == "dss" else 1.0  # of complex numbers, or of their parts
        assert mixer.read.detach().square().sum(-1).mean() == pytest.approx(size, rel=0.1)
    s4d = linear.build("s4d", n_head=1, head_dim=4, state=8)
    assert s4d.frequency[2].tolist() == pytest.approx([0, math.pi, 2 * math.pi, 3 * math.pi])
    frequencies = linear.build("dss", n_head=1, head_dim=4, state=4).frequency
    skew = hippo(8)[0] - hippo(8)[0].T
    expected = torch.linalg.eigvals(skew / 2).imag.sort().values[4:]
    torch.testing.assert_close(frequencies.detach(), expected.float(), rtol=1e-5, atol=1e-5)
