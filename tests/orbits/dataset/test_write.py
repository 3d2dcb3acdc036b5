import shutil
from types import SimpleNamespace

import numpy as np
import pytest

from orbits import kernel, protocols
from orbits.dataset import OrbitDataset, generate, read_index, shards, write
from orbits.runs.executors import Execution
from tests.orbits.worlds import TIERED

COUNTS = {"train": 10, "val": 3}
SMALL = protocols.get("identifiable", {"n_points": 6})


def call(folder, **changes):
    given = {"protocol": SMALL, "counts": COUNTS, "seed": 3, "sequences_per_shard": 2, **changes}
    return generate(folder, given.pop("protocol"), given.pop("counts"), progress=False, **given)


def content(folder):
    return {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*.npy")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    call(folder)
    return folder


@pytest.mark.parametrize("order", [[(0, 7)], [(5, 7), (0, 1), (1, 5)], [(0, 4), (2, 7)]])
def test_pieces_in_any_order_make_the_same_dataset(whole, tmp_path, order):
    for first, last in order[:-1]:
        assert call(tmp_path, shards=(first, last)) > 0
        with pytest.raises(FileNotFoundError, match=r"dataset\.json"):
            OrbitDataset(tmp_path)
    assert call(tmp_path, shards=order[-1]) == 0
    assert content(tmp_path) == content(whole)
    assert read_index(tmp_path)["sha256"] == read_index(whole)["sha256"]


def test_the_order_in_which_splits_are_named_does_not_matter(whole, tmp_path):
    call(tmp_path, counts=dict(reversed(COUNTS.items())))
    assert read_index(tmp_path)["dataset_sha256"] == read_index(whole)["dataset_sha256"]


def test_what_is_missing_is_counted(tmp_path):
    assert call(tmp_path, shards=(0, 2)) == 5
    assert call(tmp_path, shards=(1, 4)) == 3
    (tmp_path / "train/force/00000.npy").unlink()
    truncated = tmp_path / "train/tokens/00003.npy"
    truncated.write_bytes(truncated.read_bytes()[:-1])
    assert call(tmp_path, shards=(4, 7)) == 2
    assert call(tmp_path) == 0


@pytest.mark.full
def test_workers_make_the_same_dataset(whole, tmp_path):
    assert call(tmp_path, execution=Execution("processes", 2)) == 0
    assert content(tmp_path) == content(whole)


@pytest.mark.full  # compiles
def test_the_compiled_kernel_makes_the_same_dataset(tmp_path, monkeypatch):
    protocol = protocols.get("fixed", {"n_points": 60})
    compiled, calls = kernel.tokens, []
    monkeypatch.setattr(kernel, "tokens", lambda *given: calls.append(1) or compiled(*given))
    for folder, points, n_calls in (("plain", 10**9, 0), ("compiled", 0, 7)):
        monkeypatch.setattr(write, "_COMPILE_FROM", points)
        call(tmp_path / folder, protocol=protocol, population="pretrain")
        assert len(calls) == n_calls
    assert content(tmp_path / "plain") == content(tmp_path / "compiled")


def test_blocks_do_not_show(whole, tmp_path, monkeypatch):
    monkeypatch.setattr(shards, "_POINTS_AT_ONCE", 6)
    call(tmp_path, sequences_per_shard=5)
    tokens = OrbitDataset(tmp_path).batch(range(10))["tokens"]
    np.testing.assert_array_equal(tokens, OrbitDataset(whole).batch(range(10))["tokens"])


@pytest.mark.parametrize(
    "change",
    [
        {"seed": 4},
        {"population": "pretrain"},
        {"counts": {"train": 11, "val": 3}},
        {"protocol": protocols.get("identifiable", {"n_points": 8})},
        {"sequences_per_shard": 3},
    ],
    ids=lambda change: next(iter(change)),
)
def test_a_folder_holds_one_dataset(whole, change):
    before = content(whole)
    with pytest.raises(ValueError, match="another dataset"):
        call(whole, **change)
    assert content(whole) == before


def test_of_two_claims_at_the_same_moment_the_second_is_refused(tmp_path, monkeypatch):
    check = write._check_space

    def another_run_claims_now(*given):
        monkeypatch.setattr(write, "_check_space", check)
        call(tmp_path, seed=4, shards=(0, 1))

    monkeypatch.setattr(write, "_check_space", another_run_claims_now)
    with pytest.raises(ValueError, match="another dataset"):
        call(tmp_path)
    assert call(tmp_path, seed=4) == 0


@pytest.fixture
def claims_are_computed_anew():
    shards.claim.cache_clear()
    yield
    shards.claim.cache_clear()


@pytest.mark.usefixtures("claims_are_computed_anew")
def test_code_that_computes_other_bits_does_not_mix_its_shards_in(tmp_path, monkeypatch):
    call(tmp_path, shards=(0, 2))
    before = content(tmp_path)
    arrays = shards.Plan.arrays

    def other_bits(*given):
        stored = arrays(*given)
        stored["state"] = np.nextafter(stored["state"], np.inf)
        return stored

    monkeypatch.setattr(shards.Plan, "arrays", other_bits)
    shards.claim.cache_clear()
    with pytest.raises(ValueError, match="other bits"):
        call(tmp_path)
    assert content(tmp_path) == before


def test_a_worker_that_computes_other_bits_makes_nothing(tmp_path):
    plan = shards.Plan(SMALL, "force", 3, (("train", 4),), 2)
    with pytest.raises(ValueError, match="a worker computes other bits"):
        shards.make(tmp_path, plan, "0123456789abcdef", False, plan.shards()[0])
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"counts": {}}, "no split to write; give a number of its sequences"),
        ({"counts": {"train": 5, "dev": 5}}, "unknown split 'dev'"),
        ({"shards": (-1, 3)}, "shards -1:3 are not a piece of 0:7"),
        (
            {"protocol": protocols.get("paper"), "counts": {"val": 10**9}},
            "trajectory index must be below 30000300",
        ),
    ],
    ids=lambda value: str(value)[:40],
)
def test_bad_input_writes_nothing(tmp_path, change, message):
    with pytest.raises(ValueError, match=message):
        call(tmp_path / "data", **change)
    assert not (tmp_path / "data").exists()


