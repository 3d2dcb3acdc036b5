"""Outputs that cannot be written."""

import pytest

from orbits.runs import folder


def test_a_folder_below_a_file_cannot_be_written(tmp_path):
    (tmp_path / "file.txt").touch()
    with pytest.raises(PermissionError, match=r"file\.txt is a file"):
        folder.check_writable(tmp_path / "file.txt" / "x.json")
    folder.check_writable(tmp_path / "file.txt")
    folder.check_writable(tmp_path / "new" / "x.json")
