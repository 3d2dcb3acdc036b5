"""The table of variants is generated, not typed."""

from pathlib import Path

from attention.listing import table


def test_the_page_is_what_the_command_prints():
    page = Path(__file__).parents[2] / "attention" / "VARIANTS.md"
    assert page.read_text() == table(markdown=True) + "\n", (
        "run: python -m attention ls --markdown > attention/VARIANTS.md"
    )
