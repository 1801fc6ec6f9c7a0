"""Records for scripts: JSON lines, and format strings as in rpk."""

import base64
import json
import re
from collections.abc import Callable

import pydantic_core

from consumers.errors import UsageError
from consumers.tail.event_filter import DecodedRecord

ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\"}
PART = re.compile(r"%(.)|\\x([0-9a-fA-F]{2})|\\(.)|([^%\\]+)|([%\\])", re.DOTALL)
OURS = ("topic", "partition", "offset")

Formatter = Callable[[DecodedRecord, int], bytes]
"""(record, number of records printed before it) -> bytes."""


def json_line(decoded: DecodedRecord, num_before: int = 0) -> bytes:  # noqa: ARG001  # a Formatter
    """The envelope as written, with topic, partition and offset added; arrays stay base64."""
    record = decoded.record
    if decoded.envelope is None:
        unreadable = {
            "unreadable": decoded.problem,
            "key": record.key,
            "value_base64": base64.b64encode(record.value).decode(),
            "topic": record.topic,
            "partition": record.partition,
            "offset": record.offset,
        }
        return json.dumps(unreadable).encode() + b"\n"
    tp = (
        f'"topic":{json.dumps(record.topic)},"partition":{record.partition},'
        f'"offset":{record.offset}}}\n'
    ).encode()
    value = record.value
    if (
        value.startswith(b'{"specversion":')
        and value.endswith(b"}}")
        and b"\n" not in value
        and b"\r" not in value
    ):
        # As our emitter writes it. Not parsed and serialised again, so nothing can change.
        return value[:-1] + b"," + tp
    found = {
        name: part for name, part in pydantic_core.from_json(value).items() if name not in OURS
    }
    return (
        json.dumps(found, ensure_ascii=False, separators=(",", ":")).encode(errors="surrogatepass")[
            :-1
        ]
        + b","
        + tp
    )


def parse_format(text: str) -> Formatter:
    r"""Compile a format string. No newline is added: write one as \n. UsageError.

    %t topic, %p partition, %o offset, %k key, %v value, %T type, %s subject, %d append time,
    %e epoch, %q sequence, %i number, %% percent; \n \t \r \\ \xNN.
    """
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
                f"unknown {wrong} in --format {text!r}; use %{' %'.join(FIELDS)} %% \\n \\t \\r"
                " \\\\ \\xNN"
            )
            raise UsageError(message)
    return lambda decoded, num_before: b"".join(
        part if isinstance(part, bytes) else FIELDS[part](decoded, num_before) for part in parts
    )


FIELDS: dict[str, Formatter] = {
    "t": lambda decoded, _: decoded.record.topic.encode(),
    "p": lambda decoded, _: str(decoded.record.partition).encode(),
    "o": lambda decoded, _: str(decoded.record.offset).encode(),
    "k": lambda decoded, _: (decoded.record.key or "").encode(),
    "v": lambda decoded, _: decoded.record.value,
    "T": lambda decoded, _: decoded.envelope.type.encode() if decoded.envelope else b"",
    "s": lambda decoded, _: decoded.envelope.subject.encode() if decoded.envelope else b"",
    "d": lambda decoded, _: decoded.record.appended_at.isoformat().encode(),
    "e": lambda decoded, _: str(decoded.envelope.epoch).encode() if decoded.envelope else b"",
    "q": lambda decoded, _: str(decoded.envelope.sequence).encode() if decoded.envelope else b"",
    "i": lambda _, num_before: str(num_before + 1).encode(),
}
