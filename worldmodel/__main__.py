"""``python -m worldmodel``: train, evaluate and probe models, and make the tokens they read.

The first word chooses what is imported. Help needs no torch, and files and names that are not
there are refused before it is loaded.
"""

from orbits.runs import stopped  # noqa: F401  (first: it answers Ctrl-C from here on)

# isort: split
import argparse
import contextlib
import hashlib
import importlib
import importlib.util
import itertools
import shlex
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attention.listing import check_name
from orbits.runs import folder, output
from orbits.runs.choices import unknown
from orbits.runs.cli import OneLineParser, called, next_line, one_line_errors, taken
from orbits.runs.figure import check_picture
from worldmodel import configurations, from_checkpoint, from_files
from worldmodel.keys import checks, signatures
from worldmodel.models.checkpoint import CONFIG, KEYWORDS, check_file
from worldmodel.models.exported import check_export, check_layer, is_of_text, read_config
from worldmodel.probes import names

USAGE = "usage: {} [-c CONFIG] [--key.subkey VALUE ...]"
ABOUT = {
    "fit": """pre-train on next-token prediction, of orbits (-c pretrain) or of text (-c text;
             lm_124m and others on token shards); with StateModel, on the true state""",
    "finetune": "train a force head (-c force), from --pretrained CKPT or from scratch",
    "validate": """CKPT [--json | --quiet]
             evaluate a checkpoint on the validation sequences""",
    "test": """CKPT [--json | --quiet]
             evaluate a checkpoint on the held-out test sequences: its losses, as JSON, or alone""",
    "attention-maps": """CKPT [--layer N] [--sequence N] [--text TEXT] [--out PNG]
             draw the weights of every head of a block on one held-out orbit, or on a text""",
    "predict": """CKPT [--out FILE] [--overwrite]
             write a force model's predictions to a file that symreg reads (default: beside
             the checkpoint's training)""",
    "probe": """CKPT [CKPT ...] [--probes all|NAME,...] [--out DIR]
             evaluate checkpoints beside controls and ceilings: results, figures, report;
             --model path/to/file.py:Class a model of your own""",
    "export": """CKPT [--out DIR] [--about SENTENCE]
             write weights and settings in the hub's form (model.safetensors, config.json)""",
    "shards": "write a corpus as files of tokens, for ShardData",
    "bpe": "train a byte-level BPE tokeniser on a corpus",
}
EXAMPLES = (
    "fit -c pretrain --model.attention=lssar",
    "fit -c pretrain --data.path data/orbits",
    "fit -c text --data.path my-texts",
    "finetune -c force --pretrained runs/pretrain/version_0/checkpoints/last.ckpt",
    "predict runs/force/version_0/checkpoints/last.ckpt",
    "probe runs/pretrain/version_0/checkpoints/last.ckpt --probes rollout,linear",
)
KEYS = """
CONFIG is a YAML file, or the name of one that comes with the package: {configurations}.
`--ckpt_path CKPT` names the checkpoint to evaluate, or the training to resume; a checkpoint that
is evaluated brings its own configuration.
`{fit} --help-all` lists the keys of the trainer (it takes seconds),
`{command} --model.help CLASS` those of a model ({model}),
`{command} --data.help CLASS` those of its data ({data}), and
`{command} --print_config` all keys with their values."""

