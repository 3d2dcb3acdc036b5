from orbits.runs.notebook import html_table


def test_every_text_is_escaped_and_nothing_hides():
    html = html_table([("<b>", "&\x1b")], ("<i>",), "<script>")
    assert html == (
        "<table><caption>&lt;script&gt;</caption><tr><th>&lt;i&gt;</th></tr>"
        "<tr><td>&lt;b&gt;</td><td>&amp;\\x1b</td></tr></table>"
    )


def test_without_a_header_the_first_box_of_a_row_is_its_heading():
    assert html_table([("a", 1)]) == "<table><tr><th>a</th><td>1</td></tr></table>"
