import tests.with_torch  # noqa: F401  # isort: skip
import warnings

import lightning
import pytest


@pytest.fixture
def quiet():
    """Seed all draws, and leave out what Lightning says of small trainings."""
    warnings.simplefilter("ignore")
    lightning.seed_everything(0, verbose=False)
