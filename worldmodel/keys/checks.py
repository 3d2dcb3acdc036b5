"""Keys of the command line and its YAML, refused where they are wrong before torch is imported.

What a model, its data or the trainer takes is read from their sources
(:mod:`worldmodel.keys.signatures`). What is not known, as of a class from elsewhere, is left to
Lightning.
"""

from __future__ import annotations

import ast
from collections.abc import Mapping, Sequence

from orbits.runs.choices import near, unknown
from orbits.runs.deferred import deferred
from worldmodel import configurations
from worldmodel.configurations import FLAGS, placed
from worldmodel.keys import signatures
from worldmodel.keys.signatures import FOLDERS, LINKED, Key

GROUPS = (
    "model",
    "data",
    "trainer",
    "optimizer",
    "lr_scheduler",
    "save_last_step",
    "stop_between_steps",
)
"""First words of the flags with a dot."""
TYPED = {
    "seed_everything": "bool | int",
    "return_predictions": "bool | None",
    "verbose": "bool",
    "weights_only": "bool | None",
}
"""Flags without a dot that take no text, and their types."""
PLAIN = (
    *("config", "help", "help-all", "print_config", "ckpt_path", "pretrained", *TYPED, *GROUPS),
)
"""Flags without a dot, of all commands of Lightning."""
NEAR = 0.75
"""Least similarity, as difflib has it, of a misspelt key and the one that was meant."""
ARGUMENTS, OVERRIDES = "init_args", "protocol_args"
NO_VALUE = "--"
"""Word behind a key of a file that is null, where a command line has the value."""
OF_ANY_CLASS = (ARGUMENTS, "class_path", "dict_kwargs", "help")
check_value = deferred("worldmodel.keys.values:check")
check_override = deferred("worldmodel.keys.values:check_override")
check_attention = deferred("worldmodel.keys.values:check_attention")
check_heads = deferred("worldmodel.keys.values:check_heads")
is_override = deferred("worldmodel.keys.values:is_override")


def check(arguments: Sequence[str], classes: Mapping[str, str]) -> None:
    """Refuse a flag whose group there is not, whose key its class does not take, or whose value.

    Args:
        arguments: The words of a command line; the files of their ``-c`` are read too.
        classes: Names of classes that were chosen, by group; what one from elsewhere takes is not
            known. Where none is named, a key is refused if it is a misspelling of another.

    Raises:
        ValueError: There is one; the message names what may have been meant.
    """
    for group, names in signatures.CLASSES.items():
        chosen = classes.get(group, "")
        ours = signatures.class_of(group, chosen)
        if chosen.isidentifier() and not ours and near(chosen, names):  # else a path, or settings
            raise unknown(f"{group} class", chosen, names)
    for place, word in enumerate(arguments):
        group, name, _ = _parts(word.partition("=")[0].removeprefix("--"))
        # Typed, it would be overruled unsaid; in a saved configuration it is what the data had.
        if word.startswith("--") and group == "model" and name in LINKED:
            raise ValueError(f"the model takes {name} from its data: set --data.{name}")
        _check_word(word, arguments[place + 1 :], classes)
    for place, path, _ in placed(arguments):
        words = configurations.words(path) if ":" not in path else []  # else text, or a URL
        for inner, word in enumerate(words):
            later = [NO_VALUE, *words[inner + 1 :], *arguments[place + 1 :]]
            try:
                _check_word(word, later, classes)
            except ValueError as error:
                raise ValueError(f"{path}: {error}") from None


