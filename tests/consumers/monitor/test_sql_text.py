"""SQL is coloured token by token, and whatever it says stays text."""

import html
import re
import time
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from consumers.monitor.html import render
from consumers.monitor.plain_text import LONGEST
from consumers.monitor.sql_text import sql_block
from tests.consumers.monitor.conftest import HOSTILE


def shown(markup: str) -> str:
    """What a reader sees of it."""
    return html.unescape(re.sub(r"<[^>]*>", "", markup))


def test_keywords_strings_names_numbers_and_comments_have_their_classes() -> None:
    markup = render(sql_block("select `a`, \"b\" FROM t WHERE x='it''s' AND y<>2.5e3 -- why\n"))
    assert markup == (
        '<pre class="sql"><b>select</b> <span class="name">`a`</span>,'
        ' <span class="name">&quot;b&quot;</span> <b>FROM</b> t <b>WHERE</b> x='
        '<span class="string">&#x27;it&#x27;&#x27;s&#x27;</span> <b>AND</b> y&lt;&gt;'
        '<span class="number">2.5e3</span> <span class="comment">-- why</span>\n</pre>'
    )


def test_comments_of_every_kind_hide_no_keyword_and_columns_with_digits_are_no_numbers() -> None:
    markup = render(sql_block("/* SELECT\n */ # FROM\nt1.c2"))
    assert markup == (
        '<pre class="sql"><span class="comment">/* SELECT\n */</span>'
        ' <span class="comment"># FROM</span>\nt1.c2</pre>'
    )


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200) | st.just(HOSTILE))
def test_every_text_is_shown_whole_and_makes_no_markup_of_its_own(text: str) -> None:
    markup = render(sql_block(text))
    tags = set(re.findall(r"<(/?\w+)", markup))
    assert tags <= {"pre", "/pre", "span", "/span", "b", "/b"}
    unseen = {"Cc", "Cf", "Co", "Cn"}
    assert shown(markup) == "".join(
        f"U+{ord(item):04X}"
        if unicodedata.category(item) in unseen and item not in "\n\t"
        else item
        for item in text
    )


def test_text_that_turns_the_line_around_is_named_instead() -> None:
    assert "U+202E" in shown(render(sql_block("SELECT '\u202etxt'")))
    assert "\u202e" not in render(sql_block("SELECT '\u202etxt'"))


def test_ten_megabytes_of_sql_are_cut_and_cost_no_time() -> None:
    for text in ("'" * 10_000_000, "/*" * 5_000_000, "SELECT 1 " * 1_100_000, "-" * 10_000_000):
        began = time.process_time()
        markup = render(sql_block(text))
        assert time.process_time() - began < 1
        assert f"… {len(text) - LONGEST:,} characters more" in markup
        assert len(markup) < 20 * LONGEST
