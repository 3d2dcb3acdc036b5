import tests.with_torch  # noqa: F401  # isort: skip
import warnings

import lightning
import pytest


@pytest.fixture
def quiet():
    """Seed all draws, and leave out what Lightning says of small trainings."""
    warnings.simplefilter("ignore")
    lightning.seed_everything(0, verbose=False)


@pytest.fixture
def file(tmp_path):
    """Return a text of sums, no two of which are alike."""
    path = tmp_path / "numbers.txt"
    path.write_text(" ".join(f"{i} + {i + 1} = {2 * i + 1};" for i in range(400)), "utf-8")
    return path
