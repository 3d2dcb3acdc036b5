"""One legend for a figure of several panels."""

from __future__ import annotations

from matplotlib.figure import Figure


def legend(figure: Figure, title: str | None = None, above: bool = False) -> None:
    """Give a figure one legend of all its panels, in as many columns as its names leave room for.

    Args:
        figure: Whose panels have labelled artists.
        title: What all panels are of.
        above: Put it above the panels instead of below them.
    """
    found = {
        label: handle
        for axis in figure.axes
        for handle, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    letters = 16 * figure.get_figwidth()  # of a line
    figure.legend(
        found.values(),
        found.keys(),
        title=title,
        title_fontsize=8,
        loc="outside upper center" if above else "outside lower center",
        ncols=max(1, min(4, int(letters / (max(map(len, found)) + 8)))),
        fontsize=8,
        frameon=False,
    )
