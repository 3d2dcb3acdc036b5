"""Example: from the predictions of your own model to a formula of them, and its score.

    python -m symreg.examples.own_model               writes runs/own_model.npz, scores it: seconds
    python -m symreg leaderboard runs/own_model.npz   the same file as a row beside its controls

The model is a mean over the 5 nearest of 2000 known forces. Put your own in its place: what counts
is the file, which numpy alone can write. PREDICTIONS.md describes it.
"""

from pathlib import Path

import numpy as np
from sklearn.neighbors import KNeighborsRegressor

import symreg
from symreg import predictions

# Your data and your model: distance (AU), masses (solar masses) and the force between them.
points = np.exp(np.random.default_rng(0).uniform(np.log(0.1), np.log(3), (5000, 3)))
force = 39.4784176044 * points[:, 1] * points[:, 2] / points[:, 0] ** 2
model = KNeighborsRegressor(n_neighbors=5)
model.fit(np.log(points[:2000]), np.log(force[:2000]))

# Its answers where it was not trained, as a prediction file. Each point is a sequence of its own.
r, m1, m2 = points[2000:].T
answers = np.exp(model.predict(np.log(points[2000:])))
columns = {"sequence_id": np.arange(3000), "r": r, "m1": m1, "m2": m2, "force_predicted": answers}
file = Path("runs", "own_model.npz")
file.parent.mkdir(exist_ok=True)
np.savez(file, **columns, units="AU, solar mass, year", model="5-NN of 2000 forces")

# A formula, searched on some of the points and judged on points of other sequences.
search, held_out = predictions.read(file, law="newton").split(seed=0, n=300)
formula = symreg.fit(search.X, search.force_predicted, engine="operon", seed=0).best().expression
verdict = symreg.score(formula, "newton", X=held_out.X, y=held_out.force_predicted)
print(f"written      {file}")
print(f"formula      {formula}")
print(f"in the box   {verdict.verdict}: R2 of ln formula against ln answers {verdict.r2_log:.4f}")
print("outside      not asked: near its 2000 points a table follows any law. Ask it outside them,")
print("             as `python -m benchmarks run exam` does with a model of orbits")
print(f"next: python -m symreg leaderboard {file}")
