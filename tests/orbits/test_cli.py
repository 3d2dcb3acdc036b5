import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from matplotlib.figure import Figure

from orbits import laws, protocols, shifts, solar_system
from orbits.__main__ import main
from orbits.dataset import OrbitDataset, plots, read_index, write
from orbits.runs import artefact
from orbits.runs.figure import WIDTH, save_figure
from tests.letters import smallest
from tests.tiers import corners

ROOT = Path(__file__).parents[2]
SMALL = ["--n", "6", "--n-val", "2", "--n-test", "1", "--n-points", "6"]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    out = tmp_path_factory.mktemp("cli") / "made"
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
def test_the_solar_system_is_written_once(tmp_path, capsys, refusal, name):
    main(["solar-system", "--out", str(tmp_path), "--protocol", name])
    said = capsys.readouterr().out
    assert said.endswith(f"next: python -m worldmodel fit -c pretrain --data.protocol={name}\n")
    protocol = protocols.get(name)
    for file, made in (
        ("single", solar_system.single_sequence(protocol)),
        ("two_body", solar_system.two_body(protocol)),
    ):
        arrays, _ = artefact.load_arrays(tmp_path / f"{file}.npz")
        np.testing.assert_array_equal(arrays["tokens"], made["tokens"])
        np.testing.assert_array_equal(np.load(tmp_path / f"{file}.npz")["tokens"], made["tokens"])
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


@pytest.mark.full
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


@pytest.mark.full
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


@pytest.mark.full
@pytest.mark.parametrize("population", corners(protocols.POPULATIONS, "pretrain"))
def test_plot_writes_a_picture(made, tmp_path, population, capsys, monkeypatch):
    def saved(figure, out):
        assert smallest(figure) >= 8, "points, in a figure that a telephone shows whole"
        assert figure.get_figwidth() <= WIDTH
        return save_figure(figure, out)

    monkeypatch.setattr(plots, "save_figure", saved)
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


@pytest.mark.parametrize(
    ("low", "high", "shown"), [(0.05, 2, [0.1, 0.3, 1]), (0.3, 3, [0.5, 1, 2])]
)
def test_a_wide_range_has_fewer_ticks(low, high, shown):
    figure = Figure()
    axes = figure.subplots()
    plots._draw_histogram(axes, "mass (solar masses)", np.geomspace(low, high, 999), "log")
    inside = [x for x in axes.get_xticks() if low * 1.1 < x < high / 1.1]
    np.testing.assert_allclose(inside, shown)


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


