"""The wheel: it holds all files that the code opens, and what is unpacked runs elsewhere."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PACKAGES = ("orbits", "attention", "worldmodel", "symreg", "benchmarks", "orrery")
DATA = {".css", ".html", ".js", ".json", ".md", ".mplstyle", ".npy", ".yaml"}
LEFT_OUT = ("benchmarks/results/", "README.md")
"""Kept results, which are read from a checkout, and pages for its readers."""

pytestmark = pytest.mark.full


def tracked():
    listed = subprocess.run(
        ["git", "ls-files", *PACKAGES], cwd=ROOT, capture_output=True, text=True
    )
    if listed.returncode:
        pytest.skip("needs a git checkout")
    return [
        name
        for name in listed.stdout.splitlines()
        if not name.startswith(LEFT_OUT[0]) and not name.endswith(LEFT_OUT[1])
    ]


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """Return a wheel that is built of the tracked files, without the network."""
    source, out = tmp_path_factory.mktemp("source"), tmp_path_factory.mktemp("wheel")
    for name in (*tracked(), "pyproject.toml", "README.md", "LICENSE"):
        (source / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, source / name)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    subprocess.run(
        [sys.executable, "-m", "pip", "wheel", *options, "-w", out, source], check=True, cwd=out
    )
    (path,) = out.glob("*.whl")
    return path


def test_every_file_that_is_opened_is_in_it(wheel):
    needed = {name for name in tracked() if Path(name).suffix in (*DATA, ".py")}
    assert {"attention/VARIANTS.md", "orbits/dataset/FORMAT.md", "symreg/PREDICTIONS.md"} < needed
    assert "worldmodel/configs/pretrain.yaml" in needed
    with zipfile.ZipFile(wheel) as archive:
        assert sorted(needed - set(archive.namelist())) == []


def test_what_is_unpacked_runs_in_another_folder(wheel, tmp_path):
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
        (metadata,) = (x for x in archive.namelist() if x.endswith("entry_points.txt"))
        assert "orrery = orrery.__main__:main" in archive.read(metadata).decode()
        version = wheel.name.split("-")[1]
    code = f"""
import sys
sys.path.insert(0, {str(tmp_path / "site")!r})
import orrery, orrery.__main__
from orbits.dataset.card import CARDS
from worldmodel import configurations
assert orrery.__version__ == {version!r}
assert configurations.find("pretrain").startswith({str(tmp_path)!r})
assert CARDS.is_dir()
for line in ("--version", "data ls", "attention ls", "law ls", "bench ls", "train --help"):
    orrery.__main__.main(line.split())
"""
    ran = subprocess.run(
        [sys.executable, "-I", "-c", code], cwd=tmp_path, capture_output=True, text=True
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.startswith(f"orrery {version}\nprotocol identifiable")
