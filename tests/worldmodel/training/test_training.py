"""Training: optimiser, resume, reload as the same variant, divergence, predictions."""

import lightning
import pytest
import torch
from lightning.pytorch.callbacks import ModelCheckpoint
from lightning.pytorch.loggers import CSVLogger

import attention
from orbits.runs import artefact
from tests.tiers import corners
from tests.worldmodel.trainings import (
    StopAt,
    Stopped,
    assert_same_weights,
    with_and_without_a_kill,
)
from tests.worldmodel.trainings import trainer as quiet_trainer
from worldmodel.data.orbits import OrbitData
from worldmodel.models import optim
from worldmodel.models.load import load_model
from worldmodel.models.optim import BatchedMuon
from worldmodel.models.orbit import ForceModel, NextTokenModel
from worldmodel.models.trained import NonFiniteLoss
from worldmodel.probes.checkpoint import Checkpoint
from worldmodel.training.callbacks import PredictionWriter, SharpenAfter, SharpenWhen

pytestmark = pytest.mark.usefixtures("quiet")

ARGS = {"n_points": 16, "n_bins": 32}
SMALL = {"protocol_args": ARGS, "n_layer": 1, "n_head": 2, "head_dim": 8}


def data(**changes):
    return OrbitData(**{"protocol_args": ARGS, "batch_size": 8, "n_val": 8, "n_test": 20} | changes)


def trainer(folder, steps, callbacks=(), **changes):
    options = {
        "logger": CSVLogger(folder),
        "val_check_interval": 4,
        "log_every_n_steps": 1,
        "enable_checkpointing": True,
    }
    return quiet_trainer(folder, steps, callbacks, **options | changes)


@pytest.mark.parametrize(("optimizer", "n_train"), [("muon", None), ("adamw", 20)])
def test_a_resumed_run_ends_where_an_uninterrupted_one_does(tmp_path, optimizer, n_train):
    def model():
        torch.manual_seed(4)
        return NextTokenModel(optimizer=optimizer, warmup_steps=2, **SMALL)

    made = with_and_without_a_kill(model, lambda: data(n_train=n_train), tmp_path, 8)
    assert_same_weights(*made)


@pytest.mark.parametrize(
    "name", corners(attention.names(), "softmax", "lssar", "lazy", "zeros_sm", "sigmoid")
)
def test_a_checkpoint_reloads_as_the_same_variant(tmp_path, name):
    known = attention.get(name).arguments
    args = {"p": 3.0, "length": 17, "window": 5}
    args = {key: value for key, value in args.items() if key in known} or None
    task = NextTokenModel(attention=name, attention_args=args, **SMALL)
    for parameter in task.gpt.parameters():  # learned numbers must come back too
        parameter.data.add_(0.1 * torch.randn_like(parameter))
    run = trainer(tmp_path, 1)
    run.strategy.connect(task)
    run.save_checkpoint(tmp_path / "model.ckpt", weights_only=True)
    again = load_model(tmp_path / "model.ckpt")
    assert isinstance(again, NextTokenModel)
    assert again.gpt.blocks[0].attention.spec == task.gpt.blocks[0].attention.spec
    batch = next(iter(data().test_dataloader()))
    torch.testing.assert_close(again.eval()(batch), task.eval()(batch), rtol=0, atol=0)

    force = ForceModel(attention=name, attention_args=args, **SMALL)
    force.load_backbone(tmp_path / "model.ckpt")
    batch = next(iter(data(population="force").test_dataloader()))
    torch.testing.assert_close(force.eval().hidden(batch), task.hidden(batch), rtol=0, atol=0)


@pytest.mark.parametrize(
    "changes",
    [{"attention": "lssa"}, {"n_layer": 2}, {"protocol_args": {"n_points": 16, "n_bins": 64}}],
)
def test_a_backbone_of_another_kind_is_refused(tmp_path, changes):
    run = trainer(tmp_path, 1)
    run.fit(NextTokenModel(**SMALL), data())
    run.save_checkpoint(tmp_path / "model.ckpt")
    with pytest.raises(ValueError, match=next(iter(changes))):
        ForceModel(**SMALL | changes).load_backbone(tmp_path / "model.ckpt")


