"""Colours, lines and markers: one look for one series, the same in every figure."""

import re

import pytest

from orbits.runs.palette import ALL, COLOURS, CONTROL, OWN, SHADES, looks, own_colour


def unlike(found):
    return len({tuple(sorted(style.items())) for style in found.values()}) == len(found)


def luminance(colour):
    channels = [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return sum(w * c for w, c in zip((0.2126, 0.7152, 0.0722), linear, strict=True))


def test_an_attention_has_its_colour_in_any_company():
    few, many = looks(["lssar p=15", "softmax"]), looks(["softmax", "alibi", "lazy", "lssar p=15"])
    assert few["lssar p=15"] == many["lssar p=15"]
    assert few["softmax"]["color"] == own_colour("softmax") == COLOURS[0]
    assert own_colour("some control") == CONTROL


@pytest.mark.parametrize("count", [2, 7, 21])
def test_no_two_series_look_alike(count):
    assert unlike(looks([f"model {i}" for i in range(count)]))
    assert unlike(looks([f"lssar p={i}" for i in range(min(count, 7))]))


def test_members_of_a_family_share_their_colour_alone():
    found = looks(["lssar p=3", "lssar p=15"])
    assert len({style["color"] for style in found.values()}) == 1
    assert unlike(found)


def test_families_may_be_given():
    found = looks(["lssar p=15, a", "lssar p=15, b"], ["a", "b"])
    assert len({style["color"] for style in found.values()}) == 2


def test_colours_can_be_seen_on_white():
    for colour in {*ALL, *(COLOURS[number] for number in OWN.values())}:
        assert re.fullmatch("#[0-9A-Fa-f]{6}", colour)
        assert 1.05 / (luminance(colour) + 0.05) > 2, colour
    assert [at for at, _ in SHADES] == [-1, 0, 1]
