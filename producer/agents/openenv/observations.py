"""Converts a server's observations to ours: pictures in three encodings, and text."""

import base64
import binascii
import io
import json
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, Final

from PIL import Image, UnidentifiedImageError

from producer.bounded_text import cut
from producer.environments.environment import EnvironmentFailedError

PICTURES: Final = ("screenshot", "image")
"""Fields that may hold a picture; the first one present is used."""
GOAL: Final = "goal"
SAID_ONCE: Final = frozenset({GOAL, "prompt"})
"""Fields with the task's instruction, which servers repeat in every observation."""
WORDS: Final = (GOAL, "prompt", "question", "text", "message", "messages", "error")
"""Fields with text, in the order shown. `messages` is a list of objects with `content`."""
NOT_SHOWN: Final = frozenset({"metadata", "done", "reward", "width", "height", *PICTURES})


def picture_of(observation: Mapping[str, Any]) -> tuple[bytes, int, int] | None:
    """The observation's picture as (PNG in RGB, width px, height px); None if it has none.

    Raises EnvironmentFailedError.
    """
    shown = next((observation[name] for name in PICTURES if observation.get(name)), None)
    if shown is None:
        return None
    try:
        if isinstance(shown, str):
            return _as_png(base64.b64decode(shown.rpartition(",")[2], validate=True))
        return _of_numbers(shown)
    except (ValueError, TypeError, binascii.Error, UnidentifiedImageError, OSError) as error:
        message = f"the server's screenshot cannot be read: {error}"
        raise EnvironmentFailedError(cut(message)) from None


def words_of(
    observation: Mapping[str, Any], fields: Sequence[str] = WORDS, *, is_first: bool = True
) -> str | None:
    """The text of these fields or, without any known text field, the observation as JSON.

    The instruction is left out unless the observation `is_first`, because it has been shown before.
    """
    words: list[str] = []
    for name in fields:
        text = _text(observation.get(name))
        is_said = name in SAID_ONCE and not is_first
        if text and not is_said and not any(text in earlier for earlier in words):
            words.append(text)
    if words:
        return "\n\n".join(words)
    others = {
        name: value
        for name, value in observation.items()
        if name not in NOT_SHOWN and value is not None
    }
    if others.keys() & {*WORDS}:
        return None
    return json.dumps(others, ensure_ascii=False) if others else None


def _text(value: object) -> str:
    """The text of a field; empty if it holds none."""
    if isinstance(value, str):
        return value
    if isinstance(value, list):
        contents = [item.get("content") for item in value if isinstance(item, dict)]
        return "\n".join(content for content in contents if isinstance(content, str))
    return ""


def _as_png(data: bytes) -> tuple[bytes, int, int]:
    with Image.open(io.BytesIO(data)) as image:
        if (image.format, image.mode) == ("PNG", "RGB"):
            image.load()
            return data, *image.size
        return _png(image.convert("RGB"))


def _of_numbers(rows: list[list[list[int]]]) -> tuple[bytes, int, int]:
    """Encode rows of (red, green, blue), 0 to 255. A fourth number is ignored."""
    height, width = len(rows), len(rows[0])
    points = bytes(chain.from_iterable(point[:3] for row in rows for point in row))
    return _png(Image.frombytes("RGB", (width, height), points))


def _png(image: Image.Image) -> tuple[bytes, int, int]:
    buffer = io.BytesIO()
    image.save(buffer, "PNG")
    return buffer.getvalue(), *image.size
