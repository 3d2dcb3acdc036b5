"""Metrics: means know their error, and so do their exponentials."""

import math

import pytest

from orbits.runs.result import Case, Metric, Result
from tests.orbits.runs.tossing import STUDY


def test_a_mean_knows_its_error():
    found = Metric.mean([1.0, 2.0, 3.0, 6.0])
    assert (found.value, found.n) == (3.0, 4)
    assert found.stderr == pytest.approx((14 / 3 / 4) ** 0.5)
    assert Metric.mean([2.0]).stderr is None


def test_an_exponential_has_the_error_of_first_order():
    found = Metric(2.0, n=4, stderr=0.1).exp()
    assert (found.value, found.n) == (pytest.approx(math.exp(2)), 4)
    assert found.stderr == pytest.approx(0.1 * math.exp(2))
    assert Metric(2.0).exp().stderr is None


def test_a_metric_that_was_not_declared_is_refused():
    with pytest.raises(ValueError, match="unknown metric 'tails' of tossing; choose from heads"):
        STUDY.quantity("tails")


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"cpu_s": 10**400}, "cpu_s is too large"),
        ({"metrics": {"a": {"value": 10**400}}}, "metric 'a': value is too large"),
        ({"manifest": {"git": "x"}}, "git must be an object with a commit"),
        ({"manifest": {"git": {"a": 1}}}, "git must be an object with a commit"),
    ],
)
def test_a_line_that_no_report_could_print_is_refused(change, words):
    line = Result(Case("tossing", "measurement", "coin")).to_json()
    assert Result.from_json(line).ok
    with pytest.raises(ValueError, match=words):
        Result.from_json(line | change)
