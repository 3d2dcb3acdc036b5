import numpy as np
import pytest

from orbits import artefacts
from symreg import predictions


def arrays(n=50):
    rng = np.random.default_rng(0)
    r, m1, m2 = rng.uniform(0.5, 2, (3, n))
    force = 39.5 * m1 * m2 / r**2
    vector = np.stack([force, 0 * force], axis=1)
    return {
        "sequence_id": np.arange(n) // 10,
        "step": np.arange(n) % 10,
        "r": r,
        "m1": m1,
        "m2": m2,
        "force": force,
        "force_predicted": 1.1 * force,
        "force_vector": vector,
        "force_vector_predicted": np.stack([force, force], axis=1),
    }


def save(path, **changes):
    data = {name: array for name, array in {**arrays(), **changes}.items() if array is not None}
    artefacts.save_arrays(path, data, {"made": "here"})
    return path


def test_round_trip(tmp_path):
    made = arrays()
    data = predictions.read(save(tmp_path / "p.npz"))
    np.testing.assert_array_equal(data.X, np.column_stack([made[x] for x in ("r", "m1", "m2")]))
    np.testing.assert_array_equal(data.force_predicted, made["force_predicted"])
    assert data.manifest == {"made": "here"}
    assert data.sha256 == artefacts.sha256(tmp_path / "p.npz")
    assert data.cosine() == pytest.approx(2**-0.5)


def test_vectors_are_optional(tmp_path):
    data = predictions.read(save(tmp_path / "p.npz", force_vector=None))
    assert data.cosine() is None


def test_csv_holds_the_same(tmp_path):
    made = arrays()
    lines = [",".join(predictions.COLUMNS)]
    lines += [",".join(repr(made[x][i].item()) for x in predictions.COLUMNS) for i in range(50)]
    (tmp_path / "p.csv").write_text("\n".join(lines) + "\n")
    data = predictions.read(tmp_path / "p.csv")
    reference = predictions.read(save(tmp_path / "p.npz"))
    np.testing.assert_array_equal(data.X, reference.X)
    np.testing.assert_array_equal(data.force_predicted, reference.force_predicted)
    np.testing.assert_array_equal(data.step, reference.step)


def test_subsample_is_a_draw_without_replacement_that_the_seed_decides(tmp_path):
    data = predictions.read(save(tmp_path / "p.npz"))
    one, same, other = (data.subsample(seed, n=20) for seed in (1, 1, 2))
    np.testing.assert_array_equal(one.X, same.X)
    assert not np.array_equal(one.X, other.X)
    assert len(np.unique(one.X[:, 0])) == 20
    rows = {tuple(row) for row in np.column_stack([data.X, data.force_predicted])}
    assert {tuple(row) for row in np.column_stack([one.X, one.force_predicted])} <= rows
    assert one.vectors["force_vector"][:, 0] == pytest.approx(one.force)
    assert data.subsample(0, n=1000) is data
    with pytest.raises(ValueError, match="positive"):
        data.subsample(0, n=0)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"force_predicted": None}, "force_predicted"),
        ({"r": np.ones(3)}, r"r has shape \(3,\), expected \(50,\)"),
        ({"m1": -np.ones(50)}, "m1 must be positive"),
        ({"force": np.full(50, np.nan)}, "force must be positive"),
        ({"force_vector": np.ones((50, 3))}, "force_vector has shape"),
    ],
)
def test_bad_files_are_refused_by_name(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        predictions.read(save(tmp_path / "p.npz", **changes))


def test_damage_is_noticed(tmp_path):
    path = save(tmp_path / "p.npz")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(artefacts.CorruptArtefact, match="sha256"):
        predictions.read(path)


def test_bad_csv(tmp_path):
    path = tmp_path / "p.csv"
    path.write_text("r,m1\n1,2\n")
    with pytest.raises(ValueError, match="no column sequence_id, step"):
        predictions.read(path)
    path.write_text(",".join(predictions.COLUMNS) + "\n0,0,1,1,1,one,1\n")
    with pytest.raises(ValueError, match="not a number"):
        predictions.read(path)
    path.write_text(",".join(predictions.COLUMNS) + "\n")
    with pytest.raises(ValueError, match="no points"):
        predictions.read(path)
