"""RWKV-6: o_t = r_t (S_{t-1} + diag(u) k_t^T v_t), S_t = diag(w_t) S_{t-1} + k_t^T v_t."""

import torch
from torch.nn.functional import silu

from tests.attention.linear.published import built, cases, check


def lora(layer, x):
    return layer.offset + torch.tanh(x @ layer.down) @ layer.up


def published(mixer, sequence):
    """Loop over positions and heads."""
    states = [sequence.new_zeros(4, 4) for _ in range(mixer.n_head)]
    last, rows = torch.zeros_like(sequence[0]), []
    for token in sequence:

        def ddlerp(name, a=token, b=last):
            return a + (b - a) * lora(mixer.shifts[name], a + (b - a) * mixer.blend)

        r = mixer.receptance.weight @ ddlerp("receptance")
        k = mixer.key.weight @ ddlerp("key")
        v = mixer.value.weight @ ddlerp("value")
        w = torch.exp(-torch.exp(lora(mixer.decay, ddlerp("decay"))))
        heads = []
        for h in range(mixer.n_head):
            part = slice(4 * h, 4 * h + 4)
            present = torch.outer(k[part], v[part])
            o = r[part] @ (states[h] + torch.diag(mixer.bonus[h]) @ present)
            states[h] = torch.diag(w[part]) @ states[h] + present
            heads.append((o - o.mean()) / (o.var(unbiased=False) + 64e-5).sqrt())
        o = torch.cat(heads) * mixer.norm.weight + mixer.norm.bias
        gate = silu(mixer.gate.weight @ ddlerp("gate"))
        rows.append(mixer.project.weight @ (o * gate))
        last = token
    return torch.stack(rows)


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("rwkv6", published, length, seen)


def test_decays_of_0_have_a_finite_gradient():
    mixer = built("rwkv6").float()
    with torch.no_grad():
        mixer.decay.offset.fill_(200.0)
    x = torch.randn(1, 70, 8, requires_grad=True)
    mixer(x).square().sum().backward()
    assert x.grad.isfinite().all()
