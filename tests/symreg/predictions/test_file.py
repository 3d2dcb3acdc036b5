import csv
import runpy

import numpy as np
import pyarrow as pa
import pytest
from pyarrow import parquet

from orbits import laws
from orbits.runs import artefact
from symreg import predictions

G = 39.4784176044


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


def changed(changes):
    return {name: array for name, array in {**arrays(), **changes}.items() if array is not None}


def save(path, manifest=None, **changes):
    """Write a file with its sidecar, as our own training does."""
    artefact.save_arrays(path, changed(changes), manifest or {"made": "here"})
    return path


def bare(path, **changes):
    """Write a file as anyone would."""
    np.savez(path, **changed(changes))
    return path


def components(columns):
    """Take the vectors apart into what a table can hold."""
    flat = {name: array for name, array in columns.items() if array.ndim == 1}
    for name in columns.keys() - flat.keys():
        flat |= {f"{name}_x": columns[name][:, 0], f"{name}_y": columns[name][:, 1]}
    return flat


def save_csv(path, columns, encoding="utf-8"):
    with open(path, "w", newline="", encoding=encoding) as file:
        out = csv.writer(file)
        out.writerow(columns)
        out.writerows(zip(*(array.tolist() for array in columns.values()), strict=True))
    return path


def test_round_trip(tmp_path):
    made = arrays()
    data = predictions.read(save(tmp_path / "p.npz"))
    np.testing.assert_array_equal(data.X, np.column_stack([made[x] for x in ("r", "m1", "m2")]))
    np.testing.assert_array_equal(data.force_predicted, made["force_predicted"])
    assert data.manifest == {"made": "here"}
    assert data.sha256 == artefact.sha256(tmp_path / "p.npz")
    assert data.cosine() == pytest.approx(2**-0.5)


def test_a_file_made_elsewhere_needs_no_sidecar(tmp_path):
    path = bare(tmp_path / "p.npz")
    data = predictions.read(path)
    np.testing.assert_array_equal(data.force, arrays()["force"])
    assert data.manifest == {}
    assert data.sha256 == artefact.sha256(path)


@pytest.mark.parametrize("suffix", [".npz", ".csv", ".parquet"])
def test_the_sidecar_of_another_file_is_refused(tmp_path, suffix):
    save(tmp_path / "other.npz", r=arrays()["r"] + 1)
    path = bare(tmp_path / "p.npz").rename(tmp_path / f"p{suffix}")
    artefact.sidecar(tmp_path / "other.npz").rename(artefact.sidecar(path))
    with pytest.raises(artefact.CorruptArtefact, match=rf"p\{suffix}: sha256 mismatch"):
        predictions.read(path)


def test_vectors_are_optional(tmp_path):
    data = predictions.read(save(tmp_path / "p.npz", force_vector=None))
    assert data.cosine() is None


def test_the_cosine_is_of_the_vectors_that_were_predicted(tmp_path):
    vector = arrays()["force_vector_predicted"]
    vector[:10], vector[10:20], vector[20:30] = np.nan, np.inf, 0
    data = predictions.read(save(tmp_path / "p.npz", force_vector_predicted=vector))
    assert data.cosine() == pytest.approx(2**-0.5)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig"])
def test_csv_holds_the_same(tmp_path, encoding):
    path = save_csv(tmp_path / "p.csv", components(arrays()), encoding)
    assert_same(predictions.read(path), predictions.read(save(tmp_path / "p.npz")))


def test_parquet_holds_the_same(tmp_path):
    for compression in ("none", "snappy", "zstd"):
        path = tmp_path / f"{compression}.parquet"
        parquet.write_table(pa.table(components(arrays())), path, compression=compression)
        assert_same(predictions.read(path), predictions.read(save(tmp_path / "p.npz")))


def assert_same(data, reference):
    for name in ("X", "force", "force_predicted", "step"):
        np.testing.assert_array_equal(getattr(data, name), getattr(reference, name))
    np.testing.assert_array_equal(data.sequence_id.astype(int), reference.sequence_id)
    assert set(data.vectors) == set(reference.vectors) == {"force_vector", "force_vector_predicted"}
    for name, vector in reference.vectors.items():
        np.testing.assert_array_equal(data.vectors[name], vector)


