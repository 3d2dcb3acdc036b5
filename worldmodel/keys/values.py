"""Checks of values of the command line, with the verdicts of Lightning's parser but no torch."""

from __future__ import annotations

import ast
import functools
import math
import re
from argparse import ArgumentError
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Literal, Optional, Union

import jsonargparse
import yaml

from attention import catalogue
from attention.listing import takes
from attention.scalars import check_size
from orbits import laws, protocols, shifts
from orbits.runs.choices import TYPES, check_choice, near, unknown
from orbits.runs.cli import called
from worldmodel.from_checkpoint import value_of
from worldmodel.keys.checks import ARGUMENTS
from worldmodel.keys.signatures import Key, aliases

PLAIN = {"int": int, "float": float, "bool": bool, "str": str, "dict": dict, "list": list}
GENERIC: Mapping[str, Any] = {"dict": dict, "list": list}
WORDS = {
    **TYPES,
    dict: "of the form {key: value}",
    list: "a list",
    type(None): "null",
}
NULL = ("null", "Null", "NULL", "~")
ACCELERATORS = ("auto", "cpu", "gpu", "cuda", "mps", "tpu")
"""Names of Lightning; a package may bring its own."""
BY_NAME: Mapping[str, Callable[[str], object]] = {"law": laws.get, "shift": shifts.get}
"""Overrides of a protocol that a name may stand for, and what refuses a name that there is not."""
OF_ATTENTION = re.compile(rf"--model\.(?:{ARGUMENTS}\.)?attention_args\.(\w+)")
"""The flag of an argument of the attention."""
NEAR = 0.75
"""Least similarity, as difflib has it, of a misspelt accelerator and the one that was meant."""


def check(group: str, name: str, key: Key, text: str) -> None:
    """Refuse a value that the type of its key does not take, or that names nothing.

    Args:
        group: Group of the key: model, data or trainer; empty for none.
        name: The key.
        key: Argument as its source describes it.
        text: The value, as it was typed.

    Raises:
        ValueError: It is refused; the message names what may stand there.
    """
    what = f"{group}.{name}".removeprefix(".")
    taken = _type(key.annotation, aliases(group))
    if not _takes(taken, text):
        members = list(_members(taken))
        choices = [str(each) for each in members if isinstance(each, str | int)]
        if choices and len(choices) == sum(each is not type(None) for each in members):
            raise unknown(what, text, dict.fromkeys(choices))
        kinds = " or ".join(
            _word(each) for each in members if each is not int or float not in members
        )
        raise ValueError(f"{what} must be {kinds}, got {text!r}")
    if (group, name) in NAMED:
        NAMED[group, name](what, text)


def check_attention(name: str, arguments: Sequence[str]) -> None:
    """Refuse arguments that an attention does not take, and values of a variant's own.

    Values of mixers and layers wait for torch.

    Args:
        name: The attention.
        arguments: The command line.

    Raises:
        ValueError: There is no such argument, or it is out of its range.
    """
    taken = takes(name)
    for word in arguments:
        found = OF_ATTENTION.fullmatch(word.partition("=")[0])
        if found and found[1] not in taken:
            meant = near(found[1], taken)
            hint = f"did you mean {meant[0]}?" if meant else f"it takes {', '.join(taken)}"
            raise ValueError(f"{name} has no {found[1]}; {hint}")
    if name not in catalogue.names():
        return
    given = {}
    for each in catalogue.get(name).arguments:
        for inside in ("", f"{ARGUMENTS}."):
            text = value_of(arguments, f"model.{inside}attention_args.{each}")
            if text is not None:
                given[each] = jsonargparse.get_loader("yaml")(text)
    catalogue.get(name, **given)


def check_heads(name: str, text: str) -> None:
    """Refuse an odd number of channels per head of a variant that turns them in pairs (RoPE).

    Args:
        name: The attention; mixers and layers wait for torch.
        text: Channels per head, as they were typed.

    Raises:
        ValueError: The number is odd.
    """
    turns = name in catalogue.names() and catalogue.get(name).bias != "alibi"
    if turns and text.isdecimal() and int(text) % 2:
        raise ValueError(f"model.head_dim must be even for RoPE, got {text}")


def type_text(group: str, key: Key) -> str:
    """Return the type of a key in a few words, with the choices if they are few."""
    written = ast.unparse(key.annotation) if key.annotation else "any"
    if written == "AttentionName":
        return f"name of `{called('attention ls')}`"
    members = _members(_type(key.annotation, aliases(group)))
    names = {type(None): "null", Any: "any"}
    return " | ".join(
        names.get(each, each.__name__ if isinstance(each, type) else str(each)) for each in members
    )


def is_override(name: str) -> bool:
    """Tell whether a name is one of a protocol's overrides."""
    return name in protocols.OVERRIDES


def check_override(name: str, text: object) -> None:
    """Refuse an override of a protocol that there is not, a law, or a shift.

    Raises:
        ValueError: There is no such override, law or shift; the message lists the choices.
    """
    check_choice("protocol key", name, protocols.OVERRIDES)
    if name in BY_NAME and isinstance(text, str) and text.isidentifier() and text != "null":
        BY_NAME[name](text)


