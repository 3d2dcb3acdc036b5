import subprocess
import sys
from pathlib import Path

import pytest

from orbits import laws, protocols
from orbits.__main__ import main
from orbits.dataset import OrbitDataset

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


def test_info_prints_the_card(made, capsys):
    main(["info", str(made)])
    text = capsys.readouterr().out
    for fact in ("identifiable", "newton", "force", "-4.0 to 4.0 AU in 64 bins", "6 sequences"):
        assert fact in text
    assert text.count("checksums match") == 3


@pytest.mark.parametrize("population", protocols.POPULATIONS)
def test_plot_writes_a_picture(made, tmp_path, population, capsys):
    data = made
    if population == "pretrain":
        data = tmp_path / "pretrain"
        arguments = ["--population", population, "--protocol", "paper", "--out", str(data)]
        main(["generate", *SMALL, *arguments])
        capsys.readouterr()
    picture = tmp_path / "made" / "orbits.png"
    main(["plot", str(data), "--split", "train", "--n", "2", "--out", str(picture)])
    assert capsys.readouterr().out.strip() == str(picture)
    assert picture.read_bytes().startswith(b"\x89PNG")


def test_ls_lists_every_protocol_and_law(capsys):
    main(["ls"])
    text = capsys.readouterr().out
    assert all(f" {name} " in text for name in (*protocols.names(), *laws.names()))


@pytest.mark.parametrize(
    "arguments",
    [
        [],
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
        ["generate", "--out", "FULL"],
        ["generate", "--out", "FULL/file"],
        ["info", "OUT"],
        ["info", "FULL"],
        ["plot", "OUT"],
        ["plot", "MADE", "--split", "dev", "--out", "OUT"],
        ["plot", "MADE", "--n", "0", "--out", "OUT"],
    ],
    ids=" ".join,
)
def test_bad_input_is_one_line_and_exit_code_2_and_writes_nothing(
    arguments, made, tmp_path, capsys
):
    full = tmp_path / "full"
    full.mkdir()
    (full / "file").write_text("mine")
    places = {"OUT": str(tmp_path / "out"), "FULL": str(full), "MADE": str(made)}
    for name, place in places.items():
        arguments = [argument.replace(name, place) for argument in arguments]
    before = sorted(tmp_path.rglob("*")), sorted(made.rglob("*"))
    with pytest.raises(SystemExit) as stop:
        main(arguments)
    assert stop.value.code == 2
    output = capsys.readouterr()
    assert output.out == ""
    assert output.err.startswith("error: ")
    assert output.err.count("\n") == 1
    assert (sorted(tmp_path.rglob("*")), sorted(made.rglob("*"))) == before
    assert (full / "file").read_text() == "mine"


def test_a_damaged_shard_is_named_on_one_line(tmp_path, capsys):
    main(["generate", *SMALL, "--out", str(tmp_path / "data")])
    shard = tmp_path / "data/val/00000.npz"
    shard.write_bytes(shard.read_bytes()[:-1])
    capsys.readouterr()
    with pytest.raises(SystemExit) as stop:
        main(["info", str(tmp_path / "data")])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert str(shard) in error
    assert error.count("\n") == 1


def test_help_answers_without_the_heavy_imports():
    result = subprocess.run(
        [sys.executable, "-X", "importtime", "-m", "orbits", "--help"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    assert "generate" in result.stdout
    imported = {line.rsplit("|", 1)[1].strip().split(".")[0] for line in
                result.stderr.splitlines() if line.count("|") == 2}  # fmt: skip
    assert "orbits" in imported
    assert not imported & {"torch", "lightning", "scipy", "sympy", "matplotlib"}
