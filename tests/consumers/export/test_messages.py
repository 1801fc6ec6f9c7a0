"""Episodes as items of the OpenAI Responses API and back, without loss."""

import json
import os
from base64 import b64encode
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from consumers.cli import cli
from consumers.errors import UsageError
from consumers.export.messages import Exchange, from_items, to_items
from consumers.home import open_installation
from producer.emit import Emitter
from tests.consumers.export.test_export import emit_example, png

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
EXCHANGES = st.lists(
    st.builds(Exchange, text=st.none() | TEXT, image_url=TEXT, response=TEXT), max_size=5
)


@given(exchanges=EXCHANGES)
def test_what_is_written_is_read_back(exchanges: list[Exchange]) -> None:
    items = to_items(exchanges)
    assert from_items(items) == exchanges
    assert to_items(from_items(items)) == items
    assert from_items(json.loads(json.dumps(items))) == exchanges


def test_items_are_those_of_the_api() -> None:
    shown = Exchange("Open it.", "blob:sha256:1", "click(1,2)")
    assert to_items([shown, Exchange(None, "data:image/png;base64,AA==", None)]) == [
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "Open it."},
                {"type": "input_image", "image_url": "blob:sha256:1", "detail": "auto"},
            ],
        },
        {
            "type": "message",
            "role": "assistant",
            "content": [{"type": "output_text", "text": "click(1,2)", "annotations": []}],
        },
        {
            "type": "message",
            "role": "user",
            "content": [
                {
                    "type": "input_image",
                    "image_url": "data:image/png;base64,AA==",
                    "detail": "auto",
                }
            ],
        },
    ]


def test_a_conversation_with_calls_is_read_as_what_was_shown_and_answered() -> None:
    call = {"type": "computer_call", "call_id": "1", "action": {"type": "screenshot"}}
    shot = {"type": "computer_screenshot", "image_url": "u"}
    items: list[dict[str, Any]] = [
        {"role": "developer", "content": "Be quick."},
        {"role": "user", "content": [{"type": "input_text", "text": "Open it."}]},
        {"type": "reasoning", "summary": []},
        call,
        {"type": "computer_call_output", "call_id": "1", "output": shot},
        {"role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
    ]
    first, second = from_items(items)
    assert (first.text, first.image_url) == ("Be quick.\nOpen it.", None)
    assert json.loads(str(first.response)) == call
    assert second == Exchange(None, "u", "Done.")


@pytest.mark.parametrize(
    "item",
    [
        {"type": "file_search_call"},
        {"role": "user", "content": [{"type": "input_file"}]},
        {"role": "user", "content": [{"type": "input_image", "file_id": "f"}]},
        {"role": "user", "content": 3},
        {"type": "computer_call_output"},
    ],
)
def test_what_cannot_be_read_is_named(item: dict[str, Any]) -> None:
    with pytest.raises(UsageError, match="item 1 has "):
        from_items([{"role": "user", "content": "hello"}, item])


@pytest.mark.parametrize("with_images", [True, False])
def test_the_export_has_a_line_per_rollout(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, with_images: bool
) -> None:
    monkeypatch.setenv("CUA_HOME", str(tmp_path / "home"))
    with Emitter.open(open_installation(os.environ)) as emitter:
        shots = emit_example(emitter)
    folder = tmp_path / "out"
    flag = "--images" if with_images else "--no-images"
    done = CliRunner().invoke(
        cli, ["export", str(folder), "--format", "openai", flag, "--json"], catch_exceptions=False
    )
    report = json.loads(done.stdout)
    assert (report["rollouts"], report["turns"]) == (2, 3)
    lines = [json.loads(line) for line in (folder / "conversations.jsonl").read_text().splitlines()]
    finished = next(line for line in lines if line["status"] == "completed")
    assert (finished["reward"], finished["instruction"]) == (0.75, "Open it.")
    exchanges = from_items(finished["items"])
    urls = [f"data:image/png;base64,{b64encode(png(item)).decode()}" for item in (1, 2, 3)]
    assert [exchange.image_url for exchange in exchanges] == (urls if with_images else shots)
    assert all(exchange.response for exchange in exchanges)
    assert next(line for line in lines if line["status"] == "failed")["items"] == []
