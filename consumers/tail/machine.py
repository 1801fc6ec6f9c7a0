"""Records for scripts: JSON lines, and format strings in rpk's manner."""

import base64
import json
import re
from collections.abc import Callable

import pydantic_core

from consumers.errors import UsageError
from consumers.tail.selection import Seen

ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\"}
PART = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|([^%\\]+)|([%\\])", re.DOTALL)
OURS = ("topic", "partition", "offset")

Formatter = Callable[[Seen, int], bytes]
"""(record, how many were shown before) -> bytes."""


def json_line(seen: Seen, num_before: int = 0) -> bytes:  # noqa: ARG001  # a Formatter
    """The envelope as it was written, with topic, partition and offset added.

    Arrays stay base64.
    """
    record = seen.record
    if seen.envelope is None:
        lost = {
            "unreadable": seen.problem,
            "key": record.key,
            "value_base64": base64.b64encode(record.value).decode(),
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
        }
        return json.dumps(lost).encode() + b"\n"
    place = f'"topic":{json.dumps(record.topic)},"partition":{record.partition},"offset":{record.offset}}}\n'.encode()
    value = record.value
    if (
        value.startswith(b'{"specversion":')
        and value.endswith(b"}}")
        and b"\n" not in value
        and b"\r" not in value
    ):
        # As our emitter writes it: nothing is parsed and written again, so that nothing can change.
        return value[:-1] + b"," + place
    found = {
        name: part for name, part in pydantic_core.from_json(value).items() if name not in OURS
    }
    return (
        json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")[
            :-1
        ]
        + b","
        + place
    )


def parse_format(text: str) -> Formatter:
    r"""A format string: %t topic, %p partition, %o offset, %k key, %v value, %T type, %s subject, %d append time, %e epoch, %q sequence,
    %i number, %%; \n \t \r \\ \xNN. UsageError. Nothing is added: a line's end is a \n of its own.
    """  # noqa: D205  # a table
    parts: list[bytes | str] = []
    for percent, code, escaped, literal, lone in PART.findall(text):
        if percent == "%":
            parts.append(b"%")
        elif percent in FIELDS and percent:
            parts.append(percent)
        elif code:
            parts.append(bytes.fromhex(code))
        elif escaped in ESCAPES and escaped:
            parts.append(ESCAPES[escaped])
        elif literal:
            parts.append(literal.encode())
        else:
            wrong = f"%{percent}" if percent else f"\\{escaped}" if escaped else lone
            message = (
                f"--format {text!r}: {wrong} means nothing; known are %{' %'.join(FIELDS)} %% \\n"
                " \\t \\r \\\\ \\xNN"
            )
            raise UsageError(message)
    return lambda seen, num_before: b"".join(
        part if isinstance(part, bytes) else FIELDS[part](seen, num_before) for part in parts
    )


FIELDS: dict[str, Formatter] = {
    "t": lambda seen, _: seen.record.topic.encode(),
    "p": lambda seen, _: str(seen.record.partition).encode(),
    "o": lambda seen, _: str(seen.record.offset).encode(),
    "k": lambda seen, _: (seen.record.key or "").encode(),
    "v": lambda seen, _: seen.record.value,
    "T": lambda seen, _: seen.envelope.type.encode() if seen.envelope else b"",
    "s": lambda seen, _: seen.envelope.subject.encode() if seen.envelope else b"",
    "d": lambda seen, _: seen.record.appended_at.isoformat().encode(),
    "e": lambda seen, _: str(seen.envelope.epoch).encode() if seen.envelope else b"",
    "q": lambda seen, _: str(seen.envelope.sequence).encode() if seen.envelope else b"",
    "i": lambda _, num_before: str(num_before + 1).encode(),
}
