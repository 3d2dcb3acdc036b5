import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from orbits import laws, protocols, shifts, solar_system
from orbits.__main__ import main
from orbits.dataset import OrbitDataset, read_index, write
from orbits.runs import artefact
from tests.tiers import corners

ROOT = Path(__file__).parents[2]
SMALL = ["--n", "6", "--n-val", "2", "--n-test", "1", "--n-points", "6"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "data"
    main(["generate", *SMALL, "--seed", "4", "--n-bins", "64", "--out", str(out)])
    return out


def test_generate_writes_what_was_asked(made, capsys):
    protocol = protocols.get("identifiable", {"n_points": 6, "n_bins": 64})
    for split, count in (("train", 6), ("val", 2), ("test", 1)):
        data = OrbitDataset(made, split)
        expected = protocol.batch(4, split, range(count), "force")
        assert len(data) == count
        for index in range(count):
            assert (data[index]["tokens"] == expected["tokens"][index]).all()


@pytest.mark.parametrize("name", ["paper", "fixed"])
def test_the_solar_system_is_written_once(tmp_path, refusal, name):
    main(["solar-system", "--out", str(tmp_path), "--protocol", name])
    protocol = protocols.get(name)
    for file, made in (
        ("single", solar_system.single_sequence(protocol)),
        ("two_body", solar_system.two_body(protocol)),
    ):
        arrays, _ = artefact.load_arrays(tmp_path / f"{file}.npz")
        np.testing.assert_array_equal(arrays["tokens"], made["tokens"])
    again = ["solar-system", "--out", str(tmp_path), "--protocol", name]
    assert "exists" in refusal(main, again)


def test_info_prints_the_card(made, capsys):
    main(["info", str(made)])
    text = capsys.readouterr().out
    for fact in (
        "identifiable, population force",
        "newton: F = G*m1*m2/r**2, G = 39.4784176",
        "AU, year, solar mass",
        "-4.0 to 4.0 AU in 64 bins",
        "6 sequences",
        "tokens uint16[7, 2]",
        "core seconds on",
        "numpy",
        read_index(made)["dataset_sha256"],
        "| eccentricity |",
    ):
        assert fact in text


def test_verify_prints_the_hash_of_a_whole_dataset(made, capsys):
    main(["verify", str(made)])
    text = capsys.readouterr().out
    assert "12 files intact" in text
    assert read_index(made)["dataset_sha256"] in text


def test_generate_in_pieces_says_what_is_missing(tmp_path, capsys, refusal):
    arguments = ["generate", *SMALL, "--shard-size", "2", "--out", str(tmp_path / "data")]
    main([*arguments, "--shards", "1:3"])
    assert "3 shards are still missing" in capsys.readouterr().out
    refusal(main, ["info", str(tmp_path / "data")])
    main([*arguments, "--workers", "2"])
    assert "9 sequences" in capsys.readouterr().out


def test_generate_under_another_law(tmp_path, monkeypatch):
    monkeypatch.setattr(write, "_COMPILE_FROM", 0)  # the compiled tokens know Newton's law alone
    arguments = ["--law", "harmonic", "--population", "pretrain", "--out", str(tmp_path)]
    main(["generate", *SMALL, *arguments])
    protocol = protocols.get("identifiable", {"n_points": 6, "law": "harmonic"})
    expected = protocol.batch(0, "train", range(6), "pretrain")["tokens"]
    np.testing.assert_array_equal(OrbitDataset(tmp_path).batch(range(6))["tokens"], expected)


def test_a_shift_has_test_sequences_alone_and_is_on_the_card(tmp_path, capsys):
    file = tmp_path / "mine.yaml"
    file.write_text("- {name: tiny_star, redraw: {star_mass: [0.02, 0.1]}, dt_octaves: -1}\n")
    arguments = ["--shift", "tiny_star", "--shift-file", str(file), "--n-test", "3"]
    main(["generate", *arguments, "--n-points", "6", "--out", str(tmp_path / "data")])
    shift = shifts.get("tiny_star", file).as_plain()
    protocol = protocols.get("identifiable", {"n_points": 6, "shift": shift})
    expected = protocol.batch(0, "test", range(3), "force")
    found = OrbitDataset(tmp_path / "data", "test")
    np.testing.assert_array_equal(found.batch(range(3))["tokens"], expected["tokens"])
    np.testing.assert_array_equal(found.batch(range(3))["force"], expected["force"])
    assert read_index(tmp_path / "data")["config"]["counts"] == {"test": 3}
    main(["info", str(tmp_path / "data")])
    card = capsys.readouterr().out
    assert "tiny_star: star mass of 0.02 to 0.1 solar masses, time step times 2^-1;" in card


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--shift", "closr"],
            "unknown shift 'closr'; did you mean closer? choose from",
        ),
        (["--shift", "closer", "--protocol", "nbody"], "take identifiable or free_step"),
        (["--shift", "closer", "--population", "pretrain"], "take population force"),
        (["--shift", "closer", "--n", "5"], "--n 5: a shift has test sequences alone; use --n-te"),
        (["--shift", "closer", "--n-val", "5"], "--n-val 5"),
        (["--shift", "closer", "--law", "inverse_cube"], "does not bind"),
        (["--shift", "closer", "--shift-file", "no.yaml"], "no.yaml"),
        (["--shift-file", "mine.yaml"], "choose one of its shifts by --shift"),
    ],
)
def test_a_shift_that_cannot_be_is_refused(tmp_path, refusal, arguments, message):
    out = tmp_path / "out"
    assert message in refusal(main, ["generate", *arguments, "--out", str(out)])
    assert not out.exists()