TRAINING, EVALUATION = ("fit", "finetune"), ("validate", "test", "predict")
LIGHTNING = (*TRAINING, *EVALUATION)
HELP = ("-h", "--help")
MORE = ("--model.help", "--data.help")
MODULES = {
    "probe": "worldmodel.probes.command",
    "shards": "worldmodel.text.make_shards",
    "bpe": "worldmodel.text.make_tokenizer",
}
"""Modules of commands that are not Lightning's; each has a ``main``."""
LOGGER = "trainer.logger.class_path"
CHECKED = (
    "ckpt_path",
    "pretrained",
    "model.class_path",
    "model.pretrained",
    "model.attention",
    "model.head_dim",
    "data.path",
    "data.class_path",
    LOGGER,
)
"""Keys whose values are checked before Lightning is imported."""
SHORT = {"model.class_path": "--model", "data.class_path": "--data", LOGGER: "--trainer.logger"}
"""Short forms of flags that name a class."""
TRACK = "pip install -e '.[track]' brings TensorBoard and W&B"
LOGGERS = {"WandbLogger": ("wandb",), "TensorBoardLogger": ("tensorboard", "tensorboardX")}
"""Loggers from extras, and their packages, one of which is enough."""
MAKERS = {
    "ShardData": "worldmodel shards --corpus fineweb --out {}",
    "OrbitData": "orbits generate --out {}",
}
"""Commands that make the files of a class of data."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the first word names; every failure is one line."""
    command, *rest = taken(arguments)
    if command in MODULES:
        importlib.import_module(MODULES[command]).main(rest)
    elif command == "attention-maps":
        attention_maps(rest)
    elif command == "export":
        export(rest)
    else:
        with one_line_errors(resumes=False):
            if command in HELP:
                print(_overview())
                return
            if command in LIGHTNING and not {*HELP}.isdisjoint(rest):
                typed = called(f"worldmodel {command}")
                keys = _brief(command, rest) if command in TRAINING else ""
                print(f"{USAGE.format(typed)}\n\n{' '.join(ABOUT[command].split())}")
                print(f"{keys}{_keys(typed)}")
                return
            rest = configurations.found(rest)
            if command in LIGHTNING and (page := _help(command, rest)):
                print(page)
                return
            form = "text"
            if command in EVALUATION:
                rest, form = _spelt_out(command, rest)
            _check(command, rest)
            if command == "predict":
                _check_output(rest)
            if command in LIGHTNING:
                rest = from_files.completed(rest)
            if command in (*TRAINING, "validate"):
                from_files.refuse_shift(command, rest)
            if command in EVALUATION:
                rest = from_checkpoint.evaluation(command, rest)
            elif command == "finetune":
                rest = from_checkpoint.fine_tuning(rest)
            rest = ["--help" if word == "--help-all" else word for word in rest]
            importlib.import_module("worldmodel.cli").main([command, *rest], form)


def _brief(command: str, arguments: Sequence[str]) -> str:
    """Return a short line per key of the model and the data that a training has."""
    words = [word for word in arguments if word not in HELP]
    with contextlib.suppress(FileNotFoundError):  # help is given whatever -c names
        words = configurations.found(words)
    make = importlib.import_module("worldmodel.keys.help").brief
    return f"{make(command, _settings(command, words)[1])}\n"


def _help(command: str, arguments: Sequence[str]) -> str | None:
    """Return the help on a model or its data, if that is asked for and needs no import."""
    if not any(word.partition("=")[0] in MORE for word in arguments):
        return None
    make = importlib.import_module("worldmodel.keys.help").page
    return make(command, arguments, _settings(command, arguments)[1])


def _overview() -> str:
    commands = "\n".join(
        f"  {name} {about}" if about.startswith("CKPT") else f"  {name:10s} {about}"
        for name, about in ABOUT.items()
    )
    typed = called("worldmodel")
    examples = "\n".join(f"  {called(f'worldmodel {example}')}" for example in EXAMPLES)
    return (
        f"{USAGE.format(f'{typed} COMMAND')}\n\ncommands:\n{commands}\n\nexamples:\n{examples}\n"
        f"{_keys(f'{typed} COMMAND')}\n\nprobes: {', '.join(names())}"
    )


def _keys(command: str) -> str:
    known, fit = ", ".join(configurations.names()), called("worldmodel fit")
    classes = {group: ", ".join(names) for group, names in signatures.CLASSES.items()}
    return KEYS.format(configurations=known, fit=fit, command=command, **classes)


def _spelt_out(command: str, arguments: Sequence[str]) -> tuple[list[str], str]:
    """Return the line of an evaluation with flags as keys, and how its losses are printed."""
    words = list(arguments)
    if words and not words[0].startswith("-"):
        checkpoint = words.pop(0)
        words.append(f"--ckpt_path={checkpoint}")  # behind a configuration, which has one of null
    parser = OneLineParser(add_help=False)
    if command != "predict":
        output.offer(parser, "the loss")
        asked, words = parser.parse_known_args(words)
        if not (asked.json or asked.quiet):
            return words, "text"
        return [*words, "--verbose=false"], "json" if asked.json else "quiet"
    parser.add_argument("--out")
    parser.add_argument("--overwrite", action="store_true")
    flags, words = parser.parse_known_args(words)
    if flags.out is not None:
        from_checkpoint.check_ending(flags.out)
        words.append(f"--trainer.callbacks.path={flags.out}")
    if flags.overwrite:
        words.append("--trainer.callbacks.overwrite=true")
    return words, "text"


