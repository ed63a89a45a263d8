"""Values that programs handle badly."""

import random
import string
from typing import Any

NUMBERS: list[Any] = [
    *(0, -1, 1, 2, 255, 256, 2**15, 2**31 - 1, 2**31, -(2**31), 2**32, 2**53 + 1),
    *(2**62, 2**63 - 1, 2**63, -(2**63), 2**64, 10**6, 10**9, 10**18, 10**30, 10**400),
    *(0.5, -0.5, 1.5, 1e-300, 1e-45, 3.4e38, 3.5e38, 1e39, 1e308, -1e39),
    *(float("nan"), float("inf"), float("-inf"), -0.0),
]

TEXTS = [
    *(
        "",
        " ",
        "\t",
        "0",
        "-1",
        "nan",
        "NaN",
        "inf",
        "-inf",
        "None",
        "null",
        "true",
        "1e400",
        "1e39",
    ),
    *(
        "01",
        "+1",
        "1_0",
        "1e3",
        "0x10",
        "١٢",
        "1,5",
        "1;2",
        "--help",
        "-",
        "=",
        "é",
        "日本語",
        "😀",
    ),
    *("[/x]", "[bold]b[/bold]", "[red", ":smile:", r"g$\frac{$", "%s%n", "{0}", "${HOME}", "`id`"),
    *("../../etc/passwd", "/dev/zero", "/", ".", "..", "~", "~nouser/x", "C:\\x", "a/b", "a\\b"),
    *(
        "\x1b[31mred\x1b[0m",
        "\x1b]0;title\x07",
        "\r",
        "a\nb",
        "\x00",
        "\x7f",
        "\x9b31m",
        "\u202eabc",
    ),
    *("\ufeffx", "\ud800", "e\u0301", "\u200b", "x" * 300, "é" * 200, "x" * 70000, "9" * 5000),
    *(
        "'; DROP TABLE runs; --",
        '"',
        "'",
        "a,b",
        'a"b',
        "#",
        "=cmd|' /C calc'!A0",
        "@x",
        "[" * 2000,
    ),
]

HTML = [
    "<script>fuzz()</script>",
    "</script><script>fuzz()</script>",
    "<img src=x onerror=fuzz()>",
    '"><svg onload=fuzz()>',
    "<!--<script>fuzz()",
    "javascript:fuzz()",
    "]]><script>fuzz()</script>",
]


def hostile_number(rng: random.Random) -> Any:
    if rng.random() < 0.2:
        return rng.randrange(-(2**63), 2**64)
    return rng.choice(NUMBERS)


def hostile_text(rng: random.Random) -> str:
    if rng.random() < 0.15:
        return rng.choice(HTML)
    if rng.random() < 0.15:
        letters = string.printable + "\u00e9\u0661\u202e\ufffd\x9b"
        return "".join(rng.choices(letters, k=rng.randrange(1, 30)))
    return rng.choice(TEXTS)


def hostile_value(rng: random.Random) -> Any:
    """Return a value of any type that JSON can hold."""
    kind = rng.randrange(8)
    if kind < 3:
        return hostile_number(rng)
    if kind < 5:
        return hostile_text(rng)
    if kind == 5:
        return rng.choice([None, True, False])
    return rng.choice(
        [[], {}, [None], [[]], {"": None}, [0] * 1000, {"a": {"b": [1, 2]}}, [1, "a"]]
    )


def file_name(rng: random.Random) -> str:
    """Return a hostile text that can be the name of a file, possibly of bytes that are no text."""
    while True:
        text = hostile_text(rng).replace("/", "_").replace("\x00", "_")
        encoded = text.encode(errors="replace")[:200]
        if rng.random() < 0.1:
            encoded = b"\x80\xff" + encoded
        name = encoded.decode(errors="surrogateescape")
        if name not in ("", ".", ".."):
            return name