def test_divergence_stops_with_the_step_and_keeps_the_last_checkpoint(tmp_path):
    task = NextTokenModel(lr=1e-3, **SMALL)
    keep = ModelCheckpoint(tmp_path, filename="good", every_n_train_steps=2)

    class Poison(lightning.Callback):
        def on_train_batch_start(self, trainer, pl_module, batch, batch_idx):
            if trainer.global_step == 3:
                pl_module.head.logits.bias.data.fill_(torch.nan)

    with pytest.raises(NonFiniteLoss, match=r"nan at step 3; head\.logits\.bias.*learning rate"):
        trainer(tmp_path, 6, [keep, Poison()]).fit(task, data())
    kept = torch.load(tmp_path / "good.ckpt", weights_only=True)
    assert kept["global_step"] == 2
    assert all(value.isfinite().all() for value in kept["state_dict"].values())


def test_a_gradient_that_is_not_finite_never_reaches_a_checkpoint(tmp_path):
    keep = ModelCheckpoint(tmp_path, filename="good", every_n_train_steps=1)

    class Poison(lightning.Callback):
        def on_after_backward(self, trainer, pl_module):
            if trainer.global_step == 3:
                pl_module.head.logits.bias.grad[0] = torch.inf

    with pytest.raises(NonFiniteLoss, match=r"gradient is not finite at step 3.*learning rate"):
        trainer(tmp_path, 6, [keep, Poison()]).fit(NextTokenModel(**SMALL), data())
    kept = torch.load(tmp_path / "good.ckpt", weights_only=True)
    assert kept["global_step"] == 3
    assert all(value.isfinite().all() for value in kept["state_dict"].values())


def test_a_file_that_is_no_checkpoint_is_refused_by_name(tmp_path):
    for content in (b"", b"not a checkpoint"):
        (tmp_path / "x.ckpt").write_bytes(content)
        with pytest.raises(ValueError, match=r"x\.ckpt: not a checkpoint"):
            ForceModel(**SMALL).load_backbone(tmp_path / "x.ckpt")


def test_a_resumed_head_keeps_its_scale(tmp_path):
    task = ForceModel(**SMALL)
    first = trainer(tmp_path, 2)
    first.fit(task, data(population="force", n_train=6))
    first.save_checkpoint(tmp_path / "x.ckpt")
    again = ForceModel(**SMALL)
    trainer(tmp_path, 4).fit(
        again,
        data(population="force", n_train=50),
        ckpt_path=tmp_path / "x.ckpt",
        weights_only=True,
    )
    assert again.head.std == task.head.std != 1


def test_sharpening_starts_at_its_step_and_travels_in_the_checkpoint(tmp_path):
    task = NextTokenModel(attention="lssar", **SMALL)
    switch = task.gpt.blocks[0].attention
    states = []

    class Watch(lightning.Callback):
        def on_train_batch_end(self, *_):
            states.append(bool(switch.sharpen))

    run = trainer(tmp_path, 4, [SharpenAfter(2), Watch()])
    run.fit(task, data())
    assert states == [False, False, True, True]
    switch.set_sharpen(False)
    run.save_checkpoint(tmp_path / "off.ckpt")
    again = NextTokenModel.load_from_checkpoint(tmp_path / "off.ckpt", weights_only=True)
    assert not again.gpt.blocks[0].attention.sharpen
    with pytest.raises(ValueError, match="-1"):
        SharpenAfter(-1)


def test_sharpening_can_be_ramped(tmp_path):
    task = NextTokenModel(attention="lssar", attention_args={"p": 9.0}, **SMALL)
    exponents = []

    class Watch(lightning.Callback):
        def on_train_batch_end(self, *_):
            active = task.gpt.blocks[0].attention._active()
            exponents.append(active.p if active.reweights else 0)

    trainer(tmp_path, 6, [SharpenAfter(1, ramp=3), Watch()]).fit(task, data())
    assert exponents == [0, 3.0, 5.0, 7.0, 9.0, 9.0]


def _two_layers():
    layers = {"blocks": torch.nn.ModuleList([torch.nn.Linear(6, 4)]), "rest": torch.nn.Linear(4, 2)}
    return torch.nn.ModuleDict(layers)