def _check(command: str, arguments: Sequence[str]) -> None:
    """Refuse an unknown command, and files and names that are not there."""
    if command not in LIGHTNING and not command.startswith("-"):
        raise unknown("command", command, ABOUT)
    _refuse_stray(command, arguments)
    values, classes, configured = _settings(command, arguments)
    checkpoints = ["ckpt_path"]
    if command in TRAINING and "ckpt_path" not in values:
        checkpoints += ["pretrained", "model.pretrained"]
    for key in checkpoints:
        if key in values and values[key] not in KEYWORDS and "://" not in values[key]:
            # An exported model holds no state of a training, and not all of its settings.
            (check_file if key == "ckpt_path" else _check_model)(values[key])
    text = values.get("data.path", "")
    if text and ":" not in text and not Path(text).exists():
        kind = str(values.get("data.class_path", "OrbitData")).rpartition(".")[2]
        make = MAKERS.get(kind, "").format(shlex.quote(text))
        hint = f"; `{called(make)}` makes one" if make else ""
        raise FileNotFoundError(f"{text}: no such file{hint}")
    if "model.attention" in values:
        check_name(values["model.attention"])
        if any("attention_args." in word for word in arguments):
            checks.check_attention(values["model.attention"], arguments)
    if command in EVALUATION and not configured and not classes["data"]:
        classes = {**classes, "data": signatures.CLASSES["data"][0]}  # others need a configuration
    checks.check(arguments, classes)
    model = signatures.class_of("model", classes["model"])
    if command == "finetune" and model not in (None, "ForceModel"):
        hint = f"take -c force, or {called('worldmodel fit')} to pre-train"
        raise ValueError(f"finetune trains a ForceModel, got {model}; {hint}")
    if "model.head_dim" in values:
        checks.check_heads(values.get("model.attention", "softmax"), str(values["model.head_dim"]))
    _check_logger(str(values.get(LOGGER, "")))
    if any(map(_needs_no_model, arguments)):
        return
    if configured:
        inline = any(":" in path for path in configured)
        if command == "fit" and not classes["model"] and not inline:
            raise ValueError(
                f"{configured[-1]}: names no model; add class_path below model, one of "
                f"{', '.join(signatures.CLASSES['model'])}"
            )
        return
    if command in EVALUATION and "ckpt_path" not in values:
        raise ValueError(f"{called(f'worldmodel {command}')} needs a checkpoint: name it first")
    if command in TRAINING:
        choice = "force" if command == "finetune" else "pretrain"
        raise ValueError(
            f"{called(f'worldmodel {command}')} needs a configuration, such as -c {choice}; choose "
            "a file, or from "
            f"{', '.join(configurations.names())}"
        )


def _refuse_stray(command: str, arguments: Sequence[str]) -> None:
    """Refuse a word that is neither a flag nor stands behind one, whose value it may be."""
    for before, word in itertools.pairwise(("", *arguments)):
        if not word.startswith("-") and (not before.startswith("-") or "=" in before):
            is_one = word in configurations.names() or word.endswith(".yaml")
            first = "; name the checkpoint first" if command in EVALUATION else ""
            hint = f"; did you mean -c {word}?" if is_one else first
            raise ValueError(f"unrecognized word {word!r}{hint}")


