"""Does anything that was written hold a secret: plain, hexadecimal, base64 at any offset, protobuf's text, or compressed?"""

from __future__ import annotations

import base64
import gzip
import io
import json
import re
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

PART = 8  # bytes of a secret that are a trace of it, where protobuf's text is cut
_OCTAL = re.compile(rb"\\[0-3][0-7]{2}")
_ESCAPE = re.compile(rb"\\(?:([0-3][0-7]{2})|([abfnrtv\"'\\]))")
_JSON = re.compile(rb'\\([\\"])')
_NAMED = dict(zip(b"abfnrtv\"'\\", b"\a\b\f\n\r\t\v\"'\\", strict=True))


def octal(secret: bytes, named: bytes = b"nrt\"'\\") -> bytes:
    """Return how the text form of protobuf spells bytes: some escapes have names, what cannot be printed is in octal."""
    names = {_NAMED[code]: bytes([code]) for code in named}
    return b"".join(
        b"\\" + names[byte] if byte in names else bytes([byte]) if 32 <= byte < 127 else b"\\%03o" % byte
        for byte in secret
    )


def spellings(secret: bytes) -> dict[str, bytes]:
    """Return how `secret` may stand in a file, by name.

    In base64 a secret that stands behind other bytes depends on their number modulo 3; the characters that depend on its
    neighbours are left out.
    """
    spelt = {
        "plain": secret,
        "plain, two bytes a character": b"\0".join(secret[i : i + 1] for i in range(len(secret))),
        "hex": secret.hex().encode(),
        "HEX": secret.hex().upper().encode(),
        "numbers": ", ".join(map(str, secret)).encode(),
        "numbers, signed": ",".join(str(b - 256 if b > 127 else b) for b in secret).encode(),
    }
    escaped = {
        "octal, as Python writes it": octal(secret),
        "octal, as Java writes it": octal(secret, b"abfnrtv\"'\\"),
        "octal in JSON": json.dumps(octal(secret).decode())[1:-1].encode(),
    }
    spelt |= {name: form for name, form in escaped.items() if form != secret}  # which is what can be printed
    for before in range(3):
        bits = 8 * before
        coded = base64.b64encode(bytes(before) + secret)
        first, last = -(-bits // 6), (bits + 8 * len(secret)) // 6
        spelt[f"base64, offset {before}"] = coded[first:last]
        in_addresses = coded[first:last].translate(bytes.maketrans(b"+/", b"-_"))
        spelt[f"base64 for addresses, offset {before}"] = in_addresses
    return spelt


def contents(file: Path) -> Iterator[bytes]:
    """Yield a file's bytes, and what it holds when it is compressed in a way that we know."""
    raw = file.read_bytes()
    yield raw
    if raw[:4] == b"PAR1":
        try:
            table = pq.ParquetFile(pa.BufferReader(raw)).read()
        except pa.ArrowInvalid:
            return  # not finished
        # The bytes as they are, for some tests write text that is no UTF-8.
        chunks = [chunk for column in table.columns for chunk in column.chunks]
        yield b"".join(bytes(part) for chunk in chunks for part in chunk.buffers() if part is not None)
    elif raw[:2] == b"\x1f\x8b":
        yield gzip.decompress(raw)
    elif raw[:4] == b"PK\x03\x04":
        with zipfile.ZipFile(io.BytesIO(raw)) as archive:
            yield from (archive.read(name) for name in archive.namelist())


def unescaped(content: bytes) -> Iterator[bytes]:
    """Yield what protobuf's text stands for, alone and in a string of JSON; nothing where there is none of it."""

    def byte(found: re.Match[bytes]) -> bytes:
        return bytes([int(found[1], 8) if found[1] else _NAMED[found[2][0]]])

    if _OCTAL.search(content):
        yield from (_ESCAPE.sub(byte, text) for text in (content, _JSON.sub(rb"\1", content)))


def traces(files: Iterable[Path], secrets: Iterable[bytes]) -> list[tuple[str, str, bytes]]:
    """Return where secrets lie: (file, spelling, secret) each, sorted."""
    needed = list(secrets)
    needles = [(secret, name, spelt) for secret in needed for name, spelt in spellings(secret).items()]
    places = {secret: range(max(1, len(secret) - PART + 1)) for secret in needed}
    parts = [(secret, secret[i : i + PART]) for secret in needed for i in places[secret]]
    found = set()
    for file in files:
        for content in contents(file):
            found |= {(str(file), name, secret) for secret, name, spelt in needles if spelt in content}
            for plain in unescaped(content):
                found |= {(str(file), "octal, in part", s) for s, part in parts if part in plain}
    return sorted(found)
