"""The papers' ablations and layers by name, and the check of names that needs no torch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attention.listing import check_name

_ZEROS: Mapping[str, Mapping[str, Any]] = {
    "zeroth": {"zeroth": "all"},
    "softmax": {"radial": "softmax"},
    "no_gate": {"gated": False},
    "no_norm": {"norm": False},
    "no_angular": {"angular": "none"},
    "no_position": {"angular": "plain"},
    "additive_position": {"angular": "additive"},
    "no_radial": {"radial": "none"},
    "radial_linear": {"logits": "linear"},
    "radial_quadratic": {"logits": "quadratic"},
    "radial_distance": {"logits": "distance"},
    "radial_mean": {"logits": "averaging"},
}
ABLATIONS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    **{f"zeros_{name}": ("zeros", arguments) for name, arguments in _ZEROS.items()},
    "elastic_seqlen_from_zero": ("elastic_seqlen", {"tau": 0.0}),
    "lazy_no_rope": ("lazy", {"rope_base": None}),
}
"""A variant or mixer with arguments, under the name of its published row.

ZeroS (2025), Tables 5, 6 and 8; Lazy Attention, Table 2 (tau starts at 0) and Figure 8 (no rotary
positions, so that learned biases alone tell distances).
"""

_TPA, _DSA = {"projections": "tpa"}, {"select": "dsa"}
LAYERS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "softmax_tpa": ("softmax", _TPA),
    "lssar_tpa": ("lssar", _TPA),
    "softmax_dsa8": ("softmax", {**_DSA, "top_k": 8}),
    "lssar_dsa8": ("lssar", {**_DSA, "top_k": 8}),
    "softmax_dsa64": ("softmax", {**_DSA, "top_k": 64}),
    "lssar_dsa64": ("lssar", {**_DSA, "top_k": 64}),
    "lssar_tpa_dsa64": ("lssar", {**_TPA, **_DSA, "top_k": 64}),
}
"""Variants with tensor-product projections (T6), with 8 or 64 selected keys (DSA), or both.

LSSAR's papers recommend it with either, and measure neither.
"""
NAMED = {**ABLATIONS, **LAYERS}
"""All names beside those of variants and mixers."""


def check_attention(settings: Any) -> None:
    """Refuse settings whose ``attention`` or ``encoders`` name no variant, mixer or ablation.

    What names may mean is said again where rows are made of them, after torch is loaded; a typo
    does not wait for that.
    """
    for name in (*getattr(settings, "attention", ()), *getattr(settings, "encoders", ())):
        check_name(name, tuple(NAMED))
