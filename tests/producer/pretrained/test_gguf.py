"""GGUF files are read to the last bit, or refused."""

import struct

import pytest

from producer.pretrained.gguf import GgufFile
from tests.support.gguf_writer import float32, gguf, small_llama


def test_settings_of_every_kind_and_shapes_are_read() -> None:
    settings = {"a.text": "größer", "a.count": 7, "a.list": ["x", "yz"], "a.kinds": [3, -1]}
    file = GgufFile(memoryview(gguf(settings, {"w": float32((2, 3))})))
    assert file.settings == settings
    assert file.tensors["w"].shape == (2, 3)
    assert file.read("w").tolist() == [[0, 1, 2], [3, 4, 5]]


def test_a_block_of_q4_1_is_scale_times_nibble_plus_minimum() -> None:
    # Byte k holds k in its low half (weight k) and 15 - k in its high half (weight 16 + k).
    nibbles = bytes(k | (15 - k) << 4 for k in range(16))
    stored = struct.pack("<ee", 0.5, -2.0) + nibbles
    file = GgufFile(memoryview(gguf({}, {"w": ("Q4_1", (32,), stored)})))
    low = [-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 4.5, 5.0, 5.5]
    assert file.read("w").tolist() == low + low[::-1]


def test_a_block_of_q8_0_is_scale_times_signed_byte() -> None:
    values = (*range(-16, 48, 4), -127, 127, *range(14))
    stored = struct.pack("<e32b", 0.25, *values)
    file = GgufFile(memoryview(gguf({}, {"w": ("Q8_0", (4, 8), stored)})))
    assert file.read("w").tolist() == [
        [-4.0, -3.0, -2.0, -1.0, 0.0, 1.0, 2.0, 3.0],
        [4.0, 5.0, 6.0, 7.0, 8.0, 9.0, 10.0, 11.0],
        [-31.75, 31.75, 0.0, 0.25, 0.5, 0.75, 1.0, 1.25],
        [1.5, 1.75, 2.0, 2.25, 2.5, 2.75, 3.0, 3.25],
    ]


def test_a_type_that_is_not_read_is_named() -> None:
    file = GgufFile(memoryview(gguf({}, {"w": ("Q4_0", (32,), bytes(18))})))
    with pytest.raises(ValueError, match="tensor w is Q4_0, and only F32, Q4_1, Q8_0 are read"):
        file.read("w")


def _read_all(data: bytes) -> None:
    file = GgufFile(memoryview(data))
    for name in file.tensors:
        file.read(name)


def test_a_file_that_is_cut_off_anywhere_is_refused() -> None:
    data = small_llama()
    for length in range(0, len(data) - 32, 7):
        with pytest.raises(ValueError, match=r"cut off|begin with|ends inside"):
            _read_all(data[:length])


@pytest.mark.parametrize("version", [1, 4])
def test_another_version_of_the_format_is_refused(version: int) -> None:
    with pytest.raises(ValueError, match=f"version {version} of the format"):
        GgufFile(memoryview(b"GGUF" + struct.pack("<IQQ", version, 0, 0)))


def test_a_count_that_no_file_holds_takes_no_memory() -> None:
    lying = b"GGUF" + struct.pack("<IQQ", 3, 0, 1) + struct.pack("<Q", 1) + b"a"
    with pytest.raises(ValueError, match="cut off"):
        GgufFile(memoryview(lying + struct.pack("<IIQ", 9, 8, 2**60)))
    with pytest.raises(ValueError, match="cut off"):
        GgufFile(memoryview(lying + struct.pack("<IIQ", 9, 4, 2**60)))