def test_a_table_may_hold_more_columns_and_empty_predictions(tmp_path):
    columns = changed({"step": None, "force_vector": None, "force_vector_predicted": None})
    columns |= {"comment": np.full(50, "x" * 500), "": np.arange(50), " r ": columns.pop("r")}
    columns["force_predicted"] = np.array(["", "nan", "-inf", " 2.5", *["1"] * 46])
    data = predictions.read(save_csv(tmp_path / "p.csv", columns))
    expected = [np.nan, np.nan, -np.inf, 2.5, *[1] * 46]
    np.testing.assert_array_equal(data.force_predicted, expected)
    np.testing.assert_array_equal(data.X[:, 0], arrays()["r"])
    assert data.dropped == pytest.approx(3 / 50)


@pytest.mark.parametrize("kind", ["f4", "f8", ">f8", "f2", "i4", "u8"])
def test_any_number_type_in_any_memory_order(tmp_path, kind):
    values = np.arange(1, 51).astype(kind)
    position = np.stack([values, 2 * values]).T  # in Fortran's order
    own = {"r": values, "position": position, "force": None, "force_vector": None}
    data = predictions.read(bare(tmp_path / "p.npz", **own))
    np.testing.assert_array_equal(data.X[:, 0], np.arange(1, 51))
    np.testing.assert_array_equal(data.vectors["position"][:, 1], 2 * np.arange(1, 51))


def test_a_compressed_file(tmp_path):
    np.savez_compressed(tmp_path / "p.npz", **arrays())
    reference = predictions.read(bare(tmp_path / "q.npz"))
    assert_same(predictions.read(tmp_path / "p.npz"), reference)


def test_the_step_is_the_position_in_its_sequence_where_it_is_not_given(tmp_path):
    ids = np.array(["b", "a", "b", "b", "a"] * 10)
    data = predictions.read(bare(tmp_path / "p.npz", step=None, sequence_id=ids))
    seen: dict[str, int] = {}
    for sequence, step in zip(ids, data.step, strict=True):
        assert step == seen.setdefault(sequence, 0)
        seen[sequence] += 1


def test_the_true_force_is_the_laws_where_it_is_not_given(tmp_path):
    path = bare(tmp_path / "p.npz", force=None, force_vector=None)
    r, m1, m2 = predictions.read(path).X.T
    np.testing.assert_allclose(predictions.read(path).force, G * m1 * m2 / r**2, rtol=1e-12)
    cube = predictions.read(path, law="inverse_cube").force
    np.testing.assert_allclose(cube * r**3 / (m1 * m2), (cube * r**3 / (m1 * m2))[0], rtol=1e-12)
    with pytest.raises(ValueError, match="unknown law 'aristotle'"):
        predictions.read(path, law="aristotle")


def test_a_row_is_named_by_the_file_by_its_columns_or_by_its_manifest(tmp_path):
    plain = predictions.read(bare(tmp_path / "my_model.npz")).row
    assert plain == {
        "model": "my_model", "protocol": "own data", "arm": "-", "labels": "-", "seed": 0
    }  # fmt: skip
    recorded = {"model": "GPT", "protocol": "fixed", "arm": "scratch", "labels": 8, "seed": None}
    ours = {"config": {"row": recorded, "seed": 5}}
    assert predictions.read(save(tmp_path / "p.npz", ours)).row == {**recorded, "labels": "8"}
    named = save(tmp_path / "q.npz", ours, model="mine", seed=np.full(50, 3), labels=np.int64(10))
    row = predictions.read(named).row
    assert row == {**recorded, "model": "mine", "seed": 3, "labels": "10"}
    assert type(row["seed"]) is int


def test_a_name_that_training_left_open_is_the_default(tmp_path):
    recorded = dict.fromkeys(("model", "protocol", "arm", "labels", "seed"))
    row = predictions.read(save(tmp_path / "mine.npz", {"config": {"row": recorded}})).row
    assert row == {
        "model": "mine", "protocol": "own data", "arm": "-", "labels": "-", "seed": None
    }  # fmt: skip
    named = save(tmp_path / "q.npz", {"config": {"row": recorded}}, seed=2, labels="8")
    assert predictions.read(named).row == {**row, "model": "q", "seed": 2, "labels": "8"}


def test_constants_in_a_table_are_columns(tmp_path):
    constants = {"model": "k-NN, 2", "units": predictions.UNITS, "schema": 1, "seed": 4}
    columns = components(arrays()) | {name: np.full(50, v) for name, v in constants.items()}
    row = predictions.read(save_csv(tmp_path / "p.csv", columns)).row
    assert (row["model"], row["seed"]) == ("k-NN, 2", 4)