def _check_word(word: str, later: Sequence[str], classes: Mapping[str, str]) -> None:
    """Refuse one word of a command line, which other words follow."""
    flag, equals, text = word.partition("=")
    key = flag.removeprefix("--").rstrip("+")
    group, dot, rest = key.partition(".")
    value = text if equals else next(iter(later), NO_VALUE)
    is_one = not value.startswith("--") and not flag.endswith("+")  # as += appends
    if not word.startswith("--"):
        return
    if key in TYPED and is_one:
        check_value("", key, Key(ast.parse(TYPED[key], mode="eval").body, None, ""), value)
    elif key in FOLDERS and is_one and value[:1] == "[":
        raise ValueError(f"{key} must be a class, or settings by name, got {value}")
    elif key in PLAIN:
        return
    elif not dot:
        also = [f"{x}.{key}" for x in FOLDERS if key in signatures.known(x)]
        also += [f"data.{OVERRIDES}.{key}"] if is_override(key) else []
        meant = also or near(key, PLAIN)
        _refuse(key, meant, "" if meant else f" choose from {', '.join(sorted(PLAIN))}")
    elif group not in GROUPS:
        begin = f" keys begin with {', '.join(GROUPS)}"
        _refuse(key, [f"{each}.{rest}" for each in near(group, GROUPS)], begin)
    elif _parts(key)[1] not in OF_ANY_CLASS:
        of_orbits = signatures.CLASSES["data"][0] if _parts(key)[:2] == ("data", OVERRIDES) else ""
        chosen = classes.get(group) or of_orbits  # which alone has them
        kind = _settled(group, chosen, later)
        if kind is not None:
            _check(key, kind, value if is_one else None)
        elif not chosen or signatures.class_of(group, chosen):
            _check_spelling(key)
        if not equals and (not later or (later[0].startswith("--") and later[0] != NO_VALUE)):
            raise ValueError(f"--{key} needs a value")


def _settled(group: str, chosen: str, later: Sequence[str]) -> str | None:
    """Return the class that takes a key, if it is one of ours that no later word changes."""
    if group == "trainer":
        return "Trainer"
    changes = (*FLAGS, f"--{group}", f"--{group}.class_path")
    if any(word.partition("=")[0] in changes for word in later):
        return None
    return signatures.class_of(group, chosen)


def _parts(key: str) -> tuple[str, str, str]:
    """Return the group of a key, the argument of its class, and the key inside that."""
    group, _, rest = key.partition(".")
    name, _, inner = rest.removeprefix(f"{ARGUMENTS}.").partition(".")
    return group, name, inner


def _check(key: str, kind: str, text: str | None) -> None:
    """Refuse a key that a class does not take, and a value that the key does not."""
    group, name, inner = _parts(key)
    taken = signatures.keys(group, kind)
    if not taken:
        return
    if name not in taken:
        meant = [_typed(group, each) for each in near(name, sorted(taken), NEAR)]
        if OVERRIDES in taken and is_override(name):
            meant = [f"data.{OVERRIDES}.{name}"]  # the model's are linked to them
        others = [f"{x}.{name}" for x in FOLDERS if x != group and name in signatures.known(x)]
        choices = f" choose from {', '.join(sorted(taken))}"
        _refuse(key, meant or others, "" if meant or others else choices)
    elif inner:
        if (group, name) == ("data", OVERRIDES):
            check_override(inner, text)
    elif text is not None:
        check_value(group, name, taken[name], text)


def _check_spelling(key: str) -> None:
    """Refuse a key that is a misspelling of one of any class of its group."""
    group, name, _ = _parts(key)
    known = signatures.known(group)
    meant = [_typed(group, each) for each in near(name, sorted(known), NEAR)]
    if name not in known and meant:
        _refuse(key, meant)


def _typed(group: str, name: str) -> str:
    """Return the key by which an argument of a group's class is set."""
    return f"{'data' if group == 'model' and name in LINKED else group}.{name}"


def _refuse(key: str, meant: Sequence[str], choices: str = "") -> None:
    """Refuse a key, if it is known which one was meant or it cannot be any."""
    if meant or choices:
        hint = f"; did you mean --{meant[0]}?" if meant else ";"
        raise ValueError(f"unknown key {key!r}{hint}{choices}")
