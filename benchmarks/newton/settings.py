"""The flagship's settings, which are its flags; imports nothing heavy."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from benchmarks.training_options import Training


@dataclass(frozen=True)
class NewtonSettings:
    """World, rows and sizes of one run.

    Attributes:
        protocol: Name of the data protocol.
        law: Force law of the world.
        elsewhere: Other laws. Backbones pre-trained in their worlds are fine-tuned in this one, and
            their own force heads are tested here without a label.
        attention: Attention variants, linear mixers or ablations.
        exponents: The p of every re-weighted variant, one row each; none for the catalogue's.
        sharpen_after: For each re-weighted variant, a further row whose pre-training starts
            without re-weighting up to this step; 0 for none.
        labels: Label budgets: numbers of labelled sequences, or ``unlimited``.
        baselines: Law-free baselines, names of :data:`worldmodel.controls.baselines.BASELINES` or
            ``all``, fitted to each label budget.
        baseline_seeds: Seeds of models to whose labels baselines are fitted, so that their rows
            have an interval too; formulas are searched for the first alone.
        label_leak: Labels of every test sequence among those that rows learn from, 2 as
            published; these sequences are scored as always, and every row says so.
        images: Train force heads on random images of the labelled sequences
            (:mod:`worldmodel.data.symmetry`).
        scratch: Train every row from scratch too, in as many steps as both phases take.
        seeds: Model seeds.
        engine: Symbolic-regression engines, or ``auto``.
        law_labels: Label budgets whose predictions are searched for formulas; none for all, and
            for read-outs. Controls and models that need no label always are.
        law_seeds: Symbolic searches per row and engine, each with its own points and seed.
        shifts: Shifts of the exam outside the training box (:mod:`orbits.shifts`): names, or
            ``all`` that the protocol can make; none for no exam.
        shift_file: A YAML file of further shifts.
        continued: Held-out orbits that each world model continues by itself, for the power of the
            distance that it obeys; 0 for none. Protocols of several planets have none.
        n_layer: Blocks of the backbone.
        n_head: Heads per block.
        head_dim: Channels per head.
        batch_size: Sequences per step and device.
        pretrain_steps: Steps of next-token prediction.
        finetune_steps: Steps on labelled sequences.
        n_test: Held-out test sequences.
        n_pretrain: Different sequences of pre-training; none for new ones at every step.
        input: Embedding of rows, see :class:`worldmodel.models.embedding.OrbitEmbedding`.
        optimizer: ``muon`` or ``adamw``.
        weight_decay: Decoupled weight decay.
        lr: Learning rate of pre-training and of the scratch arm.
        finetune_lr: Learning rate of fine-tuning.
        protocol_args: Overrides of each protocol.
        device_batches: Make pre-training sequences on the device, in this precision, where the
            protocol allows it.
        num_workers: Processes that make the other batches of each device; 0 for the training's own.
        training: Device, precision and other options of training.
        tflops: Throughput for an estimate of the time by ``--dry-run``, in 10^12 FLOPs a second.
    """

    protocol: str = "identifiable"
    law: str = "newton"
    elsewhere: tuple[str, ...] = ()
    attention: tuple[str, ...] = ("softmax", "lssar")
    exponents: tuple[float, ...] = ()
    sharpen_after: int = 0
    labels: tuple[int | str, ...] = (300, "unlimited")
    baselines: tuple[str, ...] = (
        "log-linear filter",
        "flat MLP",
        "2-NN on the true state",
        "trees on the true state",
    )
    baseline_seeds: tuple[int, ...] = (0,)
    label_leak: int = 0
    images: bool = False
    scratch: bool = True
    seeds: tuple[int, ...] = (0,)
    engine: tuple[str, ...] = ("operon", "operon_vafa")
    law_labels: tuple[int | str, ...] | None = None
    law_seeds: int = 3
    shifts: tuple[str, ...] = ("all",)
    shift_file: str | None = None
    continued: int = 300
    n_layer: int = 2
    n_head: int = 2
    head_dim: int = 32
    batch_size: int = 64
    pretrain_steps: int = 1100
    finetune_steps: int = 1700
    n_test: int = 1000
    n_pretrain: int | None = None
    input: str = "bin_centres"
    optimizer: str = "muon"
    weight_decay: float = 0.0
    lr: float = 6e-3
    finetune_lr: float = 3e-3
    protocol_args: dict[str, dict[str, Any]] = field(default_factory=dict)
    device_batches: str | None = None
    num_workers: int = 0
    training: Training = field(default_factory=Training)
    tflops: float | None = None
