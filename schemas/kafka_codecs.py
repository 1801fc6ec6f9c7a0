"""Decompresses a batch of Kafka's records, but only up to a limit: a megabyte may be a gigabyte.

kafka-python and the codecs' own one-call functions have no such limit. Imports no kafka.
"""

import struct
import zlib
from collections.abc import Callable

PIECE_BYTES = 1 << 20
"""Decompressed at once where a codec would allocate the whole limit for every small batch."""
MOST_MEMBERS = 64
"""Of one batch's gzip data; clients write one."""
XERIAL = b"\x82SNAPPY\x00"
XERIAL_HEADER_BYTES = 16
"""Of Java's Snappy: blocks, each behind its length, follow a header of this size."""


class DecompressionError(Exception):
    """The data are damaged, larger than the limit, or of no codec that Kafka has."""


def decompress(codec: int, data: bytes, limit: int) -> bytes:
    """A batch's records; `codec` as in the batch's attributes, 0: none. DecompressionError.

    Memory: twice the limit. What follows the end of compressed data is ignored, as brokers do.
    """
    if codec == 0:
        return data
    if codec not in CODECS:
        message = f"Kafka has no codec {codec}"
        raise DecompressionError(message)
    name, expand = CODECS[codec]
    try:
        return expand(data, limit)
    except (DecompressionError, MemoryError):
        raise
    except Exception:  # noqa: BLE001  # each library has errors of its own
        message = f"its {name} data are damaged"
        raise DecompressionError(message) from None


def _gzip(data: bytes, limit: int) -> bytes:
    """Of all members, which follow each other; each copies what follows it, so they are counted."""
    records = b""
    for number in range(MOST_MEMBERS):
        decompressor = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)
        try:
            records += decompressor.decompress(data, limit + 1 - len(records))
        except zlib.error:
            if not number:
                raise
            break
        _check(len(records), limit)
        if not decompressor.eof:
            raise EOFError
        data = decompressor.unused_data
        if not data:
            break
    return records


def _lz4(data: bytes, limit: int) -> bytes:
    from lz4.frame import LZ4FrameDecompressor

    decompressor = LZ4FrameDecompressor()
    records = bytes(decompressor.decompress(data, max_length=PIECE_BYTES))
    if decompressor.eof:
        return records
    pieces = bytearray(records)
    while not decompressor.eof:
        piece = decompressor.decompress(b"", max_length=PIECE_BYTES)
        if not piece and not decompressor.eof:
            raise EOFError
        pieces += piece
        _check(len(pieces), limit)
    return bytes(pieces)


def _zstandard(data: bytes, limit: int) -> bytes:
    from zstandard import ZstdDecompressor

    pieces = bytearray()
    with ZstdDecompressor().stream_reader(data, read_across_frames=True) as reader:
        while piece := reader.read(PIECE_BYTES):
            pieces += piece
            _check(len(pieces), limit)
    return bytes(pieces)


def _snappy(data: bytes, limit: int) -> bytes:
    import snappy

    if not data.startswith(XERIAL):
        _check(_snappy_size(data), limit)
        return bytes(snappy.decompress(data))
    pieces = bytearray()
    position = XERIAL_HEADER_BYTES
    while position < len(data):
        (length,) = struct.unpack_from(">I", data, position)
        position += 4
        block = data[position : position + length]
        _check(len(pieces) + _snappy_size(block), limit)
        pieces += snappy.decompress(block)
        position += length
    return bytes(pieces)


def _snappy_size(block: bytes) -> int:
    """The size that a block declares in its first bytes; the library enforces it."""
    size = 0
    for index, byte in enumerate(block[:5]):
        size |= (byte & 0x7F) << (7 * index)
        if not byte & 0x80:
            return size
    raise EOFError


def _check(size: int, limit: int) -> None:
    if size > limit:
        message = f"it holds more than {limit >> 20} MiB of records, which no writer of ours makes"
        raise DecompressionError(message)


CODECS: dict[int, tuple[str, Callable[[bytes, int], bytes]]] = {
    1: ("gzip", _gzip),
    2: ("Snappy", _snappy),
    3: ("LZ4", _lz4),
    4: ("Zstandard", _zstandard),
}
"""Kafka's number of each."""
