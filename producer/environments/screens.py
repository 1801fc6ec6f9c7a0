"""Screenshots of real devices: waits until they have settled, and converts them to RGB files."""

import io
from collections.abc import Callable
from time import monotonic, sleep

from PIL import Image, UnidentifiedImageError

from producer.environments.environment import EnvironmentFailedError, Screenshot

SETTLE_S = 3.0
"""A screen that still changes after this time (a video, a progress bar) is taken as it is."""


def settled(take: Callable[[], bytes], limit_s: float = SETTLE_S, between_s: float = 0.0) -> bytes:
    """Take screenshots until two in a row are equal, or for `limit_s`, and return the last one.

    `between_s` is the pause between two screenshots.
    """
    until_s = monotonic() + limit_s
    before, shown = b"", take()
    while shown != before and monotonic() < until_s:
        sleep(between_s)
        before, shown = shown, take()
    return shown


def as_screenshot(picture: bytes, device: str) -> Screenshot:
    """Convert a device's picture to an RGB file. Raises EnvironmentFailedError if it is no picture.

    `device` is named in the message.
    """
    try:
        image = Image.open(io.BytesIO(picture))
        if image.format != "PNG" or image.mode != "RGB":
            buffer = io.BytesIO()
            image.convert("RGB").save(buffer, "PNG")
            picture = buffer.getvalue()
        else:
            image.verify()
    except (UnidentifiedImageError, OSError, SyntaxError, ValueError) as error:
        message = f"{device} sent no picture of its screen: {error}"
        raise EnvironmentFailedError(message) from error
    return Screenshot(picture, *image.size)
