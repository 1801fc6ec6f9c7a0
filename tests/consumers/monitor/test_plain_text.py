"""What agents and data sets wrote is bounded on a page, and nothing of it is out of sight."""

import html
import re
import time
import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from consumers.monitor import layout
from consumers.monitor.chart import Series, chart
from consumers.monitor.entry import entry_section
from consumers.monitor.html import Node, render
from consumers.monitor.plain_text import LONGEST, LONGEST_NAME, excerpt, name
from consumers.monitor.turn import turn_section
from consumers.tables import Action, Entry, Obs, Turn
from tests.consumers.monitor.conftest import HOSTILE
from tests.support.sample_rows import at, named

TURNED = "\u202egold\u2066"
FAMILY = "👩\u200d💻"
BAD = f"{HOSTILE}{TURNED}\x1b[31m"


def read(node: Node) -> str:
    """What a reader sees."""
    return html.unescape(re.sub(r"<[^>]*>", "", render(node)))


def test_what_turns_text_around_is_named_and_joined_emoji_stay() -> None:
    assert read(excerpt(f"a{TURNED}b\n\x00c")) == "aU+202EgoldU+2066b\nU+0000c"
    assert read(excerpt(FAMILY)) == FAMILY


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=200))
def test_every_other_character_stays_in_its_place(text: str) -> None:
    kept = "\n\t\u200c\u200d"
    hidden = {"Cc", "Cf", "Co", "Cn"}
    assert read(excerpt(text)) == "".join(
        f"U+{ord(item):04X}" if item not in kept and unicodedata.category(item) in hidden else item
        for item in text
    )


def test_long_text_is_cut_and_says_how_much_is_left_out() -> None:
    assert read(name("x" * (LONGEST_NAME + 3))) == "x" * LONGEST_NAME + " … 3 characters more"
    assert read(excerpt("x" * LONGEST)) == "x" * LONGEST
    for text in ("x" * 10_000_000, TURNED * 1_000_000):
        began = time.process_time()
        markup = render(excerpt(text))
        assert time.process_time() - began < 1
        assert f"… {len(text) - LONGEST:,} characters more" in markup


def entry(**columns: object) -> Entry:
    return Entry(
        **{
            "entry_id": BAD,
            "skills": [BAD],
            "evidence": BAD,
            "database": None,
            "difficulty": None,
            "sql": BAD,
            "answer_direct_json": [[BAD, None]],
            "answer_md5": None,
            "table_name": BAD,
            "columns_json": [{"name": BAD, "type": "TEXT"}],
            "rows_json": [[BAD], ["y" * 100_000]],
        }
        | columns
    )


def turn() -> Turn:
    said = Obs(obs_type="text", text_content=BAD)
    acted = Action(
        action_type="answer",
        tool_name="Answer",
        action_json={"type": "answer", "text": BAD},
        error_type="runtime",
        error_message=BAD + "z" * 100_000,
    )
    return Turn(
        id=named("turn"),
        turn=1,
        turn_time=0.1,
        model_response=BAD + "w" * 100_000,
        policy_version=0,
        num_tokens=None,
        stop_reason=None,
        metrics_json=None,
        start_time=at(0),
        actions=[acted],
        observations=[said],
    )


def test_no_place_of_an_sql_agents_page_turns_text_around_or_grows_without_end() -> None:
    series = Series("success", [(0.0, 0.5)])
    page = layout.page(BAD, trail=[(BAD, "/training/1")]).text()
    markups = {
        "entry": render(entry_section(entry())),
        "turn": render(turn_section(turn(), None)),  # type: ignore[arg-type]  # it has no screen
        "chart": render(chart(BAD, series)),
        "link": render(layout.link(BAD, "training", named("one"))),
        # <title> is no place of the page.
        "page": page[page.index("<body>") :],
    }
    for place, markup in markups.items():
        shown = re.sub(r'aria-label="[^"]*"', "", markup)
        assert "U+202E" in shown, place
        assert not {"\u202e", "\u2066", "\x1b"} & set(shown), place
        assert "<script" not in markup, place
        assert "<img" not in markup, place
        assert len(markup) < 10 * LONGEST, place
