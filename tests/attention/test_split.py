"""Attention split over keys: its plain form against the reference, in double precision."""

import pytest
import torch

from attention import reference
from attention.backends import split
from tests.attention.fused import SERVED, learned, specification, tensors


@pytest.mark.parametrize("name", SERVED)
@pytest.mark.parametrize(("queries", "keys", "size"), [(1, 70, 16), (3, 40, 7), (9, 9, 4)])
def test_merged_splits_are_the_whole(name, queries, keys, size):
    spec = specification(name)
    q, k, v, _ = (x.double() for x in tensors(queries, keys, heads=2))
    k, v = k[:, :1], v[:, :1, :, :16]  # two heads of queries share one of keys
    parameters = {key: x.double() for key, x in learned(spec).items()}
    expected = reference.attend(q, k, v, spec, parameters)
    found = split.attend(q, k, v, spec, parameters, size)
    torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)
    if spec.directional:
        parameters["inverse_lengths"] = reference.inverse_lengths(k)
        for call in (reference.attend, split.attend):
            found = call(q, k, v, spec, parameters, size)
            torch.testing.assert_close(found, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("name", ["lssar", "softmax_reweighted"])
def test_a_row_of_equal_scores_is_dead_in_every_split(name):
    q, k, v, _ = (x.double() for x in tensors(1, 30))
    found = split.attend(q, torch.ones_like(k), v, specification(name), {}, 8)
    assert torch.all(found == 0)
