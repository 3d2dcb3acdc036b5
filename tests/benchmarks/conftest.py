"""Runs of studies at their smallest size, and runs that must be refused."""

import pytest

from benchmarks.__main__ import main
from tests.benchmarks import blank


@pytest.fixture
def refused_run(tmp_path, refusal):
    """Return a function that runs a study which must be refused, and returns the line of error.

    It takes the words after ``python -m benchmarks run``; nothing may be written.
    """

    def refused(*words):
        out = tmp_path / "out"
        line = refusal(main, ["run", *words, "--out", str(out)])
        assert not out.exists()
        return line

    return refused


@pytest.fixture
def undrawn(monkeypatch):
    """Let figures be blank pictures, where a report is asked for its words."""
    blank.undrawn(monkeypatch)


@pytest.fixture
def without_a_gpu(monkeypatch):
    """Let PyTorch find no GPU, also where there is one."""
    monkeypatch.setattr("torch.cuda.device_count", lambda: 0)


@pytest.fixture(scope="session")
def tiny_run(tmp_path_factory):
    """Return a function that runs a study's preset ``tiny`` and returns its folder.

    Runs of the same study with the same flags are one run in a session: they are read alone.
    """
    made = {}

    def run(name, *flags):
        if (name, *flags) not in made:
            out = tmp_path_factory.mktemp(name) / "out"
            main(["run", name, "--preset", "tiny", "--executor", "here", *flags, "--out", str(out)])
            made[name, *flags] = out
        return made[name, *flags]

    return run
