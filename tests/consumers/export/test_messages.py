"""Episodes as items of the OpenAI Responses API."""

import json
import os
from base64 import b64encode
from pathlib import Path

import pytest
from click.testing import CliRunner

from consumers.cli import cli
from consumers.export.messages import Exchange, to_items
from consumers.home import open_installation
from producer.emit import Emitter
from tests.consumers.export.test_export import emit_example, png


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
    urls = [f"data:image/png;base64,{b64encode(png(item)).decode()}" for item in (1, 2, 3)]
    shown, answers = finished["items"][::2], finished["items"][1::2]
    images = [item["content"][-1]["image_url"] for item in shown]
    assert images == (urls if with_images else shots)
    assert all(item["content"][0]["text"] for item in answers)
    assert next(line for line in lines if line["status"] == "failed")["items"] == []