def _settings(
    command: str, arguments: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    """Return the values of the keys that are checked, the classes chosen, and configurations."""
    parser = OneLineParser(add_help=False)
    parser.add_argument("-c", "--config", action="append", default=[])
    for key in CHECKED:
        group, _, name = key.rpartition(".")
        spellings = {f"--{key}", f"--{group}.init_args.{name}" if group else f"--{key}"}
        spellings |= {SHORT[key]} if key in SHORT else set()
        parser.add_argument(*spellings, dest=key, default=argparse.SUPPRESS)
    flags = vars(parser.parse_known_args(arguments)[0])
    values: dict[str, Any] = {}
    configured = flags.pop("config")
    inline = any(":" in path for path in configured)  # a configuration itself, or a URL
    chosen: dict[str, Any] = {}
    for path in configured:
        if ":" not in path:
            found = configurations.settings(path, CHECKED)
            values |= found
            chosen |= {key: value for key, value in found.items() if value is not None}
    # What is not read here may choose a class too.
    chosen = flags if inline else chosen | flags
    classes = {group: str(chosen.get(f"{group}.class_path", "")) for group in signatures.CLASSES}
    if not classes["data"] and command in TRAINING and not inline:
        classes["data"] = signatures.CLASSES["data"][0]
    values = {key: value for key, value in (values | flags).items() if value not in (None, "null")}
    return values, classes, configured


def _check_logger(kind: str) -> None:
    """Refuse a logger whose package is not installed."""
    name = kind.rpartition(".")[2]
    packages = LOGGERS.get(name, ())
    if packages and not any(map(importlib.util.find_spec, packages)):
        raise ValueError(f"{name} needs {packages[0]}, which is not installed: {TRACK}")


def _check_model(path: str) -> None:
    """Refuse a path that is neither a checkpoint nor the folder of an exported model, whole."""
    (check_export if (Path(path) / CONFIG).is_file() else check_file)(path)


def _needs_no_model(word: str) -> bool:
    """Tell whether a flag names the model itself, or asks for help alone."""
    flags = ("--model", "--model.class_path", "--help-all", *MORE)
    return word.partition("=")[0] in (*flags, "--print_config")


def _check_output(words: Sequence[str]) -> None:
    """Refuse to predict into a file that is there: of a flag, a configuration or the default."""
    flags = {name: f"trainer.callbacks.{name}" for name in ("path", "overwrite")}
    named = [word.partition("=")[0] for word in words if word.startswith("--trainer.callbacks")]
    if not {f"--{flag}" for flag in flags.values()}.issuperset(named):
        return  # callbacks of the user's own
    path, overwrite = (from_checkpoint.value_of(words, flag) for flag in flags.values())
    checkpoint = from_checkpoint.value_of(words, "ckpt_path")
    replaces, configured = overwrite == "true", configurations.given(words)
    if configured:
        found = from_checkpoint.configured_output(configured[-1]) or (None, False)
        path, replaces = path or found[0], replaces or (found[1] and overwrite is None)
    elif path is None and checkpoint:
        path = str(from_checkpoint.output_of(checkpoint, from_checkpoint.PREDICTIONS))
    if path is not None and Path(path).exists() and not replaces:
        raise FileExistsError(
            f"{path} exists; choose another file with --out, or replace it with --overwrite"
        )
    if path:
        folder.check_writable(Path(path))


def attention_maps(arguments: Sequence[str]) -> None:
    """Draw the attention maps of a checkpoint."""
    parser = OneLineParser(prog=called("worldmodel attention-maps"))
    parser.add_argument("checkpoint")
    parser.add_argument("--layer", type=int, default=-1, help="which block (default: the last)")
    parser.add_argument("--sequence", type=int, help="orbits: which test sequence (default: 0)")
    parser.add_argument("--text", help="text: what to draw (default: the LSSAR paper's sentence)")
    parser.add_argument("--out", help="picture to write (default: beside the training)")
    options = parser.parse_args(arguments)
    with one_line_errors(resumes=False):
        _check_model(options.checkpoint)
        out = Path(options.out or from_checkpoint.output_of(options.checkpoint, _picture(options)))
        check_picture(out)
        if out.exists():
            raise FileExistsError(f"{out} exists; choose another --out")
        if Path(options.checkpoint).is_dir():  # whose depth is known without torch
            depth = read_config(options.checkpoint)["settings"].get("n_layer")
            check_layer(options.layer, depth if isinstance(depth, int) else sys.maxsize)
        options.out = out
        draw = importlib.import_module("worldmodel.maps").attention_maps
        print(f"written    {draw(**vars(options))}")
        read = importlib.import_module("worldmodel.models.export").read_model
        if not is_of_text(read(options.checkpoint)["hyper_parameters"]):
            print(next_line(f"worldmodel probe {shlex.quote(options.checkpoint)}"))


def export(arguments: Sequence[str]) -> None:
    """Write the model of a checkpoint in the hub's form."""
    parser = OneLineParser(prog=called("worldmodel export"))
    parser.add_argument("checkpoint")
    parser.add_argument("--out", help="new folder (default: model, beside the training)")
    parser.add_argument("--about", default="", help="a sentence for the card")
    options = parser.parse_args(arguments)
    with one_line_errors(resumes=False):
        check_file(options.checkpoint)
        out = Path(options.out or from_checkpoint.output_of(options.checkpoint, "model"))
        if out.exists():
            raise FileExistsError(f"{out} exists; choose another --out")
        folder.check_writable(out)
        write = importlib.import_module("worldmodel.models.load").export_model
        print(f"written    {write(options.checkpoint, out, options.about)}")
        word = "attention-maps" if is_of_text(read_config(out)["settings"]) else "probe"
        print(next_line(f"worldmodel {word} {shlex.quote(str(out))}"))


def _picture(options: argparse.Namespace) -> str:
    """Return the name of a picture of attention maps, with its layer and input in it."""
    name = "attention-maps" + (f"-layer-{options.layer}" if options.layer != -1 else "")
    if options.sequence is not None:
        name += f"-sequence-{options.sequence}"
    if options.text is not None:
        name += f"-text-{hashlib.sha256(options.text.encode()).hexdigest()[:8]}"
    return f"{name}.png"


if __name__ == "__main__":
    main()
