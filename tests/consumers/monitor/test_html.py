"""Escaping, charts and drawings, without a server or a database."""

from html.parser import HTMLParser

import pytest
from hypothesis import given
from hypothesis import strategies as st

from consumers.monitor.chart import Series, chart
from consumers.monitor.html import Html, render, tag
from consumers.monitor.layout import number


class Reader(HTMLParser):
    """Collects what a browser would see."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.text += data


def read(markup: str) -> Reader:
    reader = Reader()
    reader.feed(markup)
    reader.close()
    return reader


# HTML cannot say NUL, and its parser joins line ends: neither lets anything out of its element.
texts = st.text(st.characters(exclude_characters="\0\r", exclude_categories=["Cs"]))


@given(texts, texts)
def test_any_text_comes_out_as_text_and_any_attribute_as_an_attribute(
    text: str, attribute: str
) -> None:
    reader = read(render(tag("p", text, title=attribute)))
    assert reader.tags == [("p", {"title": attribute})]
    assert reader.text == text


def test_markup_goes_through_once_and_strings_never() -> None:
    assert (
        render(tag("p", tag("b", "<i>"), "<script>", None, 3))
        == "<p><b>&lt;i&gt;</b>&lt;script&gt;3</p>"
    )


def test_void_elements_have_no_end_and_none_is_no_attribute() -> None:
    assert render(tag("img", src="/a", alt=None)) == '<img src="/a">'


def test_attribute_names_are_written_as_html_has_them() -> None:
    assert (
        render(tag("p", class_="x", http_equiv="y", viewBox="z"))
        == '<p class="x" http-equiv="y" viewBox="z"></p>'
    )


def circles(drawing: Html | None) -> list[tuple[str | None, str | None]]:
    assert drawing is not None
    return [
        (attributes["cx"], attributes["cy"])
        for name, attributes in read(drawing.markup).tags
        if name == "circle"
    ]


def test_points_lie_where_their_values_say() -> None:
    # 420 wide with 54 left and 10 right; 150 high with 10 above and 22 below: (54, 128) is the
    # origin, (410, 10) the far corner.
    drawing = chart("t", Series("s", [(0, 0.0), (5, 0.5), (10, 1.0)]), low=0, high=1)
    assert circles(drawing) == [("54.0", "128.0"), ("232.0", "69.0"), ("410.0", "10.0")]


def test_what_is_not_a_number_is_not_drawn() -> None:
    drawing = chart(
        "t", Series("s", [(0, float("nan")), (1, 0.0), (2, float("inf")), (3, 1.0)]), low=0, high=1
    )
    assert circles(drawing) == [("54.0", "128.0"), ("410.0", "10.0")]
    assert chart("t", Series("s", [(0, float("nan"))])) is None


def test_one_point_and_equal_points_are_drawn() -> None:
    assert circles(chart("t", Series("s", [(3, 2.0)]))) == [("54.0", "69.0")]
    assert len(circles(chart("t", Series("s", [(1, 2.0), (2, 2.0)])))) == 2


@pytest.mark.parametrize(
    ("value", "written"),
    [(None, "—"), (7, "7"), (12345, "12,345"), (0.123456, "0.123"), (290.4128, "290"),
     (2904.1, "2,904"), (-1234567.0, "-1,234,567"), (1.5e12, "1.5e+12"), (0.00183, "0.00183")],
)  # fmt: skip
def test_numbers_are_rounded_to_three_digits_and_written_out_up_to_a_billion(
    value: float | None, written: str
) -> None:
    assert number(value) == written
