"""Commands that are refused before anything heavy is imported, all of them in one new process."""

import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).parents[1]


def refused_without_torch(module: str, commands: Sequence[str], before: str = "") -> list[str]:
    """Return the line of error of each command, of which none may import torch.

    Args:
        module: The module whose ``main`` takes the words of a command.
        commands: Commands, their words with spaces between.
        before: Code that comes first.
    """
    code = f"""
import sys
from {module} import main
{before}
for command in {list(commands)!r}:
    try:
        main(command.split())
    except SystemExit as refused:
        assert refused.code == 2, command
    assert "torch" not in sys.modules, command
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert done.stdout == ""
    return done.stderr.splitlines()
