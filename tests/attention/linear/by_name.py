"""Mixers that tests build by name, none of whose numbers is where it starts."""

import torch

import attention
from attention import linear

QUICK = (
    "deltanet", "gated_deltanet", "gla", "hgrn2", "linear", "mamba2", "retnet", "rwkv6", "rwkv7",
    "zeros",
)  # fmt: skip
"""Mixers of which the quick tier checks everything; of the others what `in_brief` says."""


def arguments_of(name):
    return linear.get(name).arguments


def mixer_of(name, n_head=2, head_dim=4, seed=0, dtype=torch.float64, **args):
    """Build a mixer none of whose numbers is where it starts: zeros and ones would hide terms.

    What has a length gets a short one, and what has a longest sequence one that tests need.
    """
    torch.manual_seed(seed)
    for argument, size in {"length": 6, "segment": 6, "max_length": 300}.items():
        if argument in linear.get(name).arguments:
            args.setdefault(argument, size)
    mixer = attention.build(name, n_head=n_head, head_dim=head_dim, **args)
    with torch.no_grad():
        for parameter in mixer.parameters():
            parameter += 0.2 * torch.randn_like(parameter)
    return mixer.to(dtype)


def inputs(length, width=8, batch=2, seed=5, dtype=torch.float64):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(batch, length, width, generator=generator, dtype=torch.float64).to(dtype)
