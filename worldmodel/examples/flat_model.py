"""A world model in a file: a flat network that reads the last eight places and no sequence.

    python -m worldmodel probe --model worldmodel/examples/flat_model.py:FlatModel --preset tiny
    python -m benchmarks run exam --model worldmodel/examples/flat_model.py:FlatModel --preset tiny

It learns when it is made, in a second: random features of the last rows, and a ridge regression of
the next place and of the force on them.
"""

import numpy as np

from orbits import protocols
from worldmodel.world_model import seen

ROWS, WIDTH = 8, 200


class FlatModel:
    """The model."""

    name = "flat network"
    labels = 300  # labelled sequences that `force` learnt from

    def __init__(self):
        world = protocols.get("identifiable")
        self.mixing = np.random.default_rng(0).normal(size=(2 * ROWS + 1, WIDTH)) / 4
        motion = world.batch(0, "train", range(500))
        places = motion["coordinates"]
        self.step = self._fit(motion, world, places[:, 2:] - places[:, :-2], slice(1, -1))
        labelled = world.batch(0, "train", range(self.labels), "force")
        force = labelled["force"]  # the planet's, in its own rows alone
        size = np.log(np.linalg.norm(force, axis=-1, keepdims=True))
        both = np.concatenate([size, force / np.exp(size)], axis=-1)[:, 9::2]
        self.pull = self._fit(labelled, world, both, slice(9, None, 2))

    def observe(self, seen):
        """Return the last places of each row, mixed, with the time step; and the places."""
        padded = np.pad(seen.places, ((0, 0), (ROWS - 1, 0), (0, 0)))
        last = [padded[:, k : k + seen.places.shape[1]] for k in range(ROWS)]
        dt = np.broadcast_to(np.log(seen.dt)[:, None, None], (*seen.places.shape[:2], 1))
        mixed = np.tanh(np.concatenate([*last, dt], axis=-1) @ self.mixing)
        return np.concatenate([*last, dt, mixed, np.ones_like(dt)], axis=-1), seen.places

    def predict_next(self, memory):
        """Return the place that the next row's body had, and the step that it makes."""
        features, places = memory
        before = np.concatenate([places[:, :1], places[:, :-1]], axis=1)
        return before + features @ self.step

    def force(self, memory):
        """Return the force on the planet in each row."""
        size, *direction = np.moveaxis(memory[0] @ self.pull, -1, 0)
        vector = np.stack(direction, axis=-1)
        return np.exp(size)[..., None] * vector / np.linalg.norm(vector, axis=-1, keepdims=True)

    def hidden(self, memory):
        """Return the features that read-outs see."""
        return {"features": memory[0]}

    def _fit(self, batch, world, targets, rows):
        features = np.concatenate(self.observe(seen(batch, world.tokens))[0][:, rows])
        gram = features.T @ features + 1e-3 * np.eye(features.shape[1])
        return np.linalg.solve(gram, features.T @ np.concatenate(targets))
