"""Functions of the CUA recipe under their original names.

    from producer.cua_recipe import convert_openai_responses_to_message, load_demo_training_tasks

The recipe's own modules, `vision_utils` and `task_loader` of `tinker_cookbook.recipes.cua_rl`, need
tinker; these do not.
"""

import base64
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NotRequired, TypedDict

from pydantic import JsonValue

from producer.task import Task
from producer.tasks.sources import load_tasks

if TYPE_CHECKING:
    from PIL import Image


class Part(TypedDict):
    """A part of a message: `text` of type text, `image` (a data URI) of type image."""

    type: Literal["text", "image"]
    text: NotRequired[str]
    image: NotRequired[str]


class Message(TypedDict):
    """A message for tinker-cookbook's renderers."""

    role: str
    content: str | list[Part]


def convert_openai_responses_to_message(openai_message: Mapping[str, Any]) -> Message:
    """Convert a message of the Responses or Chat Completions API to tinker-cookbook's.

    A single text becomes the content itself. ValueError for parts other than text and images.
    """
    content = openai_message.get("content", [])
    given = [{"type": "text", "text": content}] if isinstance(content, str) else content
    parts = [_part(item) for item in given]
    role = str(openai_message.get("role", "user"))
    if not parts:
        return Message(role=role, content="")
    if len(parts) == 1 and "text" in parts[0]:
        return Message(role=role, content=parts[0]["text"])
    return Message(role=role, content=parts)


def _part(given: Mapping[str, Any]) -> Part:
    match given:
        case {"type": "text" | "input_text", "text": str() as text}:
            return Part(type="text", text=text)
        case {"type": "image_url", "image_url": {"url": str() as url}}:
            return Part(type="image", image=url)
        case {"type": "image_url" | "input_image", "image_url": str() as url}:
            return Part(type="image", image=url)
        case _:
            pass
    message = f"a message part of type {given.get('type')!r} is neither a text nor an image"
    raise ValueError(message)


def load_image_from_data_uri(data_uri: str) -> "Image.Image":
    """Decode a `data:image/...;base64,` URI. ValueError for another URI."""
    from PIL import Image

    if not data_uri.startswith("data:"):
        message = f"expected a data URI, found {data_uri[:50]!r}"
        raise ValueError(message)
    return Image.open(io.BytesIO(base64.b64decode(data_uri.partition(",")[2])))


def load_demo_training_tasks(**filters: JsonValue) -> list[Task]:
    """The demo's training tasks; `category`, `difficulty`, `limit` and `seed` choose among them."""
    return load_tasks({"source_type": "demo_training", **filters})


def load_demo_eval_tasks(**filters: JsonValue) -> list[Task]:
    """The demo's evaluation tasks; filters as for the training tasks."""
    return load_tasks({"source_type": "demo_eval", **filters})


def load_tasks_by_ids(task_ids: Sequence[str]) -> list[Task]:
    """Demo tasks by id. UsageError for one that does not exist."""
    return load_tasks({"source_type": "ids", "task_ids": list(task_ids)})


def load_tasks_from_file(file_path: str | Path) -> list[Task]:
    """Tasks of a file: one instruction a line in .txt, objects in .json and .jsonl."""
    return load_tasks({"source_type": "file", "file_path": str(file_path)})
