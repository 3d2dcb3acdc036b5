"""ZeroS as its definition says it, in numpy, position by position, and layers to compare."""

import math

import numpy as np
import torch

import attention


def mixer_of(n_head=2, head_dim=4, seed=0, dtype=torch.float64, **args):
    torch.manual_seed(seed)
    mixer = attention.build("zeros", n_head=n_head, head_dim=head_dim, **args)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter += 0.4 * torch.randn_like(parameter)
    return mixer.to(dtype)


def inputs(length, width=8, batch=2, seed=5):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, length, width, generator=generator, dtype=torch.float64)


def heads(mixer, layer, x):
    """Return what a layer makes of x [L, W] for each head, [H, L, ...]."""
    made = x @ getattr(mixer, layer).weight.detach().double().numpy().T
    return made.reshape(len(x), mixer.n_head, -1).swapaxes(0, 1)


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def logits_by_hand(mixer, x):
    """Return s, [H, L]."""
    length, d = len(x), mixer.head_dim
    if mixer.args["radial"] == "none":
        return np.zeros((mixer.n_head, length))
    kind, found = mixer.args["logits"], np.empty((mixer.n_head, length))
    for head, u in enumerate(heads(mixer, "logit", x)):
        for i in range(length):
            seen = u[: i + 1] if mixer.args["causal"] else u
            prior, mu = 0.0, 0.0
            if kind == "deviation":
                prior = math.exp(mixer.tau[head].item())
                mu = mixer.mu[head].detach().double().numpy()
            mean = (prior * mu + seen.sum(axis=0)) / (prior + len(seen))
            if kind == "deviation":
                found[head, i] = -u[i] @ mean / math.sqrt(d)
            elif kind == "averaging":
                found[head, i] = sum(u[i]) / d
            elif kind == "distance":
                found[head, i] = math.sqrt(((u[i] - mean) ** 2).sum()) / math.sqrt(d)
            elif kind == "quadratic":
                found[head, i] = u[i] @ u[i] / d
            else:
                found[head, i] = u[i, 0]
    return found


def radial_by_hand(mixer, x):
    """Return r, [H, L, L]."""
    logits, length, how = logits_by_hand(mixer, x), len(x), mixer.args["radial"]
    found = np.zeros((mixer.n_head, length, length))
    for head in range(mixer.n_head):
        for t in range(length):
            n = t + 1 if mixer.args["causal"] else length
            s = logits[head, :n]
            softmax = np.exp(s - s.max()) / np.exp(s - s.max()).sum()
            delta = s - s.mean()
            epsilon = softmax - 1 / n - delta / n
            first = higher = zeroth = 1.0
            if mixer.args["gated"] and how == "zero_sum":
                gates = heads(mixer, "gates", x)[head, t]
                first, higher = sigmoid(gates[0]), sigmoid(gates[1])
                zeroth = math.tanh(gates[2]) if mixer.restores else 0.0
            row = {
                "zero_sum": first * delta / n + higher * epsilon + zeroth / n * mixer.restores,
                "softmax": softmax,
                "none": np.full(n, 1 / n),
            }[how]
            found[head, t, :n] = row / math.sqrt(n) if mixer.args["decay"] else row
    return found


def cosines_by_hand(mixer, x):
    """Return q_t . k_i of unit vectors, turned as complex numbers, [H, L, L]."""
    how, (length, width) = mixer.args["angular"], x.shape
    if how == "none":
        return np.ones((mixer.n_head, length, length))
    positions = np.arange(length)[:, None]
    if how == "additive":
        turns = positions / 10_000 ** (np.arange(0, width, 2) / width)
        x = x + np.stack([np.sin(turns), np.cos(turns)], axis=-1).reshape(length, width)
    q, k = (heads(mixer, layer, x) for layer in ("query", "key"))
    q, k = (z / np.sqrt((z**2).sum(axis=-1, keepdims=True)) for z in (q, k))
    if how == "rope":
        half = mixer.head_dim // 2
        turns = positions / mixer.args["rope_base"] ** (np.arange(half) / half)
        q, k = ((z[..., :half] + 1j * z[..., half:]) * np.exp(1j * turns) for z in (q, k))
    return (q @ k.conj().swapaxes(1, 2)).real


def by_hand(mixer, x):
    """Return the layer's output of one sequence [L, W]."""
    mixed = radial_by_hand(mixer, x) * cosines_by_hand(mixer, x) @ heads(mixer, "value", x)
    if mixer.args["norm"]:
        seen = np.arange(1, len(x) + 1) if mixer.args["causal"] else np.full(len(x), len(x))
        scale = seen[:, None] if mixer.args["rescale"] else 1
        mixed = scale * (mixed - mixed.mean(axis=-1, keepdims=True))
        mixed /= np.sqrt((mixed**2).mean(axis=-1, keepdims=True) + 1e-5)
    joined = mixed.swapaxes(0, 1).reshape(len(x), -1)
    return joined @ mixer.project.weight.detach().double().numpy().T


def gradients_of(mixer, run, x):
    x = x.clone().requires_grad_()
    out = run(x)
    weights = torch.randn(out.shape, generator=torch.Generator().manual_seed(3)).double()
    return [out, *torch.autograd.grad((out * weights).sum(), [x, *mixer.parameters()])]