def points(n, sequence_id=None, usable=None):
    """Return n points, told apart by r, that anything may be done to."""
    r = np.arange(1.0, n + 1)
    force = G / r**2
    return predictions.Predictions(
        sequence_id=np.arange(n) if sequence_id is None else np.asarray(sequence_id),
        step=np.zeros(n, int),
        X=np.column_stack([r, np.ones(n), np.ones(n)]),
        force=force,
        force_predicted=force if usable is None else np.where(usable, force, np.nan),
        vectors={},
        row={},
        manifest={},
        sha256="",
    )


def distances(data):
    """Return what tells the points apart."""
    return set(data.X[:, 0])


@pytest.mark.parametrize(
    ("kind", "n", "searched"), [(int, 1, 1), (float, 100, 100), (str, 799, 799), (int, 10_000, 800)]
)
def test_a_split_holds_out_a_fifth_of_the_sequences_whole(kind, n, searched):
    data = points(1000, (np.arange(1000) % 50).astype(kind))
    search, held_out = data.split(3, n)
    assert (len(search), len(held_out)) == (searched, 200)
    sequences = set(held_out.sequence_id)
    assert len(sequences) == 10
    assert not sequences & set(search.sequence_id)
    for part in (search, held_out):
        assert np.all(np.diff(part.X[:, 0]) > 0), "in file order, without repetition"
        np.testing.assert_allclose(part.force_predicted, G / part.X[:, 0] ** 2)


