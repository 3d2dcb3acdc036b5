"""The learner of images: pictures of a task, and a DeiT-style encoder."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sklearn.datasets import load_digits
from torch import Tensor, nn
from torch.nn import functional

from attention.scalars import check_size
from benchmarks.images import augment, folder, pictures
from benchmarks.images.tasks import FOLDER, get
from benchmarks.learners import Learner, loader
from worldmodel.data.sequences import SequenceData, Sequences
from worldmodel.models import optim
from worldmodel.models.backbone import GPT, Block
from worldmodel.models.trained import TrainedModel

DIGITS = (1077, 360, 360)
"""Training, validation and test images of the digits."""


class Pictures(Sequences):
    """Images of a part of a task, made or read on access."""

    def __init__(
        self,
        task: str,
        split: str,
        seed: int,
        length: int,
        files: folder.ImageFolder | None,
        augmented: bool = False,
    ) -> None:
        self.task, self.split, self.seed, self.files = task, split, seed, files
        self.augmented = augmented and split == "train"
        if files is not None:
            # The published test images are ImageNet's validation part: nothing else chooses.
            whole = files.files["train" if split == "train" else "val"]
            # They are listed class by class: the first ones would be of the first classes.
            order = np.random.default_rng(0).permutation(len(whole))[:length]
            self.images = [whole[k] for k in order]
            length = len(self.images)
        elif task == "digits":
            data, target = load_digits(return_X_y=True)
            order = np.random.default_rng(0).permutation(len(data))
            ends = np.cumsum((0, *DIGITS))
            place = ("train", "val", "test").index(split)
            mine = order[ends[place] : ends[place + 1]][:length]
            self.digits = data[mine].reshape(-1, 8, 8) / 8 - 1
            self.target, length = target[mine], len(mine)
        super().__init__(length)

    def __getitems__(self, indices: list[int]) -> dict[str, Tensor]:
        """Return ``images`` [B, C, S, S] and ``labels`` [B]."""
        if self.files is not None:
            size = get(self.task).size
            read = [self._read(self.images[i][0], size) for i in indices]
            known = torch.tensor([self.images[i][1] for i in indices])
            return {"images": torch.from_numpy(np.stack(read)), "labels": known}
        if self.task == "digits":
            images, classes = self.digits[indices], self.target[indices]
        else:
            images, classes = pictures.examples(self.task, self.split, self.seed, indices)
            images = images / pictures.NOISE
        labels = torch.from_numpy(np.asarray(classes, np.int64))
        return {"images": torch.from_numpy(images[:, None]).float(), "labels": labels}

    def _read(self, file: Path, size: int) -> folder.Array:
        draw = self._draw()
        if draw is None or not self.augmented:
            return folder.pixels(file, size, draw)
        change = functools.partial(augment.rand_augment, draw=draw)
        return augment.erased(folder.pixels(file, size, draw, change), draw)

    def _draw(self) -> np.random.Generator | None:
        """Return the random generator of crops, seeded by torch's as all of training is."""
        return (
            np.random.default_rng(int(torch.randint(2**62, ()))) if self.split == "train" else None
        )


class ImageData(SequenceData):
    """Images of a task.

    Args:
        task: A name of :data:`benchmarks.images.tasks.TASKS`.
        folder_of: The folder of images; None for a task that needs none.
        n_train: Most training images.
        augmented: Whether training images of a folder have RandAugment and random erasing.
        repeats: Times that an image is in a batch, each time changed in another way (repeated
            augmentation: Hoffer et al. 2020); an epoch has that many fewer images.
        **kwargs: As for :class:`worldmodel.data.sequences.SequenceData`.
    """

    def __init__(
        self,
        task: str,
        folder_of: str | None = None,
        n_train: int = 4000,
        augmented: bool = False,
        repeats: int = 1,
        **kwargs: Any,
    ) -> None:
        super().__init__(**kwargs)
        check_size("repeats", repeats)
        self.task, self.augmented, self.repeats = task, augmented, repeats
        self.files = folder.read(folder_of) if get(task).name == FOLDER else None
        self.n_train = len(self._pictures("train", n_train))

    def sequences(self, split: str, length: int) -> Pictures:
        """Return the first ``length`` images of a part, or all where there are fewer."""
        return self._pictures(split, length)

    def _pictures(self, split: str, length: int) -> Pictures:
        seed = self.train_seed if split == "train" else self.hparams["seed"]
        return Pictures(self.task, split, seed, length, self.files, self.augmented)


