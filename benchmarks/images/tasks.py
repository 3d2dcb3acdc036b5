"""The tasks by name: sizes of their images, and how many classes there are."""

from __future__ import annotations

from dataclasses import dataclass

from orbits.runs.choices import check_choice

FOLDER = "imagenet"
"""The task whose images lie in a folder."""


@dataclass(frozen=True)
class Task:
    """Sizes of a task.

    Attributes:
        name: Name of the task.
        about: Question of the task.
        size: Pixels of a side.
        patch: Pixels of a patch's side.
        channels: 1 or 3.
        n_classes: Classes; of a folder those that it has.
    """

    name: str
    about: str
    size: int
    patch: int
    channels: int
    n_classes: int


TASKS = {
    task.name: task
    for task in (
        Task("digits", "which digit was written, scikit-learn's 1,797 images", 8, 2, 1, 10),
        Task("eccentricity", "the eccentricity of a drawn orbit, in six classes", 24, 4, 1, 6),
        Task("mass_ratio", "the mass ratio of two drawn bodies, in six classes", 24, 4, 1, 6),
        Task(FOLDER, "ImageNet-1k, by folder", 224, 16, 3, 1000),
    )
}


def get(name: str) -> Task:
    """Return a task."""
    check_choice("task", name, TASKS)
    return TASKS[name]
