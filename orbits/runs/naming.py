"""Names that readers see in figures, tables and pages, for names of settings, files and flags."""

from __future__ import annotations

import re

import numpy as np

NAMES = {
    "alibi": "ALiBi",
    "deltanet": "DeltaNet",
    "dlinear": "DLinear",
    "dss": "DSS",
    "elastic": "elastic softmax",
    "gated_deltanet": "gated DeltaNet",
    "gla": "GLA",
    "gss": "GSS",
    "hawk": "Hawk",
    "hgrn1": "HGRN",
    "hgrn2": "HGRN2",
    "hyena": "Hyena",
    "itransformer": "iTransformer",
    "lazy": "Lazy",
    "lazy_no_rope": "Lazy without RoPE",
    "linear": "linear attention",
    "lru": "LRU",
    "lssa": "LSSA",
    "lssar": "LSSAR",
    "lstm": "LSTM",
    "mamba": "Mamba",
    "mamba2": "Mamba-2",
    "multihead_hyena": "multi-head Hyena",
    "patchtst": "PatchTST",
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
"""Proper names of attentions and mixers; others are shown with spaces for underscores."""
ARMS = {
    "pretrained": "pre-trained",
    "scratch": "from scratch",
    "untrained": "random weights",
    "untrained + ridge": "random weights, ridge head",
}
"""Arms in words, by the name that results have."""
ARM = re.compile(r"(?<=, )(?:pretrained|scratch|untrained)\b(?! \+)")
"""An arm behind a name, in a sentence."""
ELSEWHERE = re.compile(r"^(?P<arm>pretrained|trained) on (?P<law>\w+)$")
"""An arm of models that were trained under another law."""
POWER = re.compile(r"\bpower_(\d+)_(\d+)\b")
"""A law that is a power of the distance."""
LABEL = re.compile(r"(?P<name>[a-z]\w*)(?: p=(?P<p>\S+?))?(?=$|,)")
"""The label of a model at the beginning of a text: ``lssar p=15``."""
INSIDE = re.compile(r"\b(?P<name>[a-z]\w*) p=(?P<p>[^\s,]+)")
"""The label of a model anywhere in a text, recognised by its parameter."""
LATER = re.compile(r", off to step (\d+)")
UNTOLD = ("control", "None labels", "seed None")
"""Parts of a name that say nothing."""
OF_MODELS = frozenset({"arm", "attention", "model", "row less column", "trained", "variant", "who"})
"""Headings of columns that name models and their trainings."""
SAID = re.compile(r"\b(?P<name>[a-z]\w*) p=(?P<p>\d+(?:\.\d+)?)")
ENGLISH = ("elastic", "linear")
"""Names of attentions that are words of their own in a sentence."""
ALONE = re.compile(
    r"(?<![\w/=.-])(?<!\d )"
    rf"(?P<name>{'|'.join(sorted({*NAMES} - {*ENGLISH}, key=len, reverse=True))})"
    r"(?![\w/=-]|\.\w)"
)
RAW = re.compile(r"(?<![\w/=.-])[a-z]\w*_\w+(?![\w/=(-]|\.\w)")
"""A name as files and flags spell it, in a sentence; not a flag, a path or a call."""
WORD = re.compile(r"^[a-z]{3,}(?![\w^/(])")
"""A word that begins a sentence; not a symbol, a power or a call."""
SQUARED = re.compile(r"\br2\b")
"""The share of variance explained, as code spells it."""
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
    return ", ".join([first, *map(arm, others)])


def in_box(heading: str, text: str) -> str:
    """Return a text of a table as a page shows it: names of models as readers know them.

    Args:
        heading: Heading of the column; most columns name no models.
        text: Text as results, files and flags have it.
    """
    if heading == "pair":
        return in_prose(text)
    if heading not in OF_MODELS:
        return _spaced(text) if RAW.fullmatch(text) else text
    return ", ".join(map(_part, text.split(", ")))


def heading(text: str) -> str:
    """Return the heading of a column as a page shows it: ``R² angular momentum``, ``LSSAR``."""
    return SQUARED.sub("R²", in_prose(text).replace("_", " "))


def in_prose(text: str) -> str:
    """Return a sentence with names of attentions as readers know them: ``LSSAR (p = 15)``."""
    text = SAID.sub(lambda found: f"{_name(found)} (p = {found['p']})", text)
    text = ARM.sub(lambda found: ARMS[found[0]], text)
    return RAW.sub(lambda found: _spaced(found[0]), ALONE.sub(_name, text))


def sentence(text: str) -> str:
    """Return a whole sentence as a page shows it: as :func:`in_prose`, its first word capital."""
    return WORD.sub(lambda found: found[0].capitalize(), in_prose(text), count=1)


def arm(name: str) -> str:
    """Return the name of an arm as a reader knows it."""
    if elsewhere := ELSEWHERE.match(name):
        return f"{ARMS.get(elsewhere['arm'], elsewhere['arm'])} on {_law(elsewhere['law'])}"
    return ARMS.get(name, name)


def _law(name: str) -> str:
    return "Newton's law" if name == "newton" else _spaced(name)


def _spaced(name: str) -> str:
    first, _, rest = POWER.sub(r"r^-\1.\2", name).partition("_")
    known = first if first in ENGLISH else NAMES.get(first, first)
    return f"{known} {rest.replace('_', ' ')}" if rest else first


def _part(text: str) -> str:
    label = LABEL.fullmatch(text)
    if label and (label["p"] or label["name"] in NAMES or "_" in label["name"]):
        return _shown(label)
    return arm(text)


def _shown(label: re.Match[str]) -> str:
    return f"{_name(label)}, p = {label['p']}" if label["p"] else _name(label)


def _name(label: re.Match[str]) -> str:
    return NAMES.get(label["name"]) or _spaced(label["name"])


def two_digits(value: float) -> str:
    """Return a positive number in two significant digits, never as a power of ten."""
    rounded = float(f"{value:.2g}")
    return f"{rounded:,.0f}" if rounded >= 10 else np.format_float_positional(rounded, trim="-")


def counted(number: int, noun: str) -> str:
    """Return a number of things in words, such as ``1 cell`` and ``3 cells``."""
    return f"{number} {noun}{'' if number == 1 else 's'}"
