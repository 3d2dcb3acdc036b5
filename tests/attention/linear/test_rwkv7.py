"""RWKV-7: S_t = S_{t-1} (diag(w_t) - kappa_t kappa_t^T diag(a_t)) + v_t k_t^T, o_t = S_t r_t."""

import math

import torch

from tests.attention.linear.published import cases, check


def published(mixer, sequence):
    """Loop over positions and heads, with S as [value, key] as in the paper."""
    states = [sequence.new_zeros(4, 4) for _ in range(mixer.n_head)]
    last, rows = torch.zeros_like(sequence[0]), []
    for token in sequence:
        see = {name: token + (last - token) * mu for name, mu in mixer.shifts.items()}
        decay, rate, gate = mixer.decay, mixer.rate, mixer.gate
        d = decay.offset + torch.tanh(see["decay"] @ decay.down) @ decay.up
        w = torch.exp(-math.exp(-0.5) * torch.sigmoid(d))
        a = torch.sigmoid(rate.offset + see["rate"] @ rate.down @ rate.up)
        g = torch.sigmoid(see["gate"] @ gate.down) @ gate.up
        r = mixer.receptance.weight @ see["receptance"]
        v = mixer.value.weight @ see["value"]
        key = mixer.key.weight @ see["key"]
        added = key * (1 + (a - 1) * mixer.replacement)
        heads, bonuses = [], []
        for h in range(mixer.n_head):
            part = slice(4 * h, 4 * h + 4)
            kappa = key[part] * mixer.removal[part]
            kappa = kappa / (kappa.square().sum() + 1e-6).sqrt()
            transition = torch.diag(w[part]) - torch.outer(kappa, a[part] * kappa)
            states[h] = states[h] @ transition + torch.outer(v[part], added[part])
            o = states[h] @ r[part]
            heads.append((o - o.mean()) / (o.var(unbiased=False) + 64e-5).sqrt())
            bonuses.append((r[part] @ (mixer.bonus[h] * added[part])) * v[part])
        o = torch.cat(heads) * mixer.norm.weight + mixer.norm.bias + torch.cat(bonuses)
        rows.append(mixer.project.weight @ (o * g))
        last = token
    return torch.stack(rows)


@cases
def test_both_forms_are_the_published_recurrence(length, seen):
    check("rwkv7", published, length, seen)