def test_the_seed_decides_which_sequences_and_points():
    data = points(1000, np.arange(1000) // 20)
    for part, same, other in zip(*(data.split(seed, 99) for seed in (1, 1, 2)), strict=True):
        assert distances(part) == distances(same)
        assert distances(part) != distances(other)
    assert distances(data.split(1, 99)[1]) == distances(data.split(1, 500)[1])
    drawn = [set(data.split(seed, 99)[1].sequence_id) for seed in range(60)]
    assert set.union(*drawn) == set(range(50)), "every sequence has its chance"


def test_the_search_sees_usable_points_only_and_the_judge_all_of_a_sequence():
    usable = np.arange(1000) % 3 > 0
    search, held_out = points(1000, np.arange(1000) // 10, usable).split(0, 10_000)
    assert np.all(search.force_predicted > 0)
    assert len(held_out) == 200
    assert held_out.dropped == pytest.approx(1 / 3, abs=0.02)
    assert len(search) == usable.sum() - np.sum(held_out.force_predicted > 0)


ALONE = np.zeros(100)


@pytest.mark.parametrize(
    ("sequence_id", "usable", "searched", "judging"),
    [
        (ALONE, np.arange(100) < 100, 80, 20),
        (np.arange(100) % 4, np.arange(100) < 100, 80, 20),
        (ALONE, np.arange(100) < 25, 20, 5),
        (ALONE, np.arange(100) < 29, 24, 5),
        (np.arange(100) // 30, np.arange(100) < 30, 24, 6),
        (np.minimum(np.arange(100) // 40, 1) * (np.arange(100) - 39), np.arange(100) < 40, 32, 8),
    ],
)
def test_too_few_sequences_are_split_by_points(sequence_id, usable, searched, judging):
    for seed in range(5):
        search, held_out = points(100, sequence_id, usable).split(seed)
        assert not distances(search) & distances(held_out)
        assert len(search) == searched
        assert np.sum(held_out.force_predicted > 0) == judging
        dropped = (100 - usable.sum()) // 5
        assert len(held_out) == judging + dropped, "as many dropped as in the file"


@pytest.mark.parametrize("n_sequences", [1, 4, 5, 6, 10, 25, 200])
def test_the_smallest_file_leaves_enough_to_search_and_to_judge(n_sequences):
    rng = np.random.default_rng(n_sequences)
    for seed in range(20):
        usable = rng.permutation(200) < 25
        data = points(200, rng.integers(n_sequences, size=200), usable)
        search, held_out = data.split(seed)
        assert len(search) >= 20
        assert np.sum(held_out.force_predicted > 0) >= 5
        assert not distances(search) & distances(held_out)


def test_a_split_needs_a_point_to_search():
    for n in (0, -1):
        with pytest.raises(ValueError, match="n must be positive"):
            points(100).split(0, n)


def test_25_usable_predictions_are_enough(tmp_path):
    few = np.full(50, np.nan)
    few[:25] = 1
    assert predictions.read(bare(tmp_path / "p.npz", force_predicted=few)).dropped == 0.5


@pytest.mark.parametrize("error", [0.981, 1.019])
def test_a_true_force_as_coarse_as_the_published_ones_is_the_laws(tmp_path, error):
    r, m1, m2 = (arrays()[name] for name in ("r", "m1", "m2"))
    force = error * G * m1 * m2 / r**2
    data = predictions.read(bare(tmp_path / "p.npz", force=force))
    np.testing.assert_array_equal(data.force, force)


def test_one_true_force_in_a_hundred_may_be_off_the_law(tmp_path):
    made = {name: np.concatenate([column] * 4) for name, column in arrays().items()}
    made["force"][[3, 77]] *= 9
    assert predictions.read(bare(tmp_path / "p.npz", **made)).force[77] == made["force"][77]
    made["force"][8] *= 1.03
    with pytest.raises(ValueError, match="not that of newton in 3 of 200 points, first row 3"):
        predictions.read(bare(tmp_path / "q.npz", **made))


def test_a_true_force_of_another_law_is_refused_unless_that_law_is_named(tmp_path):
    r, m1, m2 = (arrays()[name] for name in ("r", "m1", "m2"))
    unstated = bare(tmp_path / "p.npz", force=None, force_vector=None)
    cube = predictions.read(unstated, law="inverse_cube").force
    path = bare(tmp_path / "cube.npz", force=cube, force_vector=None)
    np.testing.assert_array_equal(predictions.read(path, law="inverse_cube").force, cube)
    wrong = r"cube\.npz: force is not that of newton in \d+ of 50 .*--law, or drop the column$"
    with pytest.raises(ValueError, match=wrong):
        predictions.read(path)
    with pytest.raises(ValueError, match="force is not that of inverse_cube in"):
        predictions.read(bare(tmp_path / "n.npz", force=G * m1 * m2 / r**2), law="inverse_cube")


def test_a_true_force_vector_is_as_long_as_the_laws(tmp_path):
    vector = arrays()["force_vector"]
    turned = predictions.read(bare(tmp_path / "turned.npz", force_vector=vector[:, ::-1]))
    np.testing.assert_array_equal(turned.vectors["force_vector"], vector[:, ::-1])
    with pytest.raises(ValueError, match="force_vector is not that of newton in 50 of 50 points"):
        predictions.read(bare(tmp_path / "long.npz", force_vector=2 * vector))


def test_damage_is_noticed(tmp_path):
    path = save(tmp_path / "p.npz")
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    with pytest.raises(artefact.CorruptArtefact, match="sha256"):
        predictions.read(path)


@pytest.mark.full
def test_the_example_runs_as_it_is_printed(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    runpy.run_module("symreg.examples.own_model")
    out = capsys.readouterr().out
    assert "in the box   law: " in out
    assert out.startswith("written      runs/own_model.npz\n")
    assert out.endswith("next: python -m symreg leaderboard runs/own_model.npz\n")
    data = predictions.read("runs/own_model.npz")
    assert data.row["model"] == "5-NN of 2000 forces"
    assert len(data) == 3000
    r, m1, m2 = data.X.T
    np.testing.assert_allclose(data.force, G * m1 * m2 / r**2)
    assert 0.9 < np.corrcoef(np.log(data.force), np.log(data.force_predicted))[0, 1] < 1


def test_a_law_that_the_sidecar_does_not_tell_is_refused(tmp_path):
    world = {"config": {"data": {"protocol_args": {"law": "yukawa"}}, "model": {}}}
    near = laws.get("yukawa").magnitude(*(arrays()[name] for name in ("r", "m1", "m2")))
    path = save(tmp_path / "p.npz", world, force=near, force_predicted=near)
    with pytest.raises(ValueError, match="its forces are of law yukawa: add --law yukawa"):
        predictions.read(path)
    assert len(predictions.read(path, "yukawa")) == 50
    own = save(tmp_path / "q.npz", {"config": {"data": {"protocol_args": {"law": "nowhere"}}}})
    assert len(predictions.read(own)) == 50  # of a plug-in that is not there
