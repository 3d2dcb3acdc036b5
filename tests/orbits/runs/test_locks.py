"""Two runs in one folder, a lock that leads elsewhere, and a disk without locks."""

import errno
import fcntl

import pytest

from orbits.runs import locks


def test_two_runs_do_not_share_a_folder(tmp_path, capsys):
    with (
        locks.lock(tmp_path / "out"),
        pytest.raises(ValueError, match="another run is using"),
        locks.lock(tmp_path / "out"),
    ):
        pass
    with locks.lock(tmp_path / "out"):
        pass
    assert capsys.readouterr().err == ""


@pytest.mark.parametrize("exists", [True, False])
def test_a_lock_that_is_a_link_is_refused_and_its_target_kept(tmp_path, exists):
    victim = tmp_path / "victim.txt"
    if exists:
        victim.write_text("mine")
    out = tmp_path / "out"
    out.mkdir()
    (out / ".lock").symlink_to(victim)
    with pytest.raises(ValueError, match=r"out/\.lock is a link; delete it"), locks.lock(out):
        pass
    assert victim.exists() == exists
    assert not exists or victim.read_text() == "mine"


def test_a_lock_keeps_what_its_file_holds(tmp_path):
    (tmp_path / ".lock").write_text("mine")
    with locks.lock(tmp_path):
        pass
    assert (tmp_path / ".lock").read_text() == "mine"


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.ENOTSUP])
def test_a_disk_without_locks_is_warned_of_in_one_line(tmp_path, monkeypatch, capsys, number):
    def without(*_):
        raise OSError(number, "No locks available")

    monkeypatch.setattr(fcntl, "flock", without)
    with locks.lock(tmp_path / "out"):
        warning = capsys.readouterr().err
    assert warning.count("\n") == 1
    assert f"{tmp_path / 'out'} is on a disk without locks (No locks available)" in warning
    assert "two runs at once are not kept apart there" in warning


def test_a_link_to_a_folder_in_a_results_folder_is_refused(tmp_path):
    outside, folder = tmp_path / "outside", tmp_path / "out"
    (folder / "a").mkdir(parents=True)
    outside.mkdir()
    (folder / "a" / "figures").symlink_to(outside)
    with pytest.raises(ValueError, match="a/figures is a link to a folder"), locks.lock(folder):
        pass
    (tmp_path / "root").symlink_to(folder)
    (folder / "a" / "figures").unlink()
    (folder / "a" / "file").symlink_to(outside / "x")
    with locks.lock(tmp_path / "root"):  # the folder itself may be a link; files are replaced
        pass