class ImageModel(TrainedModel):
    """A DeiT-style encoder: patches, learned places, a class token (Touvron et al. 2021).

    Args:
        size: Pixels of a side.
        patch: Pixels of a patch's side.
        channels: 1 or 3.
        n_classes: Classes.
        attention: An attention that can read ahead; every position sees all others.
        attention_args: Arguments of the attention.
        n_layer: Blocks.
        n_head: Heads per block.
        head_dim: Channels per head.
        smoothing: Share of a target that all classes have.
        mixed: Whether images of a batch are mixed in pairs: half of the batches by cutmix, the
            others by mixup with weights of Beta(0.8, 0.8).
        drop_path: How often the last block's parts are left out of an image's training; those of
            earlier blocks less, in proportion to their place (Huang et al. 2016).
        optimizer: Optimiser, see :class:`worldmodel.models.base.GPTModel`.
        lr: Learning rate, see there.
        weight_decay: Weight decay, see there.
        warmup_steps: Steps of warm-up, see there.
        min_lr_ratio: Final share of the learning rate, see there.
    """

    def __init__(
        self,
        size: int,
        patch: int,
        channels: int,
        n_classes: int,
        attention: str = "softmax",
        attention_args: dict[str, Any] | None = None,
        n_layer: int = 2,
        n_head: int = 2,
        head_dim: int = 32,
        smoothing: float = 0.0,
        mixed: bool = False,
        drop_path: float = 0.0,
        optimizer: str = "adamw",
        lr: float = 1e-3,
        weight_decay: float = 0.05,
        warmup_steps: int = 50,
        min_lr_ratio: float = 0.0,
    ) -> None:
        super().__init__()
        self.save_hyperparameters()
        optim.check(optimizer)
        for label, value in (("patch", patch), ("n_classes", n_classes)):
            check_size(label, value)
        if size % patch:
            raise ValueError(f"size {size} is no multiple of patch {patch}")
        self.gpt = GPT(attention, attention_args, n_layer, n_head, head_dim, causal=False)
        for place, block in enumerate(self.gpt.blocks):
            share = drop_path * place / (n_layer - 1) if n_layer > 1 else drop_path
            assert isinstance(block, Block)
            for part in filter(None, (block.attention, block.mlp)):
                part.register_forward_hook(functools.partial(_dropped, share))
        width = self.gpt.width
        self.embed = nn.Conv2d(channels, width, patch, patch)
        self.token = nn.Parameter(0.02 * torch.randn(1, 1, width))
        self.places = nn.Parameter(0.02 * torch.randn(1, 1 + (size // patch) ** 2, width))
        self.head = nn.Linear(width, n_classes)

    def forward(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the logits [B, n_classes] of ``images`` [B, C, S, S]."""
        x = self.embed(batch["images"]).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], dim=1) + self.places
        logits: Tensor = self.head(self.gpt(x)[:, 0])
        return logits

    def training_step(self, batch: dict[str, Tensor], batch_idx: int) -> Tensor:
        """Return the loss, of mixed images where the recipe has them, and log it."""
        if not self.hparams["mixed"]:
            return super().training_step(batch, batch_idx)
        images, other, share = mixed(batch["images"])
        logits = self({"images": images})
        losses = [self._cross_entropy(logits, x) for x in (batch["labels"], batch["labels"][other])]
        loss = self.finite(share * losses[0] + (1 - share) * losses[1])
        self.log("train_loss", loss, prog_bar=True)
        return loss

    def validation_step(self, batch: dict[str, Tensor], batch_idx: int) -> None:
        """Log ``val_loss`` and ``val_accuracy``."""
        logits, labels = self(batch), batch["labels"]
        loss = functional.cross_entropy(logits, labels)
        self.log_mean("val_loss", loss, len(labels), prog_bar=True)
        right = (logits.argmax(dim=-1) == labels).float().mean()
        self.log_mean("val_accuracy", right, len(labels), prog_bar=True)

    def _loss(self, batch: dict[str, Tensor]) -> Tensor:
        """Return the cross-entropy with smoothed targets, in nats."""
        return self._cross_entropy(self(batch), batch["labels"])

    def _cross_entropy(self, logits: Tensor, labels: Tensor) -> Tensor:
        smoothing = self.hparams["smoothing"]
        return functional.cross_entropy(logits, labels, label_smoothing=smoothing)


def _dropped(share: float, part: nn.Module, _: object, added: Tensor) -> Tensor | None:
    """Leave what a part adds out of some sequences [B, T, width], so that the mean is kept."""
    if not part.training or not share:
        return None
    kept = torch.rand(len(added), 1, 1, device=added.device) >= share
    return added * kept / (1 - share)


def mixed(images: Tensor) -> tuple[Tensor, Tensor, float]:
    """Return images mixed with others of the batch, which others, and the share of their own.

    Zhang et al. (2018) with weights of Beta(0.8, 0.8), or Yun et al. (2019), each half the time.
    """
    other = torch.randperm(len(images), device=images.device)
    if torch.rand(()) < 0.5:
        share = float(torch.distributions.Beta(0.8, 0.8).sample())
        return share * images + (1 - share) * images[other], other, share
    size = images.shape[-1]
    cut = int(size * (1 - float(torch.rand(()))) ** 0.5)
    top, left = torch.randint(0, size - cut + 1, (2,)).tolist()
    box = (..., slice(top, top + cut), slice(left, left + cut))
    pasted = images.clone()
    pasted[box] = images[other][box]
    return pasted, other, 1 - (cut / size) ** 2


def image_model(data: Mapping[str, Any], **model: Any) -> ImageModel:
    """Return a model of the task's images."""
    task = get(data["task"])
    return ImageModel(task.size, task.patch, task.channels, **model)


LEARNER = Learner(image_model, ImageData, loader(ImageModel))