def test_systems_of_a_shift_are_drawn_as_the_command_that_made_them_says(tmp_path, capsys):
    out = str(tmp_path / "closer")
    main(["generate", "--shift", "closer", "--n-test", "3", "--out", out])
    assert capsys.readouterr().out.endswith(f"next: python -m orbits plot {out}\n")
    main(["plot", out])
    assert capsys.readouterr().out == f"written    {tmp_path / 'closer' / 'test.png'}\n"


def test_export_writes_hdf5(made, tmp_path, capsys):
    h5py = pytest.importorskip("h5py")
    main(["export", str(made), "--out", str(tmp_path / "val.hdf5"), "--split", "val"])
    assert capsys.readouterr().out.startswith(f"written    {tmp_path / 'val.hdf5'}\nin Python: ")
    with h5py.File(tmp_path / "val.hdf5") as file:
        assert file.attrs["n_trajectories"] == 2


def test_export_replaces_no_file(made, tmp_path, refusal):
    (tmp_path / "notes.txt").write_text("mine")
    said = refusal(main, ["export", str(made), "--out", str(tmp_path / "notes.txt")])
    assert said.endswith("notes.txt exists; choose another --out")
    assert (tmp_path / "notes.txt").read_text() == "mine"


@pytest.mark.parametrize("population", corners(protocols.POPULATIONS, "pretrain"))
def test_plot_writes_a_picture(made, tmp_path, population, capsys):
    data = made
    if population == "pretrain":
        data = tmp_path / "pretrain"
        arguments = ["--population", population, "--protocol", "paper", "--out", str(data)]
        main(["generate", *SMALL, *arguments])
        capsys.readouterr()
    picture = tmp_path / "made" / "orbits.png"
    main(["plot", str(data), "--split", "train", "--n", "2", "--out", str(picture)])
    assert capsys.readouterr().out.splitlines() == [
        f"written    {picture}",
        f"next: python -m worldmodel fit -c pretrain --data.path {data}",
    ]
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_ls_lists_every_protocol_shift_and_law(capsys):
    main(["ls"])
    text = capsys.readouterr().out
    assert all(f" {name} " in text for name in (*protocols.names(), *shifts.names(), *laws.names()))
    main(["ls", "--json"])
    found = json.loads(capsys.readouterr().out)
    assert [tuple(found[of]) for of in ("protocols", "shifts")] == [
        protocols.names(),
        shifts.names(),
    ]
    assert set(laws.names()) < set(found["laws"])
    main(["ls", "--quiet"])
    names = capsys.readouterr().out.split()
    assert names == [*protocols.names(), *shifts.names(), *laws.names()]
    assert found["broken"] == []


