"""The GPTs of this package, seen as world models (:mod:`worldmodel.world_model`)."""

from __future__ import annotations

from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from orbits.arithmetic import Array
from worldmodel.models.next_point import NextPointHead
from worldmodel.models.orbit import ForceModel, NextTokenModel, OrbitModel
from worldmodel.models.rollout import rollout_with_places
from worldmodel.world_model import Forces, Prediction, Seen


class Memory:
    """The outputs of a GPT for given sequences, computed when an answer needs them.

    Args:
        model: The model, in evaluation mode.
        seen: What it sees.
    """

    def __init__(self, model: OrbitModel, seen: Seen) -> None:
        self.model, self.seen = model, seen

    @cached_property
    def batch(self) -> dict[str, Tensor]:
        """The inputs on the model's device."""
        places = self.seen.places.astype(np.float32)
        return {
            "tokens": torch.from_numpy(self.seen.tokens).to(self.model.device),
            "coordinates": torch.from_numpy(places).to(self.model.device),
        }

    @cached_property
    def hidden(self) -> Tensor:
        """The final hidden states, [B, T, width]."""
        with torch.no_grad():
            return self.model.hidden(self.batch)


class GPTPrediction(Prediction):
    """The distribution of a head of next points."""

    def __init__(self, head: NextPointHead, output: Tensor) -> None:
        self.head, self.output = head, output

    def expected(self) -> npt.NDArray:
        """Return the mean place, [B, T, 2] in AU."""
        return self.head.expected(self.output).cpu().numpy()

    def median(self) -> npt.NDArray:
        """Return the median of each coordinate, [B, T, 2] in AU."""
        return self.quantile(0.5)

    def quantile(self, share: float) -> npt.NDArray:
        """Return the place of each coordinate below which a share lies, [B, T, 2] in AU."""
        return self.head.quantile(self.output, share).cpu().numpy()

    def likeliest(self) -> npt.NDArray:
        """Return the places of the likeliest bins, or the medians of a density."""
        return self.head.likeliest(self.output).place.cpu().numpy()

    def drawn(self, generator: torch.Generator) -> npt.NDArray:
        """Return places drawn from the distribution, [B, T, 2] in AU."""
        return self.head.sample(self.output, generator).place.cpu().numpy()

    def nats(self, seen: Seen) -> npt.NDArray:
        """Return nats of the bins of rows 1 to T - 1, [B, T - 1, 2]."""
        tokens = torch.from_numpy(seen.tokens[:, 1:]).to(self.output.device)
        places = torch.from_numpy(seen.places[:, 1:].astype(np.float32)).to(self.output.device)
        return self.head.nats(self.output[:, :-1], tokens, places).cpu().numpy()


class GPTWorld:
    """A GPT as a world model; methods that its class cannot serve are absent: :func:`gpt_world`.

    Args:
        model: The model, in evaluation mode.
    """

    exact = True
    """True: its embedding decides whether places or bins are read."""

    def __init__(self, model: OrbitModel) -> None:
        self.model, self.layout = model, model.layout

    def observe(self, seen: Seen) -> Memory:
        """Return the sequences; the model runs when an answer needs it."""
        return Memory(self.model, seen)

    @torch.no_grad()
    def hidden(self, memory: Memory) -> dict[str, npt.NDArray]:
        """Return the residual stream after the embedding and each block, and the final norm's."""
        stages = layers(self.model, memory.batch)
        names = layer_names(self.model)
        return {name: x.cpu().numpy() for name, x in zip(names, stages, strict=True)}


class NextTokenWorld(GPTWorld):
    """A model of next rows."""

    model: NextTokenModel

    @torch.no_grad()
    def predict_next(self, memory: Memory) -> GPTPrediction:
        """Return the distributions of next rows."""
        return GPTPrediction(self.model.head, self.model.head(memory.hidden))

    def rolled_out(
        self, seen: Seen, n_rows: int, generator: torch.Generator | None = None
    ) -> Array:
        """Return the prompt as the model reads it and its continuation, with a cache.

        Rows are the likeliest, or drawn where there is a generator.
        """
        batch = Memory(self.model, seen).batch
        _, places = rollout_with_places(self.model, batch, n_rows, generator)
        read = np.zeros(seen.places.shape)
        is_exact = self.model.head.exact and self.model.hparams["input"] == "coordinates"
        read[:, 1:] = seen.places[:, 1:] if is_exact else seen.layout.decode(seen.tokens[:, 1:])
        return np.concatenate([read, places.cpu().numpy()], axis=1)


class ForceWorld(GPTWorld):
    """A model of forces."""

    model: ForceModel

    @torch.no_grad()
    def force(self, memory: Memory) -> Forces:
        """Return magnitudes and vectors of the force at every row."""
        head, hidden = self.model.head, memory.hidden
        magnitude, vector = head.physical(head(hidden.flatten(0, 1)))
        shape = hidden.shape[:2]
        return Forces(
            magnitude.view(shape).cpu().numpy(),
            vector.view(*shape, 2).cpu().numpy(),
            signed=head.target == "raw",
        )


def world_model(model: Any) -> Any:
    """Return a GPT as a world model with a ``layout``; a model from outside is one already."""
    if isinstance(model, NextTokenModel):
        return NextTokenWorld(model)
    if isinstance(model, ForceModel):
        return ForceWorld(model)
    if isinstance(model, OrbitModel):
        return GPTWorld(model)
    return model


@torch.no_grad()
def layers(model: OrbitModel, batch: dict[str, Tensor]) -> list[Tensor]:
    """Return the hidden states that :func:`layer_names` names, each [B, T, width].

    The residual stream after the embedding and after each block, and the final norm's output.
    """
    outputs: list[Tensor] = []
    stages: list[nn.Module] = [model.embedding, *model.gpt.blocks, model.gpt.norm]
    hooks = [
        stage.register_forward_hook(lambda _, inputs, output: outputs.append(output))
        for stage in stages
    ]
    try:
        model.eval().hidden(batch)
    finally:
        for hook in hooks:
            hook.remove()
    return outputs


def layer_names(model: OrbitModel) -> list[str]:
    """Return the names of the hidden states that :func:`layers` returns."""
    blocks = [f"block {number + 1}" for number in range(len(model.gpt.blocks))]
    return ["embedding", *blocks, "final norm"]
