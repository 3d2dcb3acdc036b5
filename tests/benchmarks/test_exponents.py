"""The primary measurement is one number, whichever package reports it."""

import numpy as np
import pytest

from symreg.exponents import fit_exponents
from worldmodel.probes.force.measures import measured


@pytest.mark.parametrize("lost", ["nothing", "points", "a sequence"])
def test_the_leaderboard_and_the_force_probe_give_the_same_exponents(lost):
    rng = np.random.default_rng(0)
    sequence = np.repeat(np.arange(25) * 3, 8)
    m1, m2 = np.exp(rng.normal(0, 1, (2, 25))).repeat(8, axis=1)
    r = np.exp(rng.normal(0, 0.5, len(sequence)))
    predicted = (30 * m1**0.7 * m2**0.4 * r**-1.8 * np.exp(rng.normal(0, 0.3, len(r)))).astype("f4")
    predicted[{"nothing": [], "points": [0, 5, 77], "a sequence": sequence == 6}[lost]] *= -1
    vectors = rng.normal(0, 1, (len(sequence), 2))
    columns = {
        "sequence_id": sequence,
        "m1": m1,
        "m2": m2,
        "r": r,
        "force": m1 * m2 / r**2,
        "force_predicted": predicted,
        "force_vector": vectors,
        "force_vector_predicted": vectors,
    }
    fitted = fit_exponents(np.column_stack([r, m1, m2]), predicted, sequence).exponents
    probed = measured([columns])
    assert {name: probed[f"exponent_{name}"] for name in ("r", "m1", "m2")} == fitted
