"""The export against the rules of the Well's own format checker, and against the dataset."""

import sys

import numpy as np
import pytest

from orbits import protocols
from orbits.dataset import OrbitDataset, export, generate
from orbits.dataset.export import write_hdf5

h5py = pytest.importorskip("h5py")
N = 7


def make(folder, name="identifiable", population="force"):
    protocol = protocols.get(name, {"n_points": 25})
    generate(folder, protocol, {"train": N}, population=population, progress=False)
    return OrbitDataset(folder)


@pytest.fixture
def data(tmp_path):
    return make(tmp_path / "data")


def assert_described(file, node, shape=None, order=None):
    """Check a dataset or a boundary: its flags, and that its shape follows from them.

    Args:
        file: The file.
        node: The dataset, or the group of a boundary.
        shape: Its shape, where it is not that of ``node``.
        order: For a field, how many components' axes it has: 0 a number, 1 a vector, 2 a matrix.
    """
    dimensions = file["dimensions"]
    for flag in ("sample_varying", "time_varying"):
        assert isinstance(node.attrs[flag], bool | np.bool_), f"{node.name} {flag}"
    expected = [file.attrs["n_trajectories"]] if node.attrs["sample_varying"] else []
    expected += [dimensions["time"].shape[-1]] if node.attrs["time_varying"] else []
    axes = dimensions.attrs["spatial_dims"]
    if order is not None:
        varying = node.attrs["dim_varying"]
        assert isinstance(varying, np.ndarray)
        assert len(varying) == len(axes), node.name
        expected += [
            len(dimensions[axis]) for axis, varies in zip(axes, varying, strict=True) if varies
        ]
        expected += [len(axes)] * order
    if "associated_dims" in node.attrs:
        named = node.attrs["associated_dims"]
        expected += [len(dimensions[axis]) for axis in axes if axis in named]
    assert (node.shape if shape is None else shape) == tuple(expected), node.name


@pytest.mark.parametrize(
    ("name", "population"), [("identifiable", "force"), ("fixed", "pretrain"), ("paper", "force")]
)
def test_the_layout_is_that_of_the_well(tmp_path, name, population):
    out = write_hdf5(make(tmp_path / "data", name, population), tmp_path / "new" / "data.hdf5")
    with h5py.File(out) as file:
        for attribute in ("dataset_name", "grid_type"):
            assert isinstance(file.attrs[attribute], str)
        for attribute in ("n_spatial_dims", "n_trajectories"):
            assert isinstance(file.attrs[attribute], int | np.integer)
        assert file.attrs["n_trajectories"] == N
        for parameter in file.attrs["simulation_parameters"]:
            assert isinstance(parameter, str)
            assert parameter in file.attrs
            assert parameter in file["scalars"]
            assert file["scalars"][parameter][()] == file.attrs[parameter]

        dimensions = file["dimensions"]
        axes = dimensions.attrs["spatial_dims"]
        assert isinstance(axes, np.ndarray)
        assert len(axes) == file.attrs["n_spatial_dims"] == 2
        assert dimensions["time"].attrs["sample_varying"]
        assert_described(file, dimensions["time"])
        for axis in axes:
            assert isinstance(axis, str)
            assert not dimensions[axis].attrs["sample_varying"]
            # The axis along which the coordinate runs is its own.
            assert_described(file, dimensions[axis], shape=dimensions[axis].shape[:-1])

        for order in range(3):
            fields = file[f"t{order}_fields"]
            assert isinstance(fields.attrs["field_names"], np.ndarray)
            assert set(fields.attrs["field_names"]) == set(fields)
            for name, field in fields.items():
                assert isinstance(name, str)
                assert field.attrs["sample_varying"]
                assert field.attrs["time_varying"]
                assert_described(file, field, order=order)

        scalars = file["scalars"]
        assert isinstance(scalars.attrs["field_names"], np.ndarray)
        assert set(scalars.attrs["field_names"]) == set(scalars)
        for name, scalar in scalars.items():
            assert scalar.attrs["sample_varying"] == (
                name not in file.attrs["simulation_parameters"]
            )
            assert not scalar.attrs["time_varying"]
            assert_described(file, scalar)

        for name, boundary in file["boundary_conditions"].items():
            assert boundary.attrs["bc_type"] == "OPEN"  # upper case, as the Well's enumeration
            assert boundary.attrs["bc_type"].lower() in name
            assert isinstance(boundary.attrs["associated_fields"], np.ndarray)
            assert isinstance(boundary.attrs["associated_dims"], np.ndarray)
            for axis in boundary.attrs["associated_dims"]:
                assert isinstance(axis, str)
                assert axis in axes
                assert axis in name
            assert_described(file, boundary, shape=boundary["mask"].shape)


