"""The command line of the world models: LightningCLI with one more command, ``finetune``."""

from __future__ import annotations

import re
import sys
from pathlib import Path
from typing import Any, NoReturn

import lightning
from jsonargparse import get_loader, set_loader, set_parsing_settings
from lightning.fabric.plugins import CheckpointIO
from lightning.fabric.utilities.exceptions import MisconfigurationException
from lightning.pytorch.cli import (
    ArgsType,
    LightningArgumentParser,
    LightningCLI,
    SaveConfigCallback,
)
from yaml import YAMLError

from orbits.runs import artefact
from orbits.runs.cli import called
from worldmodel.data.orbits import OrbitData
from worldmodel.data.sequences import SequenceData
from worldmodel.data.shards import ShardData
from worldmodel.data.text import CorpusData, TextData
from worldmodel.keys.signatures import LINKED
from worldmodel.models.base import GPTModel
from worldmodel.models.checkpoint import (
    KEYWORDS,
    MAKER,
    OWN_CLASS,
    check_resumable,
    read_checkpoint,
)
from worldmodel.models.orbit import ForceModel, NextTokenModel, OrbitModel
from worldmodel.models.renamed import RENAMED, renamed
from worldmodel.models.state import StateModel
from worldmodel.models.text import TextModel
from worldmodel.training.allocator import keep_freed_memory
from worldmodel.training.callbacks import PredictionWriter, SaveLastStep
from worldmodel.training.checkpoints import AtomicCheckpoints
from worldmodel.training.resumed import compare_data, compare_model
from worldmodel.training.stopping import INTERRUPTED, StopBetweenSteps
from worldmodel.training.terminal import (
    Form,
    quieten,
    tell_evaluated,
    tell_predicted,
    tell_random,
    tell_trained,
    with_bar,
)

TRAINING = ("fit", "finetune")
"""Commands that start or resume a training; the others evaluate a trained model."""
NOT_OURS = r"DataLoader worker|[Oo]ut of memory|can't allocate memory"
"""PyTorch's messages about limits of the machine, which are no faults of the program."""
MODELS = (NextTokenModel, ForceModel, StateModel, TextModel)
DATA = (OrbitData, TextData, ShardData)
YAML = "yaml, with the classes of earlier versions under their present names"
"""Name of the way in which configurations and values of flags are read."""
CLASSES = {
    "model": ", ".join(model.__name__ for model in MODELS),
    "data": ", ".join(data.__name__ for data in DATA),
}


class Trainer(lightning.Trainer):
    """A Lightning Trainer that can start from a pre-trained backbone."""

    def finetune(
        self,
        model: OrbitModel,
        datamodule: OrbitData,
        pretrained: str | None = None,
        ckpt_path: str | None = None,
    ) -> None:
        """Train a force head on a pre-trained backbone.

        Args:
            model: A ForceModel with the variant and shape of the checkpoint.
            datamodule: Labelled sequences (population: force).
            pretrained: Checkpoint of a NextTokenModel; without it that of ``model.pretrained``,
                or random weights.
            ckpt_path: Checkpoint of an interrupted fine-tuning run, to resume it.

        Raises:
            ValueError: The model is not a ForceModel, the data have no labels, or the checkpoint
                holds another variant.
        """
        if not isinstance(model, ForceModel):
            raise ValueError(f"finetune trains a ForceModel, got {type(model).__name__}")
        if datamodule.hparams["population"] != "force":
            raise ValueError("finetune needs labelled sequences: set data.population=force")
        if pretrained and not ckpt_path:
            model.load_backbone(pretrained)
        self.fit(model, datamodule=datamodule, ckpt_path=ckpt_path, weights_only=True)


def _read_yaml(text: str) -> Any:
    return renamed(get_loader("yaml")(text))


set_loader(YAML, _read_yaml, exceptions=(YAMLError,))


class SaveConfig(SaveConfigCallback):
    """Save the resolved configuration of a training in a form that every command can read back."""

    def __init__(self, parser: Any, config: Any, *args: Any, **kwargs: Any) -> None:
        config = config.clone()
        pretrained = config.pop("pretrained", None)  # an argument of finetune alone
        if pretrained:
            config["model"]["init_args"]["pretrained"] = pretrained
        super().__init__(parser, config, *args, **kwargs)

    def setup(
        self, trainer: lightning.Trainer, pl_module: lightning.LightningModule, stage: str
    ) -> None:
        """Save it in the logger's folder, and remove half-written files of killed trainings.

        Without a logger, nothing is saved.
        """
        if stage != "fit" or trainer.logger is None:
            return
        log_dir = trainer.log_dir  # a call of all processes
        if trainer.is_global_zero and log_dir is not None:
            folder = Path(log_dir)
            kin = folder.parent if folder.name.startswith("version_") else folder
            artefact.remove_abandoned(kin)
            text = self.parser.dump(self.config, skip_none=False)
            artefact.write_bytes(folder / self.config_filename, text.encode())


