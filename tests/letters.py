"""Letters of figures, of which a telephone shows those of 8 points with 7 pixels."""

from matplotlib.text import Text


def smallest(figure):
    """Return the size of the smallest letters of a figure, in points."""
    texts = figure.findobj(lambda each: isinstance(each, Text) and each.get_text())
    return min(text.get_fontsize() for text in texts if text.get_visible())