@pytest.mark.parametrize(
    "arguments",
    [
        ["nonsense"],
        ["generate"],
        ["generate", "--out", "OUT", "--n", "many"],
        ["generate", "--out", "OUT", "--n", "0"],
        ["generate", "--out", "OUT", "--n-val", "0"],
        ["generate", "--out", "OUT", "--n-test", "-2"],
        ["generate", "--out", "OUT", "--seed", "-1"],
        ["generate", "--out", "OUT", "--seed", str(2**64)],
        ["generate", "--out", "OUT", "--protocol", "papr"],
        ["generate", "--out", "OUT", "--law", "hooke"],
        ["generate", "--out", "OUT", "--population", "planets"],
        ["generate", "--out", "OUT", "--n-points", "1"],
        ["generate", "--out", "OUT", "--n-bins", "1"],
        ["generate", "--out", "OUT", "--n-bins", "65536"],
        ["generate", "--out", "OUT", "--unknown", "1"],
        ["generate", "--out", "OUT", "--shards", "3"],
        ["generate", "--out", "OUT", "--shards", "a:b"],
        ["generate", "--out", "OUT", "--shards", "1:1"],
        ["generate", "--out", "OUT", "--shards", "0:4"],
        ["generate", "--out", "OUT", "--shard-size", "0"],
        ["generate", "--out", "OUT", "--workers", "0"],
        ["generate", "--out", "OUT", "--executor", "dask", "--scheduler", "nowhere://1"],
        ["generate", "--out", "MADE", "--n", "7"],
        ["generate", "--out", "FULL"],
        ["generate", "--out", "FULL/file"],
        ["info", "OUT"],
        ["info", "FULL"],
        ["verify", "OUT"],
        ["verify", "FULL"],
        ["export", "OUT", "--out", "OUT.hdf5"],
        ["export", "MADE", "--out", "MADE"],
        ["export", "MADE", "--out", "OUT.hdf5", "--split", "dev"],
        ["export", "MADE"],
        ["plot", "MADE", "--out", "FULL"],
        ["plot", "MADE", "--spl", "val", "--out", "OUT"],
        ["solar-system"],
        ["solar-system", "--out", "OUT", "--protocol", "papr"],
        ["plot", "OUT"],
        ["plot", "MADE", "--split", "dev", "--out", "OUT"],
        ["plot", "MADE", "--n", "0", "--out", "OUT"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line_and_exit_code_2_and_writes_nothing(
    arguments, made, tmp_path, refusal
):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("mine")
    places = {"OUT": str(tmp_path / "out"), "FULL": str(full), "MADE": str(made)}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    before = sorted(tmp_path.rglob("*")), sorted(made.rglob("*"))
    assert refusal(main, arguments).startswith("error: ")
    assert (sorted(tmp_path.rglob("*")), sorted(made.rglob("*"))) == before
    assert (full / "file").read_text() == "mine"


@pytest.mark.parametrize("arguments", [["export", "data", "data.h5"], ["solar-system", "data.h5"]])
def test_an_old_spelling_names_the_new_one(arguments, refusal):
    assert refusal(main, arguments) == "error: argument OUT: write --out data.h5"


def test_verify_names_what_is_bad_and_how_to_repair_it(tmp_path, capsys, refusal):
    main(["generate", *SMALL, "--out", str(tmp_path / "data")])
    shard, gone = tmp_path / "data/val/tokens/00000.npy", tmp_path / "data/test/force/00000.npy"
    shard.write_bytes(shard.read_bytes()[:-1])
    gone.unlink()
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["verify", str(tmp_path / "data")])
    assert stop.value.code == 1
    first, second, advice = capsys.readouterr().out.splitlines()
    assert str(shard) in first
    assert second == f"{gone}: missing"
    assert "generate` again" in advice
    assert str(shard) in refusal(main, ["plot", str(tmp_path / "data"), "--split", "val"])


def imported(*arguments, code=0):
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "orbits", *arguments],
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert result.returncode == code, result.stderr[-1000:]
    lines = [line for line in result.stderr.splitlines() if line.count("|") == 2]
    return {line.rsplit("|", 1)[1].strip().split(".")[0] for line in lines}, result.stdout


HEAVY = {"torch", "lightning", "scipy", "sympy", "matplotlib", "numba", "dask", "h5py"}


def test_help_answers_without_the_heavy_imports():
    modules, text = imported("--help")
    assert all(name in text for name in ("generate", "verify", "info", "plot", "export", "ls"))
    assert "orbits" in modules
    assert not modules & (HEAVY | {"numpy"})


def test_a_small_dataset_is_made_without_the_heavy_imports(tmp_path):
    modules, _ = imported("generate", *SMALL, "--out", str(tmp_path / "data"))
    assert "numpy" in modules
    assert not modules & HEAVY


@pytest.mark.parametrize(
    "arguments",
    [
        ["generate", "--law", "harmonic", "--out", "FULL"],
        pytest.param(["plot", "FULL"], marks=pytest.mark.full),
        pytest.param(["export", "MADE", "--out", "FULL"], marks=pytest.mark.full),
    ],
    ids=" ".join,
)
def test_a_bad_path_is_refused_before_the_heavy_imports(arguments, made, tmp_path):
    (tmp_path / "file").write_text("mine")
    places = {"FULL": str(tmp_path), "MADE": str(made)}
    modules, _ = imported(*(places.get(word, word) for word in arguments), code=2)
    assert "numpy" in modules
    assert not modules & HEAVY


def test_another_dataset_is_refused_by_what_differs(made, refusal):
    again = ["generate", *SMALL, "--seed", "5", "--n-bins", "64", "--n", "9", "--out", str(made)]
    said = refusal(main, again)
    assert "counts.train 6 there, 9 asked" in said
    assert "seed 4 there, 5 asked" in said


def test_what_is_made_is_counted_and_the_index_is_data(made, capsys):
    main(["generate", *SMALL, "--seed", "4", "--n-bins", "64", "--out", str(made)])
    out = capsys.readouterr().out
    assert f"9 sequences in {made}: 6 train, 2 val, 1 test" in out
    assert f"next: python -m orbits plot {made}" in out
    main(["info", str(made), "--json"])
    sha256 = json.loads(capsys.readouterr().out)["dataset_sha256"]
    main(["info", str(made), "--quiet"])
    assert capsys.readouterr().out == f"{sha256}\n"