def test_muon_adamw_equals_its_parts_and_follows_one_schedule():
    torch.manual_seed(0)
    module = _two_layers()
    twin = _two_layers()
    twin.load_state_dict(module.state_dict())
    ours, schedule = optim.configure(
        module, "muon", lr=0.1, weight_decay=0.01, warmup_steps=2, total_steps=10
    )
    muon = BatchedMuon([twin["blocks"][0].weight], lr=0.1, weight_decay=0.01)
    biases = [twin["blocks"][0].bias, twin["rest"].bias]
    adamw = torch.optim.AdamW(
        [{"params": [twin["rest"].weight]}, {"params": biases, "weight_decay": 0.0}],
        lr=0.1,
        weight_decay=0.01,
        betas=(0.9, 0.95),
    )
    for factor in (0.5, 1.0, 1.0):
        for part in (muon, adamw):
            for group in part.param_groups:
                group["lr"] = 0.1 * factor
        x = torch.randn(3, 6)
        for model, steppers in ((module, (ours,)), (twin, (muon, adamw))):
            model.zero_grad()
            model["rest"](model["blocks"][0](x)).square().sum().backward()
            for stepper in steppers:
                stepper.step()
        schedule.step()
    assert_same_weights(twin, module)


def test_muon_takes_hidden_matrices_alone():
    task = NextTokenModel(attention="lazy", **SMALL)
    optimizer, _ = optim.configure(
        task, "muon", lr=0.1, weight_decay=0.0, warmup_steps=1, total_steps=2
    )
    muon, adamw = ({id(p) for p in part.param_groups[0]["params"]} for part in optimizer.parts)
    mixer = task.gpt.blocks[0].attention
    assert id(mixer.query.weight) in muon
    assert {id(mixer.learned["bias"]), id(mixer.learned["tau"]), id(task.head.logits.weight)} <= (
        adamw
    )
    assert len(muon) == 6
    assert (mixer.learned["bias"] == 0).all(), "initialisation leaves learned numbers alone"


@pytest.mark.full
def test_a_schedule_that_waits_for_a_metric_resumes_as_it_stood(tmp_path):
    def run(folder, callbacks, resume=None):
        lightning.seed_everything(0, verbose=False)
        task = NextTokenModel(attention="lssar", **SMALL)
        keep = ModelCheckpoint(folder, save_last=True, every_n_train_steps=2)
        steps = trainer(folder, 5, [keep, *callbacks], val_check_interval=2)
        steps.fit(task, data(), ckpt_path=resume, weights_only=True)
        return task

    whole = run(tmp_path / "whole", [SharpenWhen("val_loss", above=0)])
    with pytest.raises(Stopped):
        run(tmp_path / "killed", [SharpenWhen("val_loss", above=0), StopAt(3)])
    last = tmp_path / "killed" / "last.ckpt"
    held = torch.load(last, weights_only=True)
    assert held["global_step"] == 2
    assert held["state_dict"]["gpt.blocks.0.attention.sharpen"] == 1
    resumed = run(tmp_path / "resumed", [SharpenWhen("val_loss", above=0)], last)
    assert_same_weights(resumed, whole)


def test_a_checkpoint_counts_all_sequences_of_a_step(tmp_path):
    run = trainer(tmp_path, 2, accumulate_grad_batches=3)
    run.fit(NextTokenModel(**SMALL), data(batch_size=4))
    run.save_checkpoint(tmp_path / "a.ckpt")
    checkpoint = Checkpoint.load(tmp_path / "a.ckpt")
    assert (checkpoint.steps, checkpoint.batch_size) == (2, 12)


@pytest.mark.parametrize("name", ["muon", "adamw"])
def test_matrices_alone_decay(name):
    task = NextTokenModel(attention="lazy", **SMALL)
    options = {"lr": 0.1, "warmup_steps": 1, "total_steps": 2}
    optimizer, _ = optim.configure(task, name, weight_decay=0.1, **options)
    decay = {id(p): g["weight_decay"] for g in optimizer.param_groups for p in g["params"]}
    assert len(decay) == len(list(task.parameters()))
    for label, parameter in task.named_parameters():
        matrix = parameter.dim() > 1 and "learned" not in label
        assert decay[id(parameter)] == (0.1 if matrix else 0), label
    assert task.gpt.blocks[0].attention.learned["bias"].dim() == 2
    optimizer, _ = optim.configure(task, name, weight_decay=0.0, **options)
    assert len(optimizer.param_groups) == (2 if name == "muon" else 1)


