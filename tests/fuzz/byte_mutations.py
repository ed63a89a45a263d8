"""Damage to the bytes of a file, whatever its format."""

import random
import struct
from collections.abc import Callable
from pathlib import Path

ByteMutation = Callable[[random.Random, bytearray], bytearray]
_EXTREME = [0, 1, 0x7F, 0x80, 0xFF, 2**15, 2**31 - 1, 2**31, 2**32 - 1, 2**40, 2**63 - 1, 2**64 - 1]


def flip_bit(rng: random.Random, content: bytearray) -> bytearray:
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    return content


def replace_bytes(rng: random.Random, content: bytearray) -> bytearray:
    for _ in range(rng.randrange(1, 20)):
        content[rng.randrange(len(content))] = rng.randrange(256)
    return content


def truncate(rng: random.Random, content: bytearray) -> bytearray:
    return content[: rng.randrange(len(content))]


def empty(rng: random.Random, content: bytearray) -> bytearray:
    return bytearray()


def zero_block(rng: random.Random, content: bytearray) -> bytearray:
    first, last = _range(rng, content)
    content[first:last] = bytes(last - first)
    return content


def zero_all(rng: random.Random, content: bytearray) -> bytearray:
    return bytearray(len(content))


def duplicate_block(rng: random.Random, content: bytearray) -> bytearray:
    first, last = _range(rng, content)
    return content[:last] + content[first:last] * rng.randrange(1, 4) + content[last:]


def delete_block(rng: random.Random, content: bytearray) -> bytearray:
    first, last = _range(rng, content)
    return content[:first] + content[last:]


def insert_random(rng: random.Random, content: bytearray) -> bytearray:
    place = rng.randrange(len(content) + 1)
    return content[:place] + rng.randbytes(rng.randrange(1, 200)) + content[place:]


def append_random(rng: random.Random, content: bytearray) -> bytearray:
    return content + rng.randbytes(rng.randrange(1, 200))


def declare_size(rng: random.Random, content: bytearray) -> bytearray:
    """Overwrite an integer, such as a length in a header, by an extreme one."""
    size, code = rng.choice([(2, "H"), (4, "I"), (8, "Q")])
    if len(content) < size:
        return bytearray(b"\xff" * size)
    # Headers are at the beginning and at the end.
    place = rng.choice([rng.randrange(len(content)), rng.randrange(min(len(content), 300))])
    place = min(place, len(content) - size)
    value = rng.choice(_EXTREME) % 2 ** (8 * size)
    struct.pack_into(rng.choice("<>") + code, content, place, value)
    return content


def replace_number(rng: random.Random, content: bytearray) -> bytearray:
    """Replace a number in a text, such as the shape in the header of an array."""
    digits = [i for i, byte in enumerate(content) if 48 <= byte <= 57]
    if not digits:
        return flip_bit(rng, content)
    place = rng.choice(digits)
    number = rng.choice([b"-1", b"0", b"9", b"99999999999", b"1e9", b"nan", b"4294967296"])
    return content[:place] + number + content[place + 1 :]


BYTE_MUTATIONS: dict[str, ByteMutation] = {
    "flip a bit": flip_bit,
    "replace bytes": replace_bytes,
    "truncate": truncate,
    "empty": empty,
    "zero a block": zero_block,
    "zero all": zero_all,
    "duplicate a block": duplicate_block,
    "delete a block": delete_block,
    "insert bytes": insert_random,
    "append bytes": append_random,
    "declare a size": declare_size,
    "replace a number": replace_number,
}


def mutate_bytes(rng: random.Random, path: Path, name: str) -> None:
    """Change the bytes of a file in place."""
    content = bytearray(path.read_bytes()) or bytearray(b"\0")
    path.write_bytes(BYTE_MUTATIONS[name](rng, content))


def _range(rng: random.Random, content: bytearray) -> tuple[int, int]:
    first = rng.randrange(len(content))
    return first, min(len(content), first + rng.choice([1, 4, 8, 16, 64, 256, 1024, 4096]))