def test_a_disk_without_room_is_refused_before_anything_is_written(whole, tmp_path, monkeypatch):
    needed = sum(np.load(p).nbytes for p in whole.rglob("*.npy"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=needed - 1))
    with pytest.raises(OSError, match=r"needs .* MB, .* MB are free"):
        call(tmp_path / "data")
    assert not (tmp_path / "data").exists()
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=needed))
    assert call(tmp_path / "data", shards=(0, 6)) == 1
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=needed // 2))
    assert call(tmp_path / "data") == 0  # what is there needs no room


@pytest.mark.parametrize(("name", "population"), TIERED)
def test_shards_are_of_about_128_megabytes(name, population):
    protocol = protocols.get(name)
    size = shards.default_size(protocol, population)
    plan = shards.Plan(protocol, population, 0, (("train", 2),), size)
    per_sequence = sum(array.nbytes for array in plan.arrays("train", [0, 1]).values()) / 2
    assert 2**26 <= size * per_sequence <= 1.01 * 2**27


def test_the_published_training_set_has_the_stated_shards():
    protocol = protocols.get("paper")
    assert shards.default_size(protocol, "pretrain") == 32768
    every = shards.Plan(protocol, "pretrain", 0, (("train", 10_000_000),), 32768).shards()
    assert len(every) == 306
    assert every[-1] == ("train", 305, 305 * 32768, 10_000_000 - 305 * 32768)


@pytest.mark.parametrize(
    ("taken", "given"),
    [
        ("train/tokens/00001.npy", "train/tokens/00002.npy"),
        ("val/tokens/00000.npy", "train/tokens/00000.npy"),
        ("train/n_planets/00000.npy", "train/tokens/00000.npy"),
    ],
)
def test_a_shard_of_another_place_is_made_again(whole, tmp_path, taken, given):
    folder = tmp_path / "again"
    shutil.copytree(whole, folder)
    for end in ("", ".json"):
        shutil.copy(folder / f"{taken}{end}", folder / f"{given}{end}")
    assert call(folder) == 0
    assert content(folder) == content(whole)
    assert read_index(folder)["sha256"] == read_index(whole)["sha256"]


@pytest.mark.full
def test_a_law_that_fails_late_leaves_no_folder(tmp_path):
    out = tmp_path / "out"
    world = protocols.get("identifiable", {"law": "yukawa_length_1.25"})
    with pytest.raises(ValueError, match="does not bind trajectory"):
        generate(out, world, {"train": 60}, progress=False)
    assert not out.exists()


def test_the_room_on_the_disk_is_asked_for_before_shards_are_listed(tmp_path, monkeypatch):
    monkeypatch.setattr(shards.Plan, "shards", lambda plan: 1 / 0)
    with pytest.raises(OSError, match="are free"):
        call(tmp_path / "out", counts={"train": 10**12}, sequences_per_shard=1)


@pytest.mark.parametrize("indices", [[True, False, True], [0.7, 1.2], np.array([True] * 10)])
def test_a_mask_or_fractions_select_nothing(whole, indices):
    data = OrbitDataset(whole, "train")
    with pytest.raises(ValueError, match="must be whole numbers"):
        data.batch(indices)
    with pytest.raises(ValueError, match="must be whole numbers"):
        SMALL.batch(0, "train", indices)
    for index in ([0, 1], np.array([4, 5]), 1.9, True):
        with pytest.raises(TypeError):
            data[index]
    with pytest.raises(ValueError, match="seed must be a whole number"):
        SMALL.batch(1.5, "train", [0])
    assert data.batch([])["sequence_id"].size == 0


def test_a_folder_without_a_name_is_refused_and_one_with_files_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(ValueError, match="has no name"):
        call("")
    (tmp_path / "linked").symlink_to(tmp_path.parent)
    (tmp_path / "notes.txt").touch()
    with pytest.raises(ValueError, match="is not empty; choose another folder"):
        call(".")


def test_a_refusal_leaves_what_other_runs_made(tmp_path, monkeypatch):
    out = tmp_path / "out"

    def refused(*_):
        monkeypatch.setattr(write, "make", shards.make)
        call(out, shards=(2, 4))  # another run, which is done first
        raise ValueError("a worker computes other bits")

    monkeypatch.setattr(write, "make", refused)
    with pytest.raises(ValueError, match="other bits"):
        call(out, shards=(0, 2))
    made = {name.rpartition("/")[2] for name in content(out)}
    assert made == {"00002.npy", "00003.npy"}
    assert call(out) == 0