def test_a_mixer_names_matrices_that_do_not_decay():
    task = NextTokenModel(attention="s4d", **SMALL)
    decaying, others = optim.groups(task, list(task.parameters()), 0.1)
    mixer = task.gpt.blocks[0].attention
    assert mixer.undecayed == ("rate", "frequency")
    assert {id(mixer.rate), id(mixer.frequency)} <= {id(p) for p in others["params"]}
    assert {id(mixer.read), id(mixer.project.weight)} <= {id(p) for p in decaying["params"]}


@pytest.mark.parametrize(
    "label",
    ["flash_gau.gains", "ttt_linear.head_norm.gain", "hedgehog.offsets", "zeros.mu",
     "rwkv6.bonus", "rwkv7.bonus", "hyena.taps.frequency", "multihead_hyena.taps.frequency",
     "hyena.taps.layers.0.weight", "dss.read"],
)  # fmt: skip
def test_a_vector_a_head_does_not_decay(label):
    mixer, _, name = label.partition(".")
    task = NextTokenModel(attention=mixer, **SMALL)
    _, others = optim.groups(task, list(task.parameters()), 0.1)
    parameter = task.gpt.blocks[0].attention.get_parameter(name)
    assert id(parameter) in {id(p) for p in others["params"]}


def test_a_gradient_scaler_may_skip_a_step_that_overflows(tmp_path):
    run, task = trainer(tmp_path, 1), NextTokenModel(**SMALL)
    task.gpt.blocks[0].attention.query.weight.grad = torch.full((16, 16), torch.inf)
    task.trainer = run
    with pytest.raises(NonFiniteLoss, match="gradient"):
        task.on_before_optimizer_step(None)
    run.precision_plugin.scaler = torch.amp.GradScaler("cpu")
    task.on_before_optimizer_step(None)


def test_a_schedule_needs_a_number_of_steps(tmp_path):
    with pytest.raises(ValueError, match="max_steps"):
        trainer(tmp_path, -1, max_epochs=1).fit(NextTokenModel(**SMALL), data())


def test_the_writer_makes_a_file_that_symreg_reads_and_never_overwrites(tmp_path):
    from symreg import predictions

    path = tmp_path / "p.npz"
    task, source = ForceModel(**SMALL), data(population="force")
    run = trainer(tmp_path, 1, [PredictionWriter(str(path))])
    run.fit(task, source)
    run.predict(task, source)
    table = predictions.read(path)
    assert len(table) == 20 * 4
    assert table.manifest["config"]["model"]["attention"] == "softmax"
    assert set(table.vectors) == {"position", "force_vector", "force_vector_predicted"}
    with pytest.raises(FileExistsError, match=r"p\.npz"):
        run.predict(task, source)
    data_bytes = bytearray(path.read_bytes())
    data_bytes[200] ^= 1
    path.write_bytes(data_bytes)
    with pytest.raises(artefact.CorruptArtefact, match=r"p\.npz"):
        predictions.read(path)


def test_a_head_of_another_target_is_another_checkpoint(tmp_path):
    log = ForceModel(**SMALL)
    raw = ForceModel(**{**SMALL, "protocol_args": {**ARGS, "target": "raw"}})
    held = {"hyper_parameters": dict(raw.hparams)}
    log.check_backbone("raw.ckpt", held)
    with pytest.raises(ValueError, match=r"raw\.ckpt: trained with protocol_args=.*raw"):
        log.check_backbone("raw.ckpt", held, with_head=True)


def test_force_heads_need_labelled_data(tmp_path):
    data = OrbitData(n_val=2, n_test=2, eval_batch_size=2)
    with pytest.raises(ValueError, match="ForceModel needs labelled sequences"):
        trainer(tmp_path, 1).test(ForceModel(**SMALL), datamodule=data)