class Parser(LightningArgumentParser):
    """Report a bad argument as one line that lists the choices."""

    def error(self, message: str, ex: Exception | None = None) -> NoReturn:
        """Print the message without the usage text and exit with 2."""
        unknown = re.search(r"unrecognized arguments: --([\w.]+)", message)
        if unknown:
            parent = unknown[1].rpartition(".")[0]
            keys = self._keys(parent) or self._keys("")
            message = f"unknown key {unknown[1]!r}; choose from {', '.join(keys)}"
        not_accepted = re.search(r"Option '(\w+)' is not accepted", message)
        if not_accepted:  # by the parser of one model or data module, which is then this parser
            message = f"unknown key {not_accepted[1]!r}; choose from {', '.join(self._keys(''))}"
        no_class = re.match(r'Parser key "(model|data)":\s+- Expected a path but (\S+)', message)
        if no_class:
            key, name = no_class.groups()
            present = f"it is now {RENAMED[name]}" if name in RENAMED else None
            message = f"unknown {key} class {name!r}; {present or f'choose from {CLASSES[key]}'}"
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
    """fit | validate | test | predict | finetune, configured by YAML files and flags.

    Args:
        args: Words of the command line; None for those of the process.
        form: How the losses of an evaluation are printed: text, json or quiet.
    """

    def __init__(self, args: ArgsType = None, form: Form = "text") -> None:
        self.form = form
        # A {class_path: ...} inside a dict[str, Any], as attention_args, is data and no class.
        set_parsing_settings(instantiate_subclass_spec_in_any=False)
        super().__init__(
            GPTModel,
            SequenceData,
            subclass_mode_model=True,
            subclass_mode_data=True,
            trainer_class=Trainer,
            seed_everything_default=0,
            save_config_callback=SaveConfig,
            parser_class=Parser,
            parser_kwargs={
                "prog": called("worldmodel"),
                "parser_mode": YAML,
                "allow_abbrev": False,
            },
            args=args,
        )

    @staticmethod
    def subcommands() -> dict[str, set[str]]:
        """Return the commands and the arguments the CLI fills in itself."""
        return {**LightningCLI.subcommands(), "finetune": {"model", "datamodule"}}

    def _add_subcommands(self, parser: LightningArgumentParser, **kwargs: Any) -> None:
        """Let the usage of each command be as it was typed."""
        super()._add_subcommands(parser, **kwargs)
        for name, subparser in self._subcommand_parsers.items():
            subparser.prog = called(f"worldmodel {name}")

    def _parse_ckpt_path(self) -> None:
        """Take the model from a checkpoint that names its class, as those of this CLI do."""
        command = self.config["subcommand"]
        path = self.config[command].get("ckpt_path")
        if path in (None, *KEYWORDS):
            return
        arguments = dict(read_checkpoint(path)["hyper_parameters"])
        if OWN_CLASS in arguments:
            configured = self.config[command]["model"]
            arguments.pop(MAKER, None)
            restored = {"class_path": renamed(arguments.pop(OWN_CLASS)), "dict_kwargs": arguments}
            self.config = self.parser.parse_object({command: {"model": restored}}, self.config)
            taken = self.config[command]["model"]
            compare_model(configured, taken, path, resumes=command in TRAINING)

    def before_instantiate_classes(self) -> None:
        """Load checkpoints as plain data unless told otherwise."""
        config = self.config[self.subcommand]
        if config.get("weights_only", True) is None:
            config["weights_only"] = True

    def instantiate_trainer(self, **kwargs: Any) -> lightning.Trainer:
        """Write checkpoints in one step, unless a plugin of one's own writes them."""
        plugins = self._get(self.config_init, "trainer.plugins") or []
        plugins = plugins if isinstance(plugins, list) else [plugins]
        if not any(isinstance(plugin, CheckpointIO) for plugin in plugins):
            plugins = [*plugins, AtomicCheckpoints()]
        known = self._get(self.config_init, "trainer") or {}
        callbacks = with_bar(known.get("callbacks"), known.get("enable_progress_bar"))
        if known.get("enable_model_summary") is None:  # its table is of counts, and a FLOPs of 0
            kwargs["enable_model_summary"] = False
        return super().instantiate_trainer(plugins=plugins, callbacks=callbacks, **kwargs)

    def before_fit(self) -> None:
        """Say so where a force head starts without a backbone, which nobody may have meant."""
        config = self.config_init[self.subcommand]
        if isinstance(self.model, ForceModel) and not (
            config.get("pretrained") or config.get("ckpt_path") or self.model.hparams["pretrained"]
        ):
            tell_random(self.trainer)

    before_finetune = before_fit

    def after_fit(self) -> None:
        """Print the files written, the quality of the model, and the command that comes next."""
        tell_trained(self.trainer, self.model)

    after_finetune = after_fit

    def after_test(self) -> None:
        """Print the command that comes next."""
        path = self.config[self.subcommand]["ckpt_path"]
        tell_evaluated(self.trainer, self.model, path, self.form)

    after_validate = after_test

    def after_predict(self) -> None:
        """Print the file written, its error, and the command that comes next."""
        for writer in self.trainer.callbacks:  # type: ignore[attr-defined]
            if isinstance(writer, PredictionWriter) and self.trainer.is_global_zero:
                tell_predicted(writer.path)

    def add_arguments_to_parser(self, parser: LightningArgumentParser) -> None:
        """Save the last step, take orbits by default, and let model and data agree."""
        parser.add_lightning_class_args(SaveLastStep, "save_last_step")
        parser.add_lightning_class_args(StopBetweenSteps, "stop_between_steps")
        parser.set_defaults({"data": {"class_path": "worldmodel.data.orbits.OrbitData"}})
        for key in LINKED:
            parser.link_arguments(f"data.init_args.{key}", f"model.init_args.{key}")

    def after_instantiate_classes(self) -> None:
        """Refuse a model that cannot read its data or checkpoint, or cannot serve the command.

        Raises:
            FileNotFoundError: There is no such checkpoint.
            ValueError: An orbit model on text, a text model on orbits, predict without a ForceModel
                or a writer, no checkpoint to evaluate, or a checkpoint of another variant,
                protocol or shape.
        """
        for name in ("optimizer", "lr_scheduler"):
            if self.config[self.subcommand].get(name) is not None:
                raise ValueError(
                    f"{name} would train by another recipe than the checkpoint tells; set "
                    "model.optimizer, model.lr and model.weight_decay"
                )
        model, data = type(self.model), type(self.datamodule)
        if issubclass(model, TextModel) != issubclass(data, CorpusData):
            raise ValueError(
                f"{model.__name__} does not read {data.__name__}: text needs a TextModel and "
                "TextData or ShardData, orbits need an OrbitModel and an OrbitData"
            )
        if self.subcommand == "predict" and not issubclass(model, ForceModel):
            raise ValueError(f"predict writes the forces of a ForceModel, got {model.__name__}")
        callbacks = self.trainer.callbacks  # type: ignore[attr-defined]
        writes = any(isinstance(callback, PredictionWriter) for callback in callbacks)
        if self.subcommand == "predict" and not writes:
            raise ValueError(
                "predict writes no file without a PredictionWriter: put one into "
                "trainer.callbacks, as worldmodel/configs/force.yaml does"
            )
        if isinstance(self.datamodule, OrbitData) and self.subcommand in (*TRAINING, "validate"):
            # As Lightning does, which has made folders by then.
            self.datamodule.setup("fit" if self.subcommand in TRAINING else "validate")
        checkpoint = self.config[self.subcommand].get("ckpt_path")
        if checkpoint is None and self.subcommand not in TRAINING:
            raise ValueError(f"{self.subcommand} needs a trained model: set ckpt_path")
        if checkpoint not in (None, *KEYWORDS):
            content = read_checkpoint(checkpoint)
            self.model.check_checkpoint(checkpoint, content)
            if self.subcommand in TRAINING:
                check_resumable(checkpoint, content)
                compare_data(self.datamodule, content, checkpoint)


