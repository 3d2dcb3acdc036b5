"""The flagship with the published label leak: where it goes, and that every row says so."""

import pytest

from tests.benchmarks.newton.small import cells

HONEST = {"next_point", "next_point_references", "world_model"}
"""Functions that see no labels."""


def leaking(protocol="paper", **changes):
    return cells("paper", protocol=protocol, label_leak=2, **changes)


@pytest.mark.full
def test_labels_leak_into_what_learns_from_labels_and_not_into_pretraining():
    honest, grid = cells("paper"), leaking()
    known = {cell.key for cell in honest}
    assert len(grid) == len(honest)
    for cell in grid:
        sees_no_labels = cell.function.__name__ in HONEST
        assert (cell.key in known) == sees_no_labels
        given = cell.arguments.get("job", cell.arguments)
        for part in ("data", "model"):
            if part in given:
                leak = (given[part]["protocol_args"] or {}).get("label_leak")
                assert leak == (None if sees_no_labels else 2)
    backbones = {cell.needs["pretrained"].key for cell in grid if "pretrained" in cell.needs}
    assert backbones <= known


def test_a_leaked_row_says_so_and_shares_no_table_with_an_honest_one():
    def cases(grid):
        return [cell.case for cell in grid if cell.case.kind == "forces"]

    found = cases(leaking())
    assert {case.protocol for case in found} == {"paper, 2 leaked labels per test sequence"}
    models = {case.variant for case in found if case.arm != "control"}
    assert models == {"softmax, leaked labels", "lssar p=15, leaked labels"}
    assert {case.protocol for case in cases(cells("paper"))} == {"paper"}


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"labels": (300, "unlimited")}, "got unlimited"),
        ({"elsewhere": ("harmonic",)}, "elsewhere does not go with label_leak"),
    ],
)
def test_what_labels_cannot_leak_into_is_refused(changes, message):
    with pytest.raises(ValueError, match=message):
        cells("paper", **{"protocol": "paper", "label_leak": 2, **changes})
