from benchmarks.search import law_picks
from orbits.runs import folder
from orbits.runs.folder import Existing
from tests.symreg.leaderboard.written import failed, forces, search

FRONT = [(1, 2.0, "3"), (6, 0.05, "m1/r"), (9, 0.019, "2*m1*m2/r**2"), (20, 0.018, "m1*m2/r**3")]
ROWS = [{"complexity": c, "loss": loss, "expression": e} for c, loss, e in FRONT]


def searched(number):
    return search(engine="e@1", search=number, details={"front": ROWS})


def test_each_rule_picks_from_the_same_fronts():
    results = [searched(0)]
    assert law_picks.picks(results, "score") == {"m1/r": 1}
    assert law_picks.picks(results, "accuracy") == {"m1*m2/r**3": 1}
    assert law_picks.picks(results, "knee") == {"C*m1*m2/r**2": 1}


def test_the_table_has_a_line_per_rule_and_leaves_failed_cells_out(tmp_path, capsys):
    fits = {f"exponent_{name}": (1.0, 0.9, 1.1) for name in ("r", "m1", "m2")}
    folder.claim(tmp_path, {"study": "leaderboard"}, Existing())
    folder.save(tmp_path, [forces(metrics=fits), searched(0), searched(1), failed(searched(2))])
    law_picks.main([str(tmp_path)])
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 2 + 4
    exponents = ", ".join(["1.000 [0.900, 1.100]"] * 3)
    assert printed[2] == (
        f"| newton, fixed, gpt, pretrained, 300, 0 | {exponents} | `e@1` | knee | 2 | 1 | "
        "`C*m1*m2/r**2` (2) |"
    )
