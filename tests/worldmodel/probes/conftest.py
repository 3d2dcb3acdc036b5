"""Tiny checkpoints that all tests of probes share."""

import logging
import warnings

import lightning
import pytest
import torch

from tests.worldmodel.trainings import save
from worldmodel.data.orbits import OrbitData
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.training.trainer import quiet_trainer

SMALL = {"n_layer": 1, "n_head": 2, "head_dim": 8}
SIZES = {
    "identifiable": {"n_points": 24, "n_bins": 64},
    "fixed": {"n_points": 40, "n_bins": 7000},
    "paper": {"n_points": 64, "n_bins": 2000},
}


@pytest.fixture(autouse=True)
def quiet():
    """Leave out what Lightning says of so many trainings."""
    logging.getLogger("lightning.pytorch").setLevel(logging.ERROR)
    warnings.simplefilter("ignore")


@pytest.fixture(scope="session")
def trained(tmp_path_factory):
    """Return a function that trains a tiny model for two steps, each once in a session."""
    folder, made = tmp_path_factory.mktemp("trained"), {}

    def train(protocol="identifiable", kind=NextTokenModel, protocol_args=None, **data):
        name = repr((protocol, kind.__name__, protocol_args, data))
        if name not in made:
            args = {**SIZES[protocol], **(protocol_args or {})}
            population = "force" if kind is ForceModel else "pretrain"
            source = OrbitData(
                protocol=protocol, protocol_args=args, population=population, batch_size=4, **data
            )
            lightning.seed_everything(0, verbose=False)
            trainer = quiet_trainer(2)
            trainer.fit(kind(protocol=protocol, protocol_args=args, **SMALL), datamodule=source)
            made[name] = folder / f"{len(made)}.ckpt"
            trainer.save_checkpoint(made[name])
        return made[name]

    return train


@pytest.fixture(scope="session")
def untrained(tmp_path_factory):
    """Return a function that writes a tiny model with random weights, each once in a session."""
    folder, made = tmp_path_factory.mktemp("untrained"), {}

    def write(kind=NextTokenModel, head_std=None, **options):
        name = repr((kind.__name__, head_std, options))
        if name not in made:
            torch.manual_seed(0)
            model = kind(**{**SMALL, **options})
            for parameter in model.head.parameters() if head_std else ():
                torch.nn.init.normal_(parameter, std=head_std)
            made[name] = save(model, folder / f"{len(made)}.ckpt")
        return made[name]

    return write
