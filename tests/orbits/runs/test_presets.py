"""Presets that start from others: of the same file, and of a file that studies share."""

from orbits.runs.presets import Preset, read_presets


def test_a_preset_extends_presets_of_its_own_file_and_of_another(tmp_path):
    (tmp_path / "sizes.yaml").write_text(
        "presets:\n  base: {width: 8, how: {lr: 0.1, clip: 1}}\n"
        "  wide: {extends: base, width: 64}\n"
    )
    study = tmp_path / "study.yaml"
    study.write_text(
        "about: Which?\npresets:\n  small: {about: quick, seeds: [0], width: 2, workers: 3}\n"
        "  wide: {about: slow, extends: [small, sizes/wide], how: {lr: 0.2}}\n"
    )
    about, presets = read_presets(study)
    assert about == "Which?"
    assert presets["small"] == Preset("small", "quick", {"seeds": [0], "width": 2}, 3)
    values = {"seeds": [0], "width": 64, "how": {"lr": 0.2, "clip": 1}}
    assert presets["wide"] == Preset("wide", "slow", values, 3), "the later one wins"