def test_the_content_is_that_of_the_dataset(data, tmp_path, monkeypatch):
    monkeypatch.setattr(export, "_POINTS_AT_ONCE", 50)  # several blocks, the last one shorter
    batch = data.batch(range(N))
    with h5py.File(write_hdf5(data, tmp_path / "data.hdf5")) as file:
        tokens = np.stack([file["t0_fields/token_x"], file["t0_fields/token_y"]], axis=-1)
        np.testing.assert_array_equal(tokens, batch["tokens"][:, 1:])
        np.testing.assert_array_equal(file["t0_fields/body"], batch["body"][:, 1:])
        np.testing.assert_array_equal(file["t1_fields/force"], batch["force"][:, 1:])
        np.testing.assert_array_equal(file["scalars/dt"], batch["dt"])
        np.testing.assert_array_equal(file["scalars/planet_mass"], batch["state"][:, 1, 4])
        np.testing.assert_array_equal(file["scalars/star_mass"], batch["state"][:, 1, 5])
        state = batch["state"][:, 1:]
        np.testing.assert_array_equal(file["t1_fields/relative_position"], state[..., :2])
        np.testing.assert_array_equal(file["t1_fields/relative_velocity"], state[..., 2:4])
        x, grid = file["t1_fields/position"][..., 0], file["dimensions/x"][:]
        np.testing.assert_allclose(x, grid[tokens[..., 0]], rtol=1e-6)
        assert grid[0] == -4 + 4 / 512
        # Planet and star are seen at the same time, then the clock moves on.
        np.testing.assert_allclose(
            file["dimensions/time"][2], batch["dt"][2] * (np.arange(25) // 2)
        )
        assert file.attrs["dataset_sha256"] == data.record["dataset_sha256"]


def test_planets_of_one_time_step_share_their_time(tmp_path):
    data = make(tmp_path / "data", "fixed", "pretrain")
    with h5py.File(write_hdf5(data, tmp_path / "data.hdf5")) as file:
        for k in range(N):
            n = file["scalars/n_planets"][k]
            assert n == data[k]["body"].max()
            steps = np.diff(file["dimensions/time"][k]) > 0
            assert (np.flatnonzero(steps) == np.arange(n, 24, n + 1)).all()


def test_an_export_is_the_same_bytes_each_time_and_replaces_an_older_file(data, tmp_path):
    out = tmp_path / "data.hdf5"
    first = write_hdf5(data, out).read_bytes()
    out.write_bytes(b"older")
    assert write_hdf5(data, out).read_bytes() == first


def test_a_damaged_dataset_leaves_an_older_export_alone(data, tmp_path):
    out = tmp_path / "data.hdf5"
    out.write_bytes(b"older")
    shard = data.path / "train/force/00000.npy"
    shard.write_bytes(shard.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"force/00000\.npy"):
        write_hdf5(data, out)
    assert out.read_bytes() == b"older"
    assert {path.name for path in tmp_path.iterdir()} == {"data", "data.hdf5"}


def test_bad_input_is_one_line(data, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match="is a folder"):
        write_hdf5(data, tmp_path)
    monkeypatch.setitem(sys.modules, "h5py", None)
    with pytest.raises(ValueError, match=r"h5py is not installed; pip install .*hdf5"):
        write_hdf5(data, tmp_path / "data.hdf5")
    assert not (tmp_path / "data.hdf5").exists()
