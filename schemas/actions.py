"""What an agent can do to a device, in the field's standard names (OpenAI computer use, plus what phones need).

Coordinates are pixels of the device's screen, from the top left corner. Codecs of each policy family map to and from these.
"""

from typing import Annotated, Literal

from pydantic import Field

from schemas.base import Value

Pixel = Annotated[int, Field(ge=0)]


class Click(Value):
    """Tap at (x, y)."""

    type: Literal["click"] = "click"
    x: Pixel
    y: Pixel
    button: Literal["left", "right", "wheel", "back", "forward"] = "left"


class DoubleClick(Value):
    """Tap twice at (x, y)."""

    type: Literal["double_click"] = "double_click"
    x: Pixel
    y: Pixel


class LongPress(Value):
    """Hold at (x, y)."""

    type: Literal["long_press"] = "long_press"
    x: Pixel
    y: Pixel
    duration_s: Annotated[float, Field(gt=0, le=60)] = 1.0


class Drag(Value):
    """Press at the first point of the path, move along it, release at the last."""

    type: Literal["drag"] = "drag"
    path: Annotated[tuple[tuple[Pixel, Pixel], ...], Field(min_length=2)]


class Swipe(Value):
    """A quick straight movement of a finger."""

    type: Literal["swipe"] = "swipe"
    x: Pixel
    y: Pixel
    to_x: Pixel
    to_y: Pixel


class Scroll(Value):
    """Scroll the content at (x, y); positive scroll_y shows what is further down."""

    type: Literal["scroll"] = "scroll"
    x: Pixel
    y: Pixel
    scroll_x: int = 0
    scroll_y: int = 0


class Move(Value):
    """Move the pointer (desktops)."""

    type: Literal["move"] = "move"
    x: Pixel
    y: Pixel


class KeyPress(Value):
    """Press keys together."""

    type: Literal["keypress"] = "keypress"
    keys: Annotated[tuple[str, ...], Field(min_length=1)]


class Type(Value):
    """Type text into what has the focus."""

    type: Literal["type"] = "type"
    text: str


class SystemButton(Value):
    """The phone's own buttons."""

    type: Literal["system_button"] = "system_button"
    button: Literal["home", "back", "recents", "power", "volume_up", "volume_down"]


class OpenApp(Value):
    """Start an app by package name, as an intent would (not in every preset's action space)."""

    type: Literal["open_app"] = "open_app"
    package: str


class Wait(Value):
    """Do nothing for a while."""

    type: Literal["wait"] = "wait"
    duration_s: Annotated[float, Field(ge=0, le=60)] = 1.0


class Screenshot(Value):
    """Only look."""

    type: Literal["screenshot"] = "screenshot"


class Answer(Value):
    """Say something to the user; ends nothing."""

    type: Literal["answer"] = "answer"
    text: str


class Terminate(Value):
    """The agent says that it is done: reported success or failure. Validation has the last word."""

    type: Literal["terminate"] = "terminate"
    status: Literal["success", "failure"] = "success"


Action = Annotated[
    Click
    | DoubleClick
    | LongPress
    | Drag
    | Swipe
    | Scroll
    | Move
    | KeyPress
    | Type
    | SystemButton
    | OpenApp
    | Wait
    | Screenshot
    | Answer
    | Terminate,
    Field(discriminator="type"),
]
