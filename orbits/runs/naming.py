"""The names that figures, tables and pages show of what settings, files and flags call in code."""

from __future__ import annotations

import re

NAMES = {
    "alibi": "ALiBi",
    "deltanet": "DeltaNet",
    "dss": "DSS",
    "elastic": "elastic softmax",
    "gated_deltanet": "gated DeltaNet",
    "gla": "GLA",
    "gss": "GSS",
    "hawk": "Hawk",
    "hgrn1": "HGRN",
    "hgrn2": "HGRN2",
    "hyena": "Hyena",
    "lazy": "Lazy",
    "linear": "linear attention",
    "lru": "LRU",
    "lssa": "LSSA",
    "lssar": "LSSAR",
    "lstm": "LSTM",
    "mamba": "Mamba",
    "mamba2": "Mamba-2",
    "multihead_hyena": "multi-head Hyena",
    "relu_wortsman": "ReLU over length",
    "retnet": "RetNet",
    "rnn": "RNN",
    "rwkv6": "RWKV-6",
    "rwkv7": "RWKV-7",
    "s4": "S4",
    "s4d": "S4D",
    "sigmoid_reweighted": "re-weighted sigmoid",
    "softmax_reweighted": "re-weighted softmax",
    "zeros": "ZeroS",
    "zeros_sm": "ZeroS-SM",
}
"""Proper names of attentions and mixers; any other is its own with spaces for underscores."""
ARMS = {
    "pretrained": "pre-trained",
    "scratch": "from scratch",
    "untrained": "random weights",
    "untrained + ridge": "random weights, ridge head",
}
"""What was trained, by the name that results have."""
LABEL = re.compile(r"(?P<name>[a-z]\w*)(?: p=(?P<p>\S+?))?(?=$|,)")
"""The label of a model at the beginning of a text: ``lssar p=15``."""
INSIDE = re.compile(r"\b(?P<name>[a-z]\w*) p=(?P<p>[^\s,]+)")
"""The same somewhere in it, told by its parameter."""
LATER = re.compile(r", off to step (\d+)")
UNTOLD = ("control", "None labels", "seed None")
"""Parts of a name that say nothing."""
ERRORS = re.compile(r"^(.+) with the errors of (.+)$")


def display(label: str) -> str:
    """Return the name of a model or control as a reader knows it: ``LSSAR, p = 15``.

    Args:
        label: Its label in results, which may be followed by a comma and more. What is no label of
            an attention or mixer comes back as it is, but for the labels in it.
    """
    if errors := ERRORS.match(label):
        known = [part for part in errors[2].split(", ") if part not in UNTOLD]
        return f"{errors[1]} + errors of {display(', '.join(known))}"
    label = LATER.sub(r", re-weighted from step \1", label)
    head = LABEL.match(label)
    if head and (head["p"] or head["name"] in NAMES or "_" in head["name"]):
        label = _shown(head) + label[head.end() :]
    label = INSIDE.sub(_shown, label)
    first, *others = label.split(", ")
    return ", ".join([first, *(ARMS.get(part, part) for part in others)])


def arm(name: str) -> str:
    """Return the name of an arm as a reader knows it."""
    return ARMS.get(name, name)


def _shown(label: re.Match[str]) -> str:
    name = NAMES.get(label["name"], label["name"].replace("_", " "))
    return f"{name}, p = {label['p']}" if label["p"] else name
