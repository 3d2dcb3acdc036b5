"""Every metric of the kept probe runs has a declared meaning."""

from pathlib import Path

import pytest

from orbits.runs import folder
from worldmodel.probes.probe import STUDY
from worldmodel.probes.quantities import UNDECLARED

KEPT = Path(__file__).parents[3] / "benchmarks" / "results"


@pytest.mark.full
def test_kept_probes_measure_what_is_declared():
    places = sorted(KEPT.glob("probe-*"))
    assert places
    names = {x for place in places for result in folder.load(place)[0] for x in result.metrics}
    assert {name for name in names if STUDY.quantity(name) == UNDECLARED} == set()


def test_the_metric_of_a_probe_from_elsewhere_is_no_error():
    assert STUDY.quantity("surprise") == UNDECLARED
