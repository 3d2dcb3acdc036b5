"""A tensor spline on the true state: cubic pieces inside the labelled box, constant outside."""

from __future__ import annotations

from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures, SplineTransformer

from attention.scalars import check_size
from worldmodel.controls.force_regression import ForceRegression
from worldmodel.controls.true_state import at_star, distance_and_masses

DEGREE = 3
STRENGTH = 1e-3
"""Penalty of the ridge regression."""


def tensor_spline(n_knots: int = 4) -> ForceRegression:
    """Return the spline of ln F in r, m1 and m2; the force points at the star.

    Args:
        n_knots: Knots of each variable, at quantiles of the labelled rows.

    Raises:
        ValueError: ``n_knots`` is below 2.
    """
    check_size("n_knots", n_knots, 2)
    spline = make_pipeline(
        SplineTransformer(n_knots, DEGREE, knots="quantile", extrapolation="constant"),
        PolynomialFeatures(3, interaction_only=True, include_bias=False),
        Ridge(STRENGTH),
    )
    n_parameters = (n_knots + DEGREE) ** 3  # products of n_knots + degree - 1 splines, or none
    return ForceRegression(distance_and_masses, spline, direction=at_star, least_rows=n_parameters)
