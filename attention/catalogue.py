"""The named variants of the papers: a new one is one ``_entry`` of ``_ENTRIES``.

An entry with a bad field is left out of ``CATALOGUE``; ``BROKEN`` and ``attention.get`` name the
entry and the field.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from attention.parts.outside import VARIANTS, from_outside
from attention.spec import AttnSpec, mixer_files

_LSSAR, _ZEROS, _LAZY = "LSSAR (2026)", "ZeroS (2025)", "Lazy Attention"
_DOT = "q.k/sqrt(d)"
_LSSA = "softplus(log d log i cos(q, k))"


BROKEN: dict[str, str] = {}
"""Errors of the entries that make no variant, by name."""


def _entry(name: str, **fields: Any) -> AttnSpec | None:
    """Return a variant, or None and an error in ``BROKEN``: a bad entry stops no other."""
    try:
        for field in ("source", "formula", "about"):
            if not fields.get(field):
                raise ValueError(f"{field} of {name} is missing")
        return AttnSpec(name, **fields)
    except (TypeError, ValueError) as error:
        BROKEN[name] = f"attention/catalogue.py: entry {name!r}: {error}"
        return None


def _ablation(phi: str, formula: str, about: str) -> AttnSpec | None:
    return _entry(
        f"phi_{phi}",
        phi=phi,
        source=f"{_LSSAR}, Eq. 3, Table A6",
        formula=f"l1({formula} at {_DOT})",
        about=about,
    )


_ENTRIES = (
    _entry(
        "softmax",
        source="Vaswani et al. 2017; LSSAR Eq. 1, Table A5 scenario IV",
        formula=f"softmax({_DOT})",
        about="Scaled dot-product attention.",
    ),
    _entry(
        "softmax_neg",
        modify="negate",
        source=f"{_LSSAR}, Table A4 (inverse)",
        formula="-softmax",
        about="Softmax weights times -1: is non-negativity needed?",
    ),
    _entry(
        "softmax_recentred",
        modify="recentre",
        source=f"{_LSSAR}, Table A4 (re-centred)",
        formula="softmax - 1/i, rows 1 to 3 untouched",
        about="Softmax minus the row's mean weight.",
    ),
    _entry(
        "softmax_recentred_l1",
        modify="recentre_l1",
        source=f"{_LSSAR}, Table A4 (re-centred and l1)",
        formula="l1(softmax - 1/i), rows 1 to 3 untouched",
        about="Re-centred softmax, scaled back to unit l1 norm.",
    ),
    _entry(
        "raw",
        phi="identity",
        normalise="none",
        source=f"{_LSSAR}, Table A5 scenario I",
        formula=_DOT,
        about="Masked scores with neither exponential nor normalisation.",
    ),
    _entry(
        "exp",
        normalise="none",
        source=f"{_LSSAR}, Table A5 scenario II",
        formula=f"exp({_DOT})",
        about="Exponential without normalisation.",
    ),
    _entry(
        "l1",
        phi="identity",
        source=f"{_LSSAR}, Table A5 scenario III",
        formula=f"l1({_DOT})",
        about="l1 norm of the raw scores.",
    ),
    _entry(
        "sigmoid",
        phi="sigmoid",
        shift="minus_log_length",
        normalise="none",
        source="Ramapuram et al. 2024; LSSAR Table 1",
        formula=f"sigmoid({_DOT} - log L)",
        about="Element-wise sigmoid, shifted by the sequence length.",
    ),
    _entry(
        "sigmoid_rowlen",
        phi="sigmoid",
        shift="minus_log_row",
        normalise="none",
        source=f"{_LSSAR}, Table 1 (b = -log N)",
        formula=f"sigmoid({_DOT} - log i)",
        about="Sigmoid shifted by the number of visible keys.",
    ),
    _entry(
        "sigmoid_rowlen_l1",
        phi="sigmoid",
        shift="minus_log_row",
        source=f"{_LSSAR}, Table 1 (b = -log N, l1)",
        formula=f"l1(sigmoid({_DOT} - log i))",
        about="The same with rows normalised.",
    ),
    _entry(
        "relu_wortsman",
        phi="relu",
        normalise="length",
        source="Wortsman et al. 2023; LSSAR Table 1",
        formula=f"relu({_DOT}) / L",
        about="ReLU divided by the sequence length.",
    ),
    _entry(
        "relu_li",
        phi="relu",
        source="Li et al. 2022; LSSAR Table 1",
        formula=f"l1(relu({_DOT}))",
        about="ReLU with rows normalised; the same function as phi_relu.",
    ),
    _entry(
        "relu_shen",
        phi="relu",
        normalise="sqrt_half_row",
        source="Shen et al. 2023; LSSAR Table 1",
        formula=f"relu({_DOT}) / (gamma sqrt(i / 2))",
        about="ReLU scaled to constant variance.",
    ),
    _ablation("relu", "relu", "ReLU as phi."),
    _ablation("relu2", "relu^2", "Squared ReLU as phi."),
    _ablation("relu6", "min(relu, 6)", "Clipped ReLU as phi."),
    _ablation("gelu", "gelu", "GELU as phi; weights may be negative."),
    _ablation("sigmoid", "sigmoid", "Sigmoid as phi."),
    _ablation("softplus", "softplus", "Softplus as phi."),
    _ablation("mish", "mish", "Mish as phi; weights may be negative."),
    _ablation("exp", "exp", "Exponential as phi; the same function as softmax."),
    _entry(
        "lssa",
        phi="softplus",
        scale="log_dim_log_row",
        source=f"{_LSSAR}, Eq. 4",
        formula=f"l1({_LSSA})",
        about="Length-scaled softplus attention.",
    ),
    _entry(
        "lssar",
        phi="softplus",
        scale="log_dim_log_row",
        sharpen="reweight",
        source=f"{_LSSAR}, Eq. 4 and 5, Algorithm 1",
        formula="l1(relu(i lssa - o)^p), o = [i > 3]",
        about="LSSA, re-weighted: keys below the row's mean weight vanish, the rest sharpen. Small "
        "models hardly learn recall with it from scratch: train LSSA first, which helps, but not "
        "always (RESULTS.md, Recall).",
    ),
    _entry(
        "softmax_reweighted",
        sharpen="reweight",
        source=f"{_LSSAR}, Eq. 5 on Eq. 1, Table 1",
        formula="l1(relu(i softmax - o)^p), o = [i > 3]",
        about="Softmax with the re-weighting of LSSAR.",
    ),
    _entry(
        "sigmoid_reweighted",
        phi="sigmoid",
        shift="minus_log_row",
        sharpen="reweight",
        source=f"{_LSSAR}, Eq. 5 on the normalised sigmoid, Table 1",
        formula="l1(relu(i sigmoid_rowlen_l1 - o)^p), o = [i > 3]",
        about="Normalised sigmoid with the re-weighting of LSSAR.",
    ),
    _entry(
        "log_scaled",
        scale="log_length",
        source="Chiang and Cholak 2022, Su 2021; LSSAR Sect. 2.1.2",
        formula="softmax(log(L) q.k/sqrt(d))",
        about="Softmax whose scale grows with the length.",
    ),
    _entry(
        "cosine",
        scale="cosine",
        source="Henry et al. 2020; LSSAR Sect. 2.1.2",
        formula="softmax(g cos(q, k))",
        about="Softmax of l2-normalised queries and keys.",
    ),
    _entry(
        "sparsemax",
        normalise="sparsemax",
        source="Martins and Astudillo 2016; LSSAR A.3",
        formula=f"projection of {_DOT} on the simplex",
        about="Euclidean projection: sparse rows, exact.",
    ),
    _entry(
        "entmax",
        normalise="entmax15",
        source="Peters et al. 2019 (alpha = 1.5); LSSAR A.3",
        formula=f"entmax-1.5({_DOT})",
        about="Between softmax and sparsemax, exact.",
    ),
    _entry(
        "elastic",
        sharpen="elastic_row",
        source=f"{_LAZY}, Eq. 5",
        formula="relu(softmax - tau/i)",
        about="Softmax minus a learned share of the mean weight.",
    ),
    _entry(
        "elastic_head",
        sharpen="elastic",
        tau=0.0,
        source=f"{_LAZY}, Table 2",
        formula="relu(softmax - tau)",
        about="A learned offset per head, whatever the length.",
    ),
    _entry(
        "elastic_seqlen",
        sharpen="elastic_length",
        source=f"{_LAZY}, Table 2 (tau starts at 0 or 1)",
        formula="relu(softmax - tau/L)",
        about="A learned offset per head over the sequence length.",
    ),
    _entry(
        "elastic_fixed",
        sharpen="elastic_length",
        learn_tau=False,
        source=f"{_LAZY}, Table 2",
        formula="relu(softmax - 1/L)",
        about="A fixed offset of 1 over the sequence length.",
    ),
    _entry(
        "lazy",
        bias="learned",
        sharpen="elastic_row",
        source=f"{_LAZY}, Eq. 4 and 5",
        formula=f"relu(softmax({_DOT} - b[i-j]) - tau/i)",
        about="Elastic-Softmax with a learned distance bias.",
    ),
    _entry(
        "lazy_no_elastic",
        bias="learned",
        source=f"{_LAZY}, Table 1 (- Elastic)",
        formula=f"softmax({_DOT} - b[i-j])",
        about="The learned distance bias alone.",
    ),
    _entry(
        "sink_bias",
        sink=True,
        source=f"GPT-OSS 2025; {_LAZY} Sect. 3.2",
        formula=f"exp({_DOT}) / (exp(sink) + sum exp)",
        about="A learned logit per head that absorbs weight.",
    ),
    _entry(
        "sliding_window",
        mask="window",
        source=f"{_LAZY}, Fig. 2",
        formula=f"softmax({_DOT}) over the last window keys",
        about="Softmax over a window.",
    ),
    _entry(
        "streaming",
        mask="streaming",
        source=f"Xiao et al. 2023; {_LAZY} Table 1",
        formula=f"softmax({_DOT}) over the first sinks and the last window keys",
        about="StreamingLLM: a window and the first tokens.",
    ),
    _entry(
        "alibi",
        bias="alibi",
        source="Press et al. 2021",
        formula=f"softmax({_DOT} - m_h (i-j))",
        about="Softmax with a fixed linear distance penalty per head.",
    ),
    _entry(
        "zeros_sm",
        modify="zero_sum",
        source=f"{_ZEROS}, A.1.6",
        formula="g1 D + gh (softmax - 1/i - D), D = (s - mean s)/i",
        about="Zero-sum weights from softmax scores, gated by the layer's input.",
    ),
)


def _check(attribute: str, spec: Any) -> None:
    """Refuse what is no complete variant, with a ValueError."""
    if not isinstance(spec, AttnSpec):
        raise ValueError(f"{attribute} must be an AttnSpec, got {spec!r:.60}; a mixer is MIXER")
    if not (spec.source and spec.formula and spec.about):
        raise ValueError(f"{spec.name} needs source, formula and about")


_OWN = tuple(spec for spec in _ENTRIES if spec is not None)
_MIXERS = mixer_files([str(Path(__file__).parent / "linear")])
_OTHERS, _FAULTS = from_outside(VARIANTS, {*(spec.name for spec in _OWN), *_MIXERS}, _check)
BROKEN.update(_FAULTS)
CATALOGUE = (*_OWN, *_OTHERS.values())
"""Every variant, those of plug-ins last."""


def names() -> tuple[str, ...]:
    """Return the names of all variants."""
    return tuple(spec.name for spec in CATALOGUE)


def get(name: str, **arguments: Any) -> AttnSpec:
    """Return the variant called ``name`` with its arguments set."""
    for spec in CATALOGUE:
        if spec.name == name:
            return spec.with_arguments(**arguments) if arguments else spec
    raise ValueError(f"unknown variant {name!r}; choose from {', '.join(names())}")