REFUSED = (
    ("nonsense", "invalid choice: 'nonsense' (choose from 'generate', 'verify', 'info', 'plot'"),
    ("generate", "the following arguments are required: --out"),
    ("generate --out OUT --n many", "argument --n: must be a whole number, got 'many'"),
    ("generate --out OUT --n 0", "number of train sequences must be at least 1, got 0"),
    ("generate --out OUT --n-val 0", "number of val sequences must be at least 1, got 0"),
    ("generate --out OUT --n-test -2", "number of test sequences must be at least 1, got -2"),
    ("generate --out OUT --seed -1", "seed must be in [0, 2^64), got -1"),
    (f"generate --out OUT --seed {2**64}", f"seed must be in [0, 2^64), got {2**64}"),
    ("generate --out OUT --protocol papr", "unknown protocol 'papr'; did you mean paper?"),
    ("generate --out OUT --law hooke", "unknown law 'hooke'; choose from harmonic, "),
    ("generate --out OUT --population planets", "unknown population 'planets'; choose from "),
    ("generate --out OUT --n-points 1", "n_points must be at least 2, got 1"),
    ("generate --out OUT --n-bins 1", "n_bins must be at least 2 and fit into uint16, got 1"),
    ("generate --out OUT --n-bins 65536", "fit into uint16, got 65536"),
    ("generate --out OUT --unknown 1", "unrecognized arguments: --unknown 1"),
    ("generate --out OUT --shards 3", "'3' is not A:B, for example 0:10"),
    ("generate --out OUT --shards a:b", "'a:b' is not A:B, for example 0:10"),
    ("generate --out OUT --shards 1:1", "shards 1:1 are not a piece of 0:3"),
    ("generate --out OUT --shards 0:4", "shards 0:4 are not a piece of 0:3"),
    ("generate --out OUT --shard-size 0", "sequences per shard must be at least 1, got 0"),
    ("generate --out OUT --workers 0", "--workers must be at least 1, got 0"),
    ("generate --out OUT --executor dask --scheduler nowhere://1", "unknown address scheme"),
    ("generate --out MADE --n 7", "made holds another dataset"),
    ("generate --out MADE --n 7", "counts.train 6 there, 7 asked"),
    ("generate --out MADE --seed 5", "seed 4 there, 5 asked"),
    ("generate --out FULL", "full is not empty; choose another folder"),
    ("generate --out FULL/file", "full/file: Not a directory"),
    ("generate --out OUT --shift closr", "unknown shift 'closr'; did you mean closer? choose from"),
    ("generate --out OUT --shift closer --protocol nbody", "take identifiable or free_step"),
    ("generate --out OUT --shift closer --population pretrain", "take population force"),
    (
        "generate --out OUT --shift closer --n 5",
        "--n 5: a shift has test sequences alone; use --n-",
    ),
    ("generate --out OUT --shift closer --n-val 5", "--n-val 5"),
    ("generate --out OUT --shift closer --law inverse_cube", "does not bind"),
    ("generate --out OUT --shift closer --shift-file no.yaml", "no.yaml"),
    ("generate --out OUT --shift-file mine.yaml", "mine.yaml: No such file"),
    ("generate --out OUT --shift-file CORNER", "choose one by --shift: corner"),
    ("info OUT", "out holds no finished dataset (no dataset.json)"),
    ("info FULL", "full holds no finished dataset (no dataset.json)"),
    ("verify OUT", "out holds no dataset"),
    ("verify FULL", "full holds no dataset"),
    ("export OUT --out OUT.hdf5", "out holds no finished dataset"),
    ("export MADE --out MADE", "made is a folder; name a file"),
    ("export MADE --out OUT.hdf5 --split dev", "made has no split 'dev'; choose from train, val"),
    ("export MADE", "the following arguments are required: --out"),
    ("plot OUT", "out holds no finished dataset"),
    ("plot MADE --out FULL", "full is a folder; name a picture with --out"),
    ("plot MADE --out a.docx", "a.docx: pictures are written as png, svg, pdf"),
    ("plot MADE --spl val --out OUT", "unrecognized arguments: --spl val; did you mean --split?"),
    ("plot MADE --split dev --out OUT", "made has no split 'dev'; choose from train, val, test"),
    ("plot MADE --n 0 --out OUT", "--n must be at least 1, got 0"),
    ("solar-system", "the following arguments are required: --out"),
    ("solar-system --out OUT --protocol papr", "unknown protocol 'papr'; did you mean paper?"),
)
"""Commands, and what is said of each; OUT is not there, MADE a dataset, FULL somebody's folder."""


@pytest.mark.parametrize(("command", "message"), REFUSED)
def test_bad_input_is_one_line_and_nothing_is_written(command, message, made, tmp_path, refusal):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("mine")
    corner = ROOT / "orbits/dataset/cards/corner.yaml"
    places = {"OUT": tmp_path / "out", "FULL": full, "MADE": made, "CORNER": corner}
    for name, place in places.items():
        command = command.replace(name, str(place))
    before = sorted(tmp_path.rglob("*")), sorted(made.rglob("*"))
    assert message in refusal(main, command.split())
    assert (sorted(tmp_path.rglob("*")), sorted(made.rglob("*"))) == before
    assert (full / "file").read_text() == "mine"


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


def test_what_is_made_is_counted_and_the_index_is_data(made, capsys):
    main(["generate", *SMALL, "--seed", "4", "--n-bins", "64", "--out", str(made)])
    out = capsys.readouterr().out
    assert f"9 sequences in {made}: 6 train, 2 val, 1 test" in out
    assert f"next: python -m orbits plot {made}" in out
    main(["info", str(made), "--json"])
    sha256 = json.loads(capsys.readouterr().out)["dataset_sha256"]
    main(["info", str(made), "--quiet"])
    assert capsys.readouterr().out == f"{sha256}\n"
