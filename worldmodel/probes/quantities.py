"""The metrics of the probes, each with its direction and unit."""

from __future__ import annotations

import math
from collections.abc import Mapping

from orbits.runs.result import Quantity

UP_TO_ONE = (-math.inf, 1.0)
BODIES = {"planet": 0, "star": 1}
"""Rows of the read-outs, by how far they lie behind the planet's."""
READ_OUTS = {
    "position": "position",
    "velocity": "velocity",
    "log_m1": "log planet mass",
    "log_m2": "log star mass",
    "energy": "specific energy",
    "angular_momentum": "specific angular momentum",
    "eccentricity": "eccentricity",
    "log_force": "log force",
    "force_vector": "force vector",
    "semi_major": "semi-major axis",
    "semi_minor": "semi-minor axis",
    "eccentricity_vector": "eccentricity (Laplace-Runge-Lenz) vector",
}
"""Targets of the linear probe, in words."""
QUANTITIES: Mapping[str, Quantity] = {
    # Predicted motion.
    "nll": Quantity("lower", "nats", "of a next point's two bins, second half of a sequence"),
    "nll_all_rows": Quantity("lower", "nats", "the same over the whole sequence"),
    "planet_error": Quantity("lower", "AU", "distance of the predicted planet from the true one"),
    "star_error": Quantity("lower", "AU", "the same of the star"),
    "planet_error_mode": Quantity("lower", "AU", "distance of the likeliest bin of the planet"),
    "star_error_mode": Quantity("lower", "AU", "the same of the star"),
    "energy_error": Quantity(
        "lower", "share", "deviation of the energy in a rollout, at most 1", UP_TO_ONE
    ),
    "energy_drift": Quantity("lower", "share per step", "slope of that deviation, median"),
    "angular_momentum_error": Quantity(
        "lower", "share", "deviation of the angular momentum in a rollout, at most 1", UP_TO_ONE
    ),
    "angular_momentum_drift": Quantity("lower", "share per step", "slope of that, median"),
    # Interventions.
    "agreement": Quantity(
        "higher", "", "1 - SSE / SST of a predicted change, about zero", UP_TO_ONE
    ),
    "slope": Quantity(
        "none",
        "",
        "slope of a predicted change or coefficient; 1 is perfect",
    ),
    "agreement_own": Quantity("none", "", "1 - SSE / SST about the model's own change", UP_TO_ONE),
    "slope_own": Quantity("none", "", "slope against the model's own change"),
    "slope_place": Quantity("none", "", "slope against what places account for of a change"),
    "slope_mass": Quantity("none", "", "slope against the rest, for which a mass has to be known"),
    "share_path": Quantity(
        "none", "", "share of the world's change of a path that is followed, under another law"
    ),
    "agreement_path": Quantity("higher", "", "1 - SSE / SST of that change, about zero", UP_TO_ONE),
    "share_exponent": Quantity(
        "none", "", "the same share of the exponent that the path obeys, along each orbit alone"
    ),
    "share_law": Quantity(
        "none", "", "by how much that share exceeds that of a change of strength without a law's"
    ),
    "tokens_changed": Quantity("none", "share", "sequences whose tokens the intervention changes"),
    # Forces.
    "r2": Quantity("higher", "", "R2 of predictions", UP_TO_ONE),
    "r2_log": Quantity("higher", "", "R2 of the logarithm of the force", UP_TO_ONE),
    "r2_log_over_seeds": Quantity(
        "higher", "", "the same, with the interval over trainings", UP_TO_ONE
    ),
    "relative_error": Quantity("lower", "share", "median of abs(predicted / true - 1)"),
    "cosine": Quantity(
        "higher", "", "mean cosine between predicted and true force vectors", (-1, 1)
    ),
    "angle_deg": Quantity(
        "lower", "degrees", "mean angle between predicted and true vectors", (0, 180)
    ),
    "exponent_r": Quantity("none", "", "exponent of the distance"),
    "exponent_m1": Quantity("none", "", "exponent of the first mass"),
    "exponent_m2": Quantity("none", "", "exponent of the second mass"),
    "unusable": Quantity("lower", "share", "predictions that are not positive: no logarithm"),
    "points": Quantity("none", "points", "number of predictions"),
    # Read-outs.
    **{
        f"r2_{name}": Quantity("higher", "", f"R2 of {of}", UP_TO_ONE)
        for name, of in READ_OUTS.items()
    },
    # Implied laws.
    "exponent_within": Quantity("none", "", "exponent of the distance, along each orbit alone"),
    "exponent_family_free": Quantity("none", "", "the same without a family of laws, by bins"),
    "exponent_least_squares": Quantity("none", "", "the same by least squares"),
    "exponent_expected": Quantity("none", "", "the same of expected places, not medians"),
    "exponent_expected_least_squares": Quantity(
        "none", "", "the same of expected places by least squares without weights"
    ),
    "tail_error": Quantity("lower", "AU", "error that one of a thousand places exceeds, medians"),
    "tail_error_expected": Quantity("lower", "AU", "the same of expected places"),
    "exponent_overall": Quantity("none", "", "exponent of the distance over all orbits together"),
    "first_error": Quantity("lower", "AU", "error of a rollout one step after the prompt"),
    "last_error": Quantity("lower", "AU", "error of a rollout at its end"),
    **{
        f"{body}_{name}": Quantity("none", "", f"exponent of {of} in the {body}'s acceleration")
        for body in ("planet", "star")
        for name, of in (("m1", "the planet's mass"), ("m2", "the star's mass"), ("r", "distance"))
    },
    **{
        f"{body}_constant": Quantity("none", "", f"{body}'s acceleration at 1 AU, masses of 1")
        for body in ("planet", "star")
    },
    "action_reaction": Quantity("none", "", "the planet's constant over the star's"),
    "drag_rate": Quantity("none", "1/year", "loss of angular momentum along a path, median"),
    "g_rate": Quantity("none", "1/year", "change of the pull's constant along a path, median"),
    "off_centre": Quantity("none", "share", "accelerations that fit no centre of mass, median"),
    "strength": Quantity("none", "", "abs(ln) of a pull over Newton's between the masses, median"),
    "unlike_fall": Quantity("none", "", "difference of two bodies' fall towards a third, median"),
    "fall_met": Quantity(
        "higher", "share", "systems whose unlike fall is within half of the world's"
    ),
    "pull_met": Quantity("higher", "share", "pairs that pull by their own factor"),
    "missed": Quantity("lower", "share", "rms error of the kicks of a step over their rms"),
    # Inductive bias.
    "r_ib": Quantity(
        "higher", "", "same outputs for the same state: 1 - 2 loss, 0 is chance", UP_TO_ONE
    ),
    "d_ib": Quantity("higher", "", "different outputs for different states: 2 loss", UP_TO_ONE),
    "r_ib_standard_error": Quantity("none", "", "of r_ib, over datasets"),
    "d_ib_standard_error": Quantity("none", "", "of d_ib, over datasets"),
    "mae_linear": Quantity("lower", "", "calibration error against the linear oracle"),
    "mae_mlp": Quantity("lower", "", "calibration error against the MLP oracle"),
}
UNDECLARED = Quantity("none", "", "a metric of a further probe")
