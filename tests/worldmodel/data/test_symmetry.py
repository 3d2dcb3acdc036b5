"""Images of orbits against the simulator: the image is what the turned system would show."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch

from orbits import protocols
from tests.worldmodel.trainings import trainer
from worldmodel.data.orbit_sequences import OrbitSequences
from worldmodel.data.orbits import OrbitData
from worldmodel.data.symmetry import N_SYMMETRIES, images
from worldmodel.models.orbit import ForceModel

PROTOCOL = protocols.get("identifiable", {"n_points": 16})
N = 40


def matrix(symmetry):
    """The symmetry as a 2 by 2 matrix: reflect x, reflect y, exchange, in this order."""
    x, y, exchange = (symmetry >> k & 1 for k in range(3))
    diagonal = np.diag([-1.0 if x else 1.0, -1.0 if y else 1.0])
    return (np.array([[0.0, 1.0], [1.0, 0.0]]) if exchange else np.eye(2)) @ diagonal


def turned_system(symmetry):
    """Turn the systems themselves and observe them: the independent answer."""
    world = PROTOCOL.systems(3, "train", range(N), "force")
    m = matrix(symmetry)
    angle = np.arctan2(m[1, 0], m[0, 0])
    forwards = np.linalg.det(m) > 0
    if forwards:
        periapsis, anomaly = world.periapsis + angle, world.mean_anomaly
    else:
        # Reflected and played backwards: the orbit begins where it ended, its anomaly mirrored.
        from orbits import kepler

        period = kepler.period(
            world.semi_major_axis[:, 0], world.planet_mass[:, 0] + world.star_mass
        )
        duration = np.asarray(PROTOCOL.dts)[world.dt_index] * (PROTOCOL.n_points // 2 - 1)
        last = world.mean_anomaly + (2 * np.pi * duration / period)[:, None]
        periapsis, anomaly = angle - world.periapsis, -last
    moved = world._replace(
        periapsis=periapsis % (2 * np.pi),
        mean_anomaly=anomaly % (2 * np.pi),
        centre_of_mass=world.centre_of_mass @ m.T,
    )
    return PROTOCOL.observe(moved, labelled=True)


@pytest.mark.parametrize("symmetry", range(N_SYMMETRIES))
def test_an_image_is_what_the_turned_system_shows(symmetry):
    whole = OrbitSequences(PROTOCOL, "force", "train", 3, N, fine_tuning=True, whole=True)
    batch = whole.__getitems__(list(range(N)))
    found = images(batch, torch.full((N,), symmetry), PROTOCOL.n_bins)
    expected = turned_system(symmetry)
    for name in ("coordinates", "force", "state"):
        np.testing.assert_allclose(
            found[name].numpy(), expected[name], rtol=2e-5, atol=2e-5, err_msg=name
        )
    # A bin may differ where a coordinate lies on its edge to within rounding.
    same = found["tokens"].numpy() == expected["tokens"]
    assert same.mean() > 0.999


def test_every_sequence_has_its_own_image():
    whole = OrbitSequences(PROTOCOL, "force", "train", 3, N, fine_tuning=True, whole=True)
    batch = whole.__getitems__(list(range(8)))
    mixed = images(batch, torch.arange(8), PROTOCOL.n_bins)
    for k in range(8):
        alone = images({n: v[k : k + 1] for n, v in batch.items()}, torch.tensor([k]), 512)
        for name in ("tokens", "coordinates", "force", "state"):
            torch.testing.assert_close(mixed[name][k], alone[name][0], equal_nan=True)
    assert len({tuple(row) for row in mixed["tokens"][:, 1].tolist()}) > 1


def test_training_takes_images_and_validation_does_not(tmp_path):
    import lightning

    seen = []

    class Watch(lightning.Callback):
        def on_train_batch_start(self, trainer, module, batch, index):
            seen.append(batch)

        def on_validation_batch_start(self, trainer, module, batch, index, loader=0):
            torch.testing.assert_close(batch["tokens"], plain["tokens"])

    arguments = {"protocol_args": {"n_points": 16}, "population": "force", "n_val": 4}
    data = OrbitData(**arguments, n_train=12, batch_size=6, eval_batch_size=4, images=True)
    plain = next(iter(data.val_dataloader()))
    task = ForceModel(protocol_args={"n_points": 16}, n_layer=1, n_head=1, head_dim=8)
    options = {"val_check_interval": 3, "num_sanity_val_steps": 2, "enable_checkpointing": False}
    trainer(tmp_path, 3, [Watch()], **options).fit(task, datamodule=data)
    for batch in seen:
        asked = batch["force"].isfinite().all(-1)
        assert not asked[:, :9].any(), "no force is asked in the first half"
        assert asked[:, 9::2].all(), "every image answers in its whole second half"
        # The force lies along the line from the planet to the star, whatever the image.
        position, force = batch["state"][..., :2][asked], batch["force"][asked]
        cosine = torch.nn.functional.cosine_similarity(position, force, dim=-1)
        torch.testing.assert_close(cosine, -torch.ones_like(cosine))
    original = OrbitData(**arguments, n_train=12).training_sequences().__getitems__(range(12))
    tokens = {tuple(row.flatten().tolist()) for row in original["tokens"]}
    drawn = [tuple(row.flatten().tolist()) for batch in seen for row in batch["tokens"]]
    assert 0 < sum(row in tokens for row in drawn) < len(drawn)


def test_batches_of_one_accumulated_step_have_images_of_their_own(monkeypatch):
    chosen = []

    def noted(batch, choice, n_bins):
        chosen.append(choice.tolist())
        return batch

    monkeypatch.setattr("worldmodel.data.orbits.images", noted)
    sizes = {"n_train": 64, "batch_size": 32, "protocol_args": {"n_points": 16}}
    data = OrbitData(population="force", images=True, **sizes)
    step = {"training": True, "global_step": 0, "global_rank": 0}
    batches = [data.training_sequences().__getitems__(range(k, k + 32)) for k in (0, 32)]
    for accumulated in (1, 2):
        data.trainer = SimpleNamespace(**step, accumulate_grad_batches=accumulated)
        for batch in batches:
            data.on_after_batch_transfer(dict(batch), 0)
    assert chosen[0] == chosen[1], "which image a step takes is its own"
    assert chosen[2] != chosen[3]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"population": "pretrain"}, "of labelled sequences"),
        ({"n_train": 5, "protocol_args": {"label_leak": 2}}, "do not go with label_leak"),
        ({"protocol_args": {"n_points": 7}}, "even n_points, got 7"),
    ],
)
def test_what_has_no_images_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        OrbitData(**{"population": "force", "images": True, **changes})


def test_a_step_without_its_star_cannot_be_reversed():
    with pytest.raises(ValueError, match="even number of points, got 5"):
        images({"tokens": torch.zeros(1, 6, 2, dtype=torch.int64)}, torch.tensor([0]), 512)
