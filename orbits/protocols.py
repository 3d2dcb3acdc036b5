"""Protocols: the sampling, observation and labelling of orbits.

Every protocol has two populations. ``pretrain`` is what a world model learns to predict;
``force`` are two-body systems whose planet rows carry forces and states. A batch is a pure
function of (protocol, population, split, seed, indices).

=============  =============================================================================
paper          Vafa et al. (2025) as published, token for token, defects kept.
fixed          The same distributions without the defects: independent draws of every planet,
               no aliased orbit, states with the right velocity and position, one scale for
               both components of a force.
identifiable   Binaries whose two masses can be read from what is observed.
free_step      The same binaries with a time step that is drawn apart from the period.
neutral_step   The same binaries with a time step that does not tell the law.
without_corner The same binaries without those in a corner of the box: eccentric and heavy.
without_wide   The same binaries without those of the widest orbits, a range that is held out.
nbody          Hill-stable systems whose planets pull on each other; no labels.
drag, changing_g, hidden_body, kinds
               The binaries of ``identifiable``, moved by more than their attraction
               (:mod:`orbits.disturbed`); no labels.
triples        A binary and a third body that circles it, all observed; no labels.
species        Such triples of two kinds of bodies, which fall unlike.
=============  =============================================================================

A protocol of binaries can be shifted (:mod:`orbits.shifts`): what is asked of a model then lies
outside of what it was trained on.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from orbits import shifts
from orbits.disturbed import Disturbance
from orbits.observation import DT_ROW, STAR
from orbits.protocol import Protocol
from orbits.runs.choices import check_choice
from orbits.systems import POPULATIONS, SPLITS

__all__ = ["DT_ROW", "POPULATIONS", "SPLITS", "STAR", "Protocol", "get", "names"]

_EXOPLANETS = Protocol(
    name="fixed",
    sampler="exoplanets",
    max_planets=10,
    n_points=999,
    low=-50.0,
    high=50.0,
    n_bins=7000,
    dts=(7 * 0.0027, 180 * 0.0027),  # a week, half a year
)

_BINARIES = Protocol(
    name="identifiable",
    sampler="identifiable",
    max_planets=1,
    n_points=48,
    low=-4.0,
    high=4.0,
    n_bins=512,
    dts=tuple(2.0**k for k in range(-7, 0)),
)
_KINDS = 1.0, 0.5, 0.5, 2.0
"""Pulls between bodies of two kinds: two of the first, one of each either way round, two of the
second."""
_QUARTER_OCTAVES = 1.0, 1.189207115002721, 1.4142135623730951, 1.681792830507429

_CATALOGUE = {
    protocol.name: protocol
    for protocol in (
        _BINARIES,
        dataclasses.replace(
            _BINARIES,
            name="free_step",
            sampler="free_step",
            # A product with a power of two is exact: twice a time step is a time step.
            dts=tuple(m * 2.0**k for k in range(-9, 0) for m in _QUARTER_OCTAVES)[2:-2],
        ),
        dataclasses.replace(_BINARIES, name="neutral_step", sampler="neutral_step"),
        dataclasses.replace(
            _EXOPLANETS, name="paper", sampler="published", target="raw", as_published=True
        ),
        _EXOPLANETS,
        Protocol(
            name="nbody",
            sampler="hill_stable",
            max_planets=5,
            n_points=999,
            low=-40.0,
            high=40.0,
            n_bins=7000,
            dts=tuple(2.0**k for k in range(-7, -2)),
            interacting=True,
        ),
        *(
            dataclasses.replace(_BINARIES, name=name, sampler="disturbed", disturbance=disturbance)
            for name, disturbance in {
                "drag": Disturbance(drag_rate=0.1),
                "changing_g": Disturbance(g_rate=-0.04),
                "hidden_body": Disturbance(hidden_body=True),
                "kinds": Disturbance(couplings=_KINDS),
            }.items()
        ),
        *(
            dataclasses.replace(
                _BINARIES,
                name=name,
                sampler="disturbed",
                max_planets=2,
                n_points=72,  # as many time steps as two bodies have in 48
                disturbance=Disturbance(triple=True, couplings=couplings),
            )
            for name, couplings in {"triples": (1.0,), "species": _KINDS}.items()
        ),
        dataclasses.replace(_BINARIES, name="without_corner", sampler="without_corner"),
        dataclasses.replace(_BINARIES, name="without_wide", sampler="without_wide"),
    )
}
OVERRIDES = ("n_points", "n_bins", "target", "law", "label_leak", "shift")


def names() -> tuple[str, ...]:
    """Return the names of all protocols."""
    return tuple(_CATALOGUE)


def get(name: str, overrides: Mapping[str, Any] | None = None) -> Protocol:
    """Return a protocol, with some of :data:`OVERRIDES` changed.

    ``shift`` is the name of a shift of the exam or the plain settings of any.

    Raises:
        ValueError: The name or an override is unknown; the message lists the choices. Or the
            protocol cannot be shifted in this way.
    """
    check_choice("protocol", name, names())
    for field in overrides or {}:
        check_choice("protocol key", field, OVERRIDES)
    changed = dict(overrides or {})
    if "shift" in changed:
        changed["shift"] = shifts.of(changed["shift"])
    return dataclasses.replace(_CATALOGUE[name], **changed)
