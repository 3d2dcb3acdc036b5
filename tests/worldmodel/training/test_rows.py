"""Rows of leaderboards and of probes: what tells trainings apart is in their names."""

import dataclasses

import pytest

from tests.worldmodel.trainings import save
from worldmodel.models.orbit import NextTokenModel
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.probes.settings import Settings
from worldmodel.training.callbacks import _row

MODEL = {"attention": "softmax", "attention_args": None, "protocol": "fixed", "pretrained": None}


def test_leaked_labels_and_shifts_are_in_the_name_of_the_protocol():
    leaked = {"n_train": 10, "protocol_args": {"label_leak": 2}}
    assert _row(MODEL, leaked, None)["protocol"] == "fixed, 2 leaked labels per test sequence"
    assert _row(MODEL, {"n_train": 10}, "closer")["protocol"] == "fixed, shift closer"
    assert _row(MODEL, {"n_train": 10}, None)["protocol"] == "fixed"


def test_a_window_and_a_density_make_other_models(tmp_path):
    small = {"n_layer": 1, "n_head": 1, "head_dim": 8, "protocol_args": {"n_points": 24}}
    sizes = [
        Checkpoint.load(save(NextTokenModel(**small, **more), tmp_path / f"{k}.ckpt")).row["size"]
        for k, more in enumerate(
            ({}, {"window": 2}, {"predicts": "mixture", "input": "coordinates"})
        )
    ]
    assert len(set(sizes)) == 3
    assert "window" not in sizes[0]
    assert "window 2" in sizes[1]
    assert "predicts mixture" in sizes[2]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_a_seed_of_data_out_of_range_is_refused(seed):
    with pytest.raises(ValueError, match=r"data_seed must be in \[0, 2\^64\)"):
        dataclasses.replace(Settings(), data_seed=seed)
