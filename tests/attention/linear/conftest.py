"""Every linear mixer, as a fixture."""

import pytest

from attention import linear
from tests.attention.linear.by_name import QUICK
from tests.tiers import corners


@pytest.fixture(params=corners(linear.names(), *QUICK))
def name(request):
    """Every mixer."""
    return request.param


@pytest.fixture(params=sorted(set(linear.names()) - set(QUICK)))
def other(request):
    """The mixers that are not among QUICK."""
    return request.param
