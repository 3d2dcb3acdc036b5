"""Functions of cells for the tests; workers are new processes and import them."""

import os
import time
from pathlib import Path

import numpy as np

from orbits.runs.cell import Cell, Outcome, Skipped
from orbits.runs.result import Case


def count(name, value, log, folder, left=None, right=None):
    """Write a file and leave a mark outside for every call."""
    with open(log, "a") as file:
        file.write(name)
    total = value + sum(int((f / "value").read_text()) for f in (left, right) if f)
    (folder / "value").write_text(str(total))
    return Outcome(metrics={"value": total}, files={"value": "value"})


def curve():
    """Return details whose keys are numbers."""
    return Outcome(metrics={"value": 1.0}, details={"curve": {2: 1.0, 10: 2.0}})


def fail(name, value, log, folder, left=None, right=None):
    """Fail as long as the file is not there."""
    if not os.path.exists(f"{log}.mended"):
        raise ValueError("no such orbit")
    return count(name, value, log, folder, left, right)


def die(name, value, log, folder, left=None, right=None):
    """Vanish like a process that the kernel killed, as long as the file is not there."""
    if not os.path.exists(f"{log}.mended"):
        os._exit(9)
    return count(name, value, log, folder, left, right)


def die_once(name, value, log, folder, left=None, right=None):
    """Vanish the first time."""
    try:
        open(f"{log}.{name}.died", "x").close()
    except FileExistsError:
        return count(name, value, log, folder, left, right)
    os._exit(9)


def skip_once(name, value, log, folder, left=None, right=None):
    """Be out of reach the first time."""
    try:
        open(f"{log}.skipped", "x").close()
    except FileExistsError:
        return count(name, value, log, folder, left, right)
    raise Skipped("no network")


def slowly(name, value, log, folder, left=None, right=None):
    """Write the file in two steps, as another writer of the same folder would notice."""
    time.sleep(0.3)
    (folder / "half").touch()
    time.sleep(0.3)
    assert (folder / "half").exists()
    return count(name, value, log, folder, left, right)


def several():
    """Return two outcomes, the second of a control."""
    yield Outcome(metrics={"error": [1.0, 0.5, 1.5]}, setting={"at": 2})
    yield Outcome(metrics={"error": 2}, variant="truth", arm="control", seed=-1)


def misshapen():
    """Return a metric that is none."""
    return Outcome(metrics={"error": [1.0, 2.0]})


def not_plain():
    """Return a number of numpy among the details."""
    return Outcome(details={"share": np.float32(0.5)})


def names_a_file_in_latin_1():
    """Fail with a file name as Python spells bytes that are no UTF-8."""
    raise ValueError("caf\udce9.npz: damaged")


def in_pieces(log, scratch):
    """Keep two pieces in the folder that survives, and fail between them the first time."""
    for piece in ("1", "2"):
        if (scratch / piece).exists():
            continue
        with open(log, "a") as file:
            file.write(piece)
        if piece == "2" and not os.path.exists(f"{log}.mended"):
            raise ValueError("interrupted")
        (scratch / piece).touch()
    return Outcome()


def burn(seconds):
    """Use the processor."""
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass


def with_a_child():
    """Work 0.2 s here and 0.4 s in a child, as the bounded computer algebra does."""
    burn(0.2)
    child = os.fork()
    if child == 0:
        burn(0.4)
        os._exit(0)
    os.waitpid(child, 0)
    return Outcome()


def quick():
    """Do nothing."""
    return Outcome()


def reads(file):
    """Read a file."""
    return Outcome(metrics={"bytes": len(file.read_bytes())})


def prepare():
    """Prepare nothing."""


def unprepared():
    """Stop a worker before its first cell."""
    raise ImportError("no such library")


def cell(tmp_path: Path, name: str, function=count, needs=None, value=1, **case) -> Cell:
    """Return a cell that counts."""
    arguments = {"name": name, "value": value, "log": str(tmp_path / "log")}
    return Cell(function, Case("sums", "sum", variant=name, **case), arguments, needs or {})


def calls(tmp_path: Path) -> str:
    """Return the marks of all calls."""
    return "".join(sorted((tmp_path / "log").read_text()))


class Unsendable:
    """A result whose worker dies before it can be fetched."""

    def __reduce__(self):
        os._exit(9)


def lose(mark):
    """Lose the result, when it is done, with the worker; the second time, the worker alone."""
    try:
        open(mark, "x").close()
    except FileExistsError:
        os._exit(9)
    return Unsendable()