def _takes(taken: Any, text: str) -> bool:
    """Tell whether a type takes a value, by the parser that Lightning has."""
    if not {Any, str}.isdisjoint(_members(taken)):
        return True
    parser = jsonargparse.ArgumentParser(exit_on_error=False)
    parser.add_argument("--value", type=taken, sub_configs=True)
    try:
        parser.parse_args([f"--value={text}"])
    except ArgumentError:
        return False
    return True


def _type(node: ast.expr | None, named: Mapping[str, ast.expr]) -> Any:
    """Return the type that an annotation means; Any where this is not known."""
    inner = functools.partial(_type, named=named)
    match node:
        case ast.Constant(value=None):
            return None
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return PLAIN[name] if name in PLAIN else inner(named.get(name))
        case ast.BinOp(left=left, right=right, op=ast.BitOr()):
            return Union[inner(left), inner(right)]  # noqa: UP007
        case ast.Subscript(value=ast.Name(id=outer), slice=index):
            several = index.elts if isinstance(index, ast.Tuple) else [index]
            if outer == "Literal" and all(isinstance(each, ast.Constant) for each in several):
                return Literal[tuple(ast.literal_eval(each) for each in several)]
            if outer == "Optional":
                return Optional[inner(index)]  # noqa: UP045
            if outer == "Union":
                return Union[tuple(map(inner, several))]  # noqa: UP007
            if outer in GENERIC:
                return GENERIC[outer][tuple(map(inner, several))]
    return Any


def _members(taken: Any) -> Iterator[Any]:
    """Yield the types, and the constants, that a type is made of."""
    origin, arguments = getattr(taken, "__origin__", None), getattr(taken, "__args__", ())
    if origin is Literal:
        yield from arguments
    elif origin is Union:
        for each in arguments:
            yield from _members(each)
    else:
        yield origin or taken


def _word(member: Any) -> str:
    return WORDS.get(member, str(member)) if isinstance(member, type) else str(member)


def _accelerator(what: str, text: str) -> None:
    if text not in ACCELERATORS and near(text, ACCELERATORS, NEAR):
        raise unknown(what, text, ACCELERATORS)


def _counted(what: str, text: str, form: str, words: tuple[str, ...]) -> None:
    """Refuse a text without any digit."""
    if text not in words and not any(map(str.isdigit, text)):
        raise ValueError(f"{what} must be {form}, got {text!r}")


def _size(what: str, text: str) -> None:
    """Refuse a number below 1; a trainer's -1 steps are without an end."""
    number = yaml.safe_load(text)
    if isinstance(number, int) and (what, number) != ("trainer.max_steps", -1):
        check_size(what, number)


def _between(what: str, text: str, most: float = math.inf) -> None:
    """Refuse a number below 0 or above the largest."""
    number = jsonargparse.get_loader("yaml")(text)
    if isinstance(number, int | float) and not (0 <= number <= most and number < math.inf):
        upto = "at least 0 and finite" if most == math.inf else f"in [0, {most:g}]"
        raise ValueError(f"{what} must be {upto}, got {text}")


def _duration(what: str, text: str) -> None:
    """Refuse what is no DD:HH:MM:SS, no mapping of units to numbers and not null."""
    if re.fullmatch(r"\d+(:\d+){3}", text) or isinstance(yaml.safe_load(text), dict | None):
        return
    raise ValueError(f"{what} must be a time DD:HH:MM:SS, got {text!r}")


def _overrides(_: str, text: str) -> None:
    content = yaml.safe_load(text)
    for name, value in content.items() if isinstance(content, dict) else ():
        check_override(str(name), value)


def _seed(what: str, text: str) -> None:
    """Refuse a seed that is no whole number from 0 on; true and false are settings of their own."""
    bits = 64 if what == "data.seed" else 32  # numpy's own seed is shorter
    if text.lstrip("+-").isdecimal() and not 0 <= int(text) < 2**bits:
        raise ValueError(f"{what} must be in [0, 2^{bits}), got {text}")


NAMED: Mapping[tuple[str, str], Callable[[str, str], None]] = {
    ("data", "protocol"): lambda what, text: check_choice(what, text, protocols.names()),
    ("data", "protocol_args"): _overrides,
    ("data", "batch_size"): _size,
    ("data", "n_train"): _size,
    ("data", "seed"): _seed,
    ("", "seed_everything"): _seed,
    ("model", "n_layer"): _size,
    ("model", "n_head"): _size,
    ("model", "head_dim"): _size,
    ("model", "lr"): _between,
    ("model", "weight_decay"): _between,
    ("model", "warmup_steps"): _between,
    ("model", "min_lr_ratio"): functools.partial(_between, most=1),
    ("trainer", "max_steps"): _size,
    ("trainer", "max_time"): _duration,
    ("trainer", "accelerator"): _accelerator,
    ("trainer", "devices"): functools.partial(
        _counted, form="auto, a number of devices or a list of their indices", words=("auto",)
    ),
    ("trainer", "val_check_interval"): functools.partial(
        _counted, form="steps, a share of an epoch or a time DD:HH:MM:SS", words=NULL
    ),
}
"""Checks of values whose type does not say all, by group and key."""
