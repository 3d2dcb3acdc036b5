"""The command line of the world models: LightningCLI with one more command, ``finetune``."""

from __future__ import annotations

import re
import sys
from typing import Any, NoReturn

import lightning
from lightning.pytorch.cli import (
    ArgsType,
    LightningArgumentParser,
    LightningCLI,
    SaveConfigCallback,
)

from worldmodel.allocator import keep_freed_memory
from worldmodel.callbacks import SaveLastStep
from worldmodel.data import OrbitData, SequenceData
from worldmodel.gpt_task import GPTTask
from worldmodel.shard_data import ShardData
from worldmodel.state_task import StateTask
from worldmodel.tasks import ForceTask, NextTokenTask, OrbitTask, read_checkpoint
from worldmodel.text import CorpusData, TextData
from worldmodel.text_task import TextTask

KEYWORDS = ("best", "last", "hpc", "registry")
"""What Lightning takes as ``ckpt_path`` beside a path."""
TASKS = (NextTokenTask, ForceTask, StateTask, TextTask)
DATA = (OrbitData, TextData, ShardData)
CLASSES = {
    "model": ", ".join(task.__name__ for task in TASKS),
    "data": ", ".join(data.__name__ for data in DATA),
}


class Trainer(lightning.Trainer):
    """A Lightning Trainer that can start from a pre-trained backbone."""

    def finetune(
        self,
        model: OrbitTask,
        datamodule: OrbitData,
        pretrained: str | None = None,
        ckpt_path: str | None = None,
    ) -> None:
        """Train a force head on a pre-trained backbone.

        Args:
            model: A ForceTask with the variant and shape of the checkpoint.
            datamodule: Labelled sequences (population: force).
            pretrained: Checkpoint of a NextTokenTask; leave it out to train from scratch.
            ckpt_path: Checkpoint of an interrupted fine-tuning run, to resume it.

        Raises:
            ValueError: The model is not a ForceTask, the data have no labels, or the checkpoint
                holds another variant.
        """
        if not isinstance(model, ForceTask):
            raise ValueError(f"finetune trains a ForceTask, got {type(model).__name__}")
        if datamodule.hparams["population"] != "force":
            raise ValueError("finetune needs labelled sequences: set data.population=force")
        if pretrained and not ckpt_path:
            model.load_backbone(pretrained)
        self.fit(model, datamodule=datamodule, ckpt_path=ckpt_path, weights_only=True)


class SaveConfig(SaveConfigCallback):
    """Save the resolved configuration in a form that every command can read back."""

    def __init__(self, parser: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        config = config.clone()
        config.pop("pretrained", None)  # an argument of finetune alone
        super().__init__(parser, config, *args, **kwargs)


class Parser(LightningArgumentParser):
    """Report a bad argument as one line that lists the choices."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the message without the usage text and exit with 2."""
        unknown = re.search(r"unrecognized arguments: --([\w.]+)", message)
        if unknown:
            parent = unknown[1].rpartition(".")[0]
            message = f"unknown key {unknown[1]!r}; choose from {', '.join(self._keys(parent))}"
        not_accepted = re.search(r"Option '(\w+)' is not accepted", message)
        if not_accepted:  # by the parser of one task or data module, which is then this parser
            message = f"unknown key {not_accepted[1]!r}; choose from {', '.join(self._keys(''))}"
        no_class = re.match(r'Parser key "(model|data)":\s+- Expected a path but (\S+)', message)
        if no_class:
            key, name = no_class.groups()
            message = f"unknown {key} class {name!r}; choose from {CLASSES[key]}"
        _fail(message)

    def _keys(self, parent: str) -> list[str]:
        """Return the keys one level below ``parent`` of this command's arguments."""
        start = f"{parent}." if parent else ""
        keys = {
            action.dest.removeprefix(start).split(".")[0]
            for action in self._actions
            if action.dest.startswith(start)
        }
        return sorted(
            key for key in keys if key.isidentifier() and key not in ("help", "subcommand")
        )


class WorldModelCLI(LightningCLI):
    """fit | validate | test | predict | finetune, configured by YAML files and flags."""

    def __init__(self, args: ArgsType = None) -> None:
        super().__init__(
            GPTTask,
            SequenceData,
            subclass_mode_model=True,
            subclass_mode_data=True,
            trainer_class=Trainer,
            seed_everything_default=0,
            save_config_callback=SaveConfig,
            save_config_kwargs={"overwrite": True},
            parser_class=Parser,
            args=args,
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Return the commands and the arguments the CLI fills in itself."""
        return {**LightningCLI.subcommands(), "finetune": {"model", "datamodule"}}

    def _parse_ckpt_path(self) -> None:
        """Take the model from a checkpoint that names its class, as those of this CLI do."""
        path = self.config[self.config["subcommand"]].get("ckpt_path")
        if path in (None, *KEYWORDS) or "_class_path" in read_checkpoint(path)["hyper_parameters"]:
            super()._parse_ckpt_path()

    def before_instantiate_classes(self) -> None:
        """Load checkpoints as plain data unless told otherwise."""
        config = self.config[self.subcommand]
        if config.get("weights_only", True) is None:
            config["weights_only"] = True

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Save the last step, take orbits by default, and let model and data agree."""
        parser.add_lightning_class_args(SaveLastStep, "save_last_step")
        parser.set_defaults({"data": {"class_path": "worldmodel.data.OrbitData"}})
        for key in ("protocol", "protocol_args", "tokenizer"):
            parser.link_arguments(f"data.init_args.{key}", f"model.init_args.{key}")

    def after_instantiate_classes(self) -> None:
        """Refuse a task that cannot read its data or checkpoint, or that predicts no forces.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            ValueError: An orbit task on text, a text task on orbits, predict without a
                ForceTask, or a checkpoint of another variant, protocol or shape.
        """
        model, data = type(self.model), type(self.datamodule)
        if issubclass(model, TextTask) != issubclass(data, CorpusData):
            raise ValueError(
                f"{model.__name__} does not read {data.__name__}: text needs a TextTask and "
                "TextData or ShardData, orbits need an OrbitTask and an OrbitData"
            )
        if self.subcommand == "predict" and not issubclass(model, ForceTask):
            raise ValueError(f"predict writes the forces of a ForceTask, got {model.__name__}")
        checkpoint = self.config[self.subcommand].get("ckpt_path")
        if isinstance(self.model, OrbitTask) and checkpoint not in (None, *KEYWORDS):
            held = read_checkpoint(checkpoint)
            self.model.check_backbone(checkpoint, held, with_head=True)


def main(args: ArgsType = None) -> None:
    """Run the command line.

    Bad input ends with one line and exit code 2; training that diverged with one line and 1.
    """
    keep_freed_memory()
    try:
        WorldModelCLI(args)
    except (ValueError, TypeError, FileNotFoundError, FileExistsError) as error:
        _fail(str(error))
    except FloatingPointError as error:
        print(f"error: {error}", file=sys.stderr)
        sys.exit(1)


def _fail(message: str) -> NoReturn:
    # jsonargparse wraps what a constructor raised in a report on every member of a union.
    causes = re.findall(r"^\s+- (?!Expected a )(.*)$", message, flags=re.MULTILINE)
    line = causes[0] if causes else " ".join(message.split())
    print(f"error: {line}", file=sys.stderr)
    sys.exit(2)
