"""A duration as an option takes it: `30s`, `5m`, `1h30m`, `500ms`, or plain seconds."""

import re
from datetime import timedelta
from typing import Any

import rich_click as click

SECONDS = re.compile(r"[0-9]{1,12}(\.[0-9]{1,6})?")
LONGEST = 40
"""Characters; more digits than any duration needs."""


class Duration(click.ParamType[timedelta]):
    """A time span, 0 included."""

    name = "duration"

    def convert(
        self,
        value: Any,  # click's signature
        param: click.Parameter | None,
        ctx: click.Context | None,
    ) -> timedelta:
        """The span; fails as a usage error for anything else."""
        if isinstance(value, timedelta):
            return value
        found = parse(str(value))
        if found is None:
            self.fail(
                f"{value!r} is not a duration; give 30s, 5m, 1h30m, 500ms or seconds", param, ctx
            )
        return found


def parse(text: str) -> timedelta | None:
    """The span; None if the text is not one."""
    from consumers.tail.offsets import parse_duration

    if len(text) > LONGEST or not text.isascii():
        return None
    return timedelta(seconds=float(text)) if SECONDS.fullmatch(text) else parse_duration(text)