def main(args: ArgsType = None, form: Form = "text") -> None:
    """Run the command line.

    Every failure is one line. Bad input, a full disk and a missing folder exit with 2; a training
    that diverged, memory that ran out and a data loader that was killed with 1; Ctrl-C with 130
    and SIGTERM with 143, once the last checkpoint is written.
    """
    keep_freed_memory()
    quieten()
    try:
        WorldModelCLI(args, form)
    except (ValueError, TypeError, OSError, MisconfigurationException) as error:
        _fail(str(error))
    except (KeyboardInterrupt, SystemExit) as ended:
        # Lightning turns an interruption into an exit with 1.
        if not any(isinstance(x, KeyboardInterrupt) for x in (ended, ended.__context__)):
            raise
        _fail("stopped at once; nothing was saved", INTERRUPTED)
    except MemoryError as error:
        _fail(f"out of memory: {error}", 1)
    except FloatingPointError as error:
        _fail(str(error), 1)
    except RuntimeError as error:
        if not re.search(NOT_OURS, str(error)):
            raise
        _fail(str(error), 1)


def _fail(message: str, code: int = 2) -> NoReturn:
    # jsonargparse wraps what a constructor raised in a report on every member of a union.
    causes = re.findall(r"^\s+- (?!Expected a )(.*:\n.*|.*)$", message, flags=re.MULTILINE)
    if causes and all(cause.startswith("Does not validate against any") for cause in causes):
        key, value = (re.search(x, message) for x in (r'key "([\w.]+)"', "Given value: (.*)$"))
        if key and value:
            causes = [f"{key[1]} does not take {value[1]!r}; name a class as package.module.Class"]
    line = " ".join((causes[0] if causes else message).split())
    print(f"error: {line}", file=sys.stderr)
    sys.exit(code)
