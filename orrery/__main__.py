"""``orrery``: one command in front of the packages; also ``python -m orrery``.

The first word chooses what is imported, so that help needs none of it. Each command runs the same
as its ``python -m`` form and takes the same flags.
"""

from __future__ import annotations

from orbits.runs import stopped  # noqa: F401  (first: it answers Ctrl-C from here on)

# isort: split
import importlib
from collections.abc import Sequence

from orbits.runs.choices import unknown
from orbits.runs.cli import leave, taken
from orrery import __version__

COMMANDS = {
    "data": ("orbits", "make, check, draw and export datasets of orbits"),
    "train": ("worldmodel fit", "pre-train a world model: orrery train -c pretrain"),
    "finetune": ("worldmodel finetune", "train a force head on a checkpoint, or from scratch"),
    "predict": ("worldmodel predict", "write a force model's predictions to a file"),
    "probe": ("worldmodel probe", "evaluate checkpoints beside controls and ceilings"),
    "law": ("symreg", "search predictions for a law: fit, score, leaderboard, ls"),
    "bench": ("benchmarks", "run and report the studies: ls, run, report"),
    "attention": ("attention", "list the attention variants; build and tune kernels"),
    "doctor": ("orrery.doctor", "say what runs on this machine, and how to get the rest"),
    "validate": ("worldmodel validate", "evaluate a checkpoint on the validation sequences"),
    "test": ("worldmodel test", "evaluate a checkpoint on the held-out test sequences"),
    "attention-maps": ("worldmodel attention-maps", "draw the attention weights of a checkpoint"),
    "export": ("worldmodel export", "write a checkpoint in the hub's form, weights and settings"),
    "shards": ("worldmodel shards", "write a text corpus as files of tokens"),
    "bpe": ("worldmodel bpe", "train a byte-level BPE tokeniser on a corpus"),
}
"""Commands by first word: the arguments of ``python -m`` that each runs, and its purpose."""
EXAMPLES = """
from orbits to a law:
  orrery train -c pretrain --model.attention=lssar
  orrery finetune -c force --pretrained runs/pretrain/version_0/checkpoints/last.ckpt
  orrery predict runs/force/version_0/checkpoints/last.ckpt
  orrery law fit runs/force/version_0/predictions.npz

where output is data: --json prints one JSON object, --quiet what a script needs of it alone.
a law, an attention or mixer, an engine, a study or a corpus of your own: --plugin FILE.py.
`orrery COMMAND --help` has the flags of a command; `python -m PACKAGE` runs the same."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command that the first word names; a word that names none exits with 2."""
    words = taken(arguments)
    command, rest = words[0], words[1:]
    if command in ("-h", "--help"):
        print(_overview())
    elif command == "--version":
        print(f"orrery {__version__}")
    elif command in COMMANDS:
        package, *first = COMMANDS[command][0].split()
        name = package if "." in package else f"{package}.__main__"
        importlib.import_module(name).main([*first, *rest])
    else:
        leave(f"error: {unknown('command', command, COMMANDS)}", 2)


def _overview() -> str:
    lines = [f"  {name:15s} {about}" for name, (_, about) in COMMANDS.items()]
    return "\n".join(["usage: orrery COMMAND ...", "", "commands:", *lines, EXAMPLES])


if __name__ == "__main__":
    main()
