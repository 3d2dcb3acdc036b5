import re

import pytest

from orbits import protocols
from orbits.dataset import generate, read_index
from orbits.dataset.card import CARDS, card
from tests.orbits.worlds import TIERED
from tests.tiers import corners

GOLDEN = re.compile(r"^\| (pretrain|force) \| ([0-9a-f]{64}|varies) \|$", re.MULTILINE)
HEADINGS = ("Equation", "Dimensions", "Number of trajectories", "Units", "Time step", "Fields",
            "Time and hardware", "Size")  # fmt: skip


@pytest.mark.parametrize("name", protocols.names())
def test_every_protocol_has_a_card(name):
    text = (CARDS / f"{name}.md").read_text()
    assert text.startswith(f"# {name}\n")
    for heading in HEADINGS:
        assert f"**{heading}:**" in text
    protocol = protocols.get(name)
    assert f"{1 + protocol.n_points:,} rows" in text
    assert f"{protocol.n_bins:,} bins" in text
    assert f"[{protocol.low:g}, {protocol.high:g}] AU" in text
    assert {population for population, _ in GOLDEN.findall(text)} == set(protocol.populations)
    if protocol.sampler in ("exoplanets", "published"):  # whose fits are to the catalogue
        assert "made use of the NASA Exoplanet Archive" in text.replace("\n", " ")
        assert all(source in text for source in ("Christiansen et al. 2025", "Kipping\n(2013)"))


@pytest.mark.parametrize(("name", "population"), TIERED)
def test_golden_hash(tmp_path, name, population):
    golden = dict(GOLDEN.findall((CARDS / f"{name}.md").read_text()))[population]
    if golden == "varies":
        pytest.skip(f"labels of {name} pass through the machine's math library")
    counts = {"train": 100, "val": 10, "test": 10}
    generate(tmp_path, protocols.get(name), counts, population=population, progress=False)
    assert read_index(tmp_path)["dataset_sha256"] == golden


@pytest.mark.parametrize("name", corners(protocols.names(), "identifiable", "fixed", "paper"))
def test_a_dataset_prints_the_distributions_of_its_protocol(tmp_path, name):
    protocol = protocols.get(name, {"n_points": 8})
    population = protocol.populations[-1]
    generate(tmp_path, protocol, {"train": 2}, population=population, progress=False)
    text = card(tmp_path)
    assert "| quantity | distribution |" in text
    assert "Making it" not in text
    assert f"{name}, population {population}" in text
    assert read_index(tmp_path)["dataset_sha256"] in text


@pytest.mark.parametrize(("law", "hidden"), [("m1_over_r2", True), ("power_a1_n1.8", False)])
def test_a_dataset_says_whether_its_law_hides_the_masses(tmp_path, law, hidden):
    generate(tmp_path, protocols.get("identifiable", {"law": law}), {"train": 2}, progress=False)
    assert f"law         {law}: F = " in card(tmp_path)
    assert ("paths show m1 / m2 and neither mass" in card(tmp_path)) == hidden
