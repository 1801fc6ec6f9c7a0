"""The compact codec, the format of the small demo policy: one short call per turn.

    click(31,52)  click(chrome 31,chrome 52)  double_click(31,52)  long_press(31,52)
    swipe(up)  swipe(50,1,50,60)  type(word)  button(home)  press(enter)
    open(com.android.chrome)  wait()  screenshot()  answer(word)  terminate(success)

Coordinates are whole hundredths of the screen (0-99); a hundredth means its middle pixel. A
coordinate may follow the name of the element: the policy emits the name and looks its position up,
and only the numbers are parsed. `swipe(up)` moves the finger up the middle of the screen.
"""

import re
from collections.abc import Callable

from pydantic import ValidationError

from producer.codecs.codec import Codec, cannot_encode, parse_error
from producer.codecs.json_calls import Fields
from producer.thoughts import COMPACT_LITERAL
from schemas import actions
from schemas.actions import Action
from schemas.turn import TakenAction

COMPACT_MARK = "cua_policy.json"
"""Marker file in the folder of a policy that uses this codec."""
NUM_STEPS = 100
SWIPES: dict[str, tuple[int, int, int, int]] = {
    "up": (50, 70, 50, 30),
    "down": (50, 30, 50, 70),
    "left": (80, 50, 20, 50),
    "right": (20, 50, 80, 50),
}
"""Maps the direction of the finger to (start, end), in hundredths of the screen."""
NAMED_NUMBER = re.compile(r"[^\W\d_](?:[^\W\d_]|[ -])*?\s*([0-9]{1,2})")
"""Matches a name of letters, spaces and hyphens followed by a coordinate. The space between them is
optional, because some tokenizers drop it."""
CALL = re.compile(r"\s*([A-Za-z_]+)\((.*)\)\s*", re.DOTALL)


class _BadArgumentError(ValueError):
    """The arguments of a known tool are wrong."""


class CompactCodec(Codec):
    """The compact codec; the format is described in the module."""

    name = "compact"
    literals = COMPACT_LITERAL

    def encode(self, action: Action, width_px: int, height_px: int) -> str:  # one per action
        """Write the action as one call.

        Raises CannotEncodeError for drags, scrolls, pointer moves, mouse buttons and key
        combinations.
        """

        def point(x: int, y: int) -> tuple[int, int]:
            return _hundredth(x, width_px), _hundredth(y, height_px)

        match action:
            case actions.Click(button="left") | actions.DoubleClick() | actions.LongPress():
                inside = ",".join(map(str, point(action.x, action.y)))
            case actions.Swipe():
                path = (*point(action.x, action.y), *point(action.to_x, action.to_y))
                named = next((name for name, known in SWIPES.items() if known == path), None)
                inside = named or ",".join(map(str, path))
            case actions.Wait() | actions.Screenshot():
                inside = ""
            case actions.Type() | actions.Answer():
                inside = action.text
            case actions.Terminate():
                inside = action.status
            case actions.KeyPress(keys=(key,)):
                return f"press({key})"
            case actions.SystemButton():
                return f"button({action.button})"
            case actions.OpenApp():
                return f"open({action.package})"
            case _:
                return cannot_encode("compact", action)
        return self.readable(f"{action.type}({inside})", action)

    def parse_answer(self, answer: str, width_px: int, height_px: int) -> tuple[TakenAction, ...]:
        """Parse the text as one call."""
        return (_parse(answer, width_px, height_px),)


def _parse(answer: str, width_px: int, height_px: int) -> TakenAction:
    found = CALL.fullmatch(answer)
    if found is None:
        return parse_error("parse", f"not a call such as click(31,52): {answer.strip()[:80]!r}")
    tool, inside = found.groups()
    arguments: Fields = {"text": inside}
    read = TOOLS.get(tool)
    if read is None:
        message = f"unknown tool {tool}; use one of {', '.join(TOOLS)}"
        return parse_error("tool_name", message, tool, arguments)
    try:
        action = read(inside, width_px, height_px)
    except (_BadArgumentError, ValidationError) as error:
        return parse_error("tool_arg", f"{tool}: {_first_line(error)}", tool, arguments)
    return TakenAction(tool_name=tool, tool_args=arguments, action=action)


def _first_line(error: Exception) -> str:
    if isinstance(error, ValidationError):
        first = error.errors()[0]
        return f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
    return str(error)


def _hundredth(pixel: int, size_px: int) -> int:
    return min(NUM_STEPS - 1, max(0, pixel * NUM_STEPS // size_px))


def _pixel(share: int, size_px: int) -> int:
    return (2 * share + 1) * size_px // (2 * NUM_STEPS)


def _numbers(inside: str, count: int) -> list[int]:
    parts = [part.strip() for part in inside.split(",")]
    if len(parts) != count or not all(re.fullmatch("[0-9]{1,2}", part) for part in parts):
        message = f"needs {count} whole numbers from 0 to 99, not {inside[:80]!r}"
        raise _BadArgumentError(message)
    return [int(part) for part in parts]


def _point(inside: str, width_px: int, height_px: int) -> dict[str, int]:
    parts = [part.strip() for part in inside.split(",")]
    x, y = _numbers(
        ",".join(named[1] if (named := NAMED_NUMBER.fullmatch(part)) else part for part in parts), 2
    )
    return {"x": _pixel(x, width_px), "y": _pixel(y, height_px)}


def _swipe(inside: str, width_px: int, height_px: int) -> Action:
    x, y, to_x, to_y = SWIPES[inside] if inside in SWIPES else _numbers(inside, 4)
    return actions.Swipe(
        x=_pixel(x, width_px),
        y=_pixel(y, height_px),
        to_x=_pixel(to_x, width_px),
        to_y=_pixel(to_y, height_px),
    )


def _without_arguments(inside: str, action: Action) -> Action:
    if inside.strip():
        message = f"takes no arguments, not {inside[:80]!r}"
        raise _BadArgumentError(message)
    return action


TOOLS: dict[str, Callable[[str, int, int], Action]] = {
    "click": lambda inside, width, height: actions.Click(**_point(inside, width, height)),
    "double_click": lambda inside, width, height: actions.DoubleClick(
        **_point(inside, width, height)
    ),
    "long_press": lambda inside, width, height: actions.LongPress(**_point(inside, width, height)),
    "swipe": _swipe,
    "type": lambda inside, _width, _height: actions.Type(text=inside),
    "button": lambda inside, _width, _height: actions.SystemButton.model_validate(
        {"button": inside}
    ),
    "press": lambda inside, _width, _height: actions.KeyPress(keys=(inside,)),
    "open": lambda inside, _width, _height: actions.OpenApp(package=inside),
    "wait": lambda inside, _width, _height: _without_arguments(inside, actions.Wait()),
    "screenshot": lambda inside, _width, _height: _without_arguments(inside, actions.Screenshot()),
    "answer": lambda inside, _width, _height: actions.Answer(text=inside),
    "terminate": lambda inside, _width, _height: actions.Terminate.model_validate(
        {"status": inside}
    ),
}
