"""Does anything that was written hold a secret: in plain, as hexadecimal, in base64 at any offset, or compressed?"""

from __future__ import annotations

import base64
import gzip
import io
import zipfile
from collections.abc import Iterable, Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq


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
    for before in range(3):
        bits = 8 * before
        coded = base64.b64encode(bytes(before) + secret)
        first, last = -(-bits // 6), (bits + 8 * len(secret)) // 6
        spelt[f"base64, offset {before}"] = coded[first:last]
        spelt[f"base64 for addresses, offset {before}"] = coded[first:last].translate(
            bytes.maketrans(b"+/", b"-_")
        )
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


def traces(files: Iterable[Path], secrets: Iterable[bytes]) -> list[tuple[str, str, bytes]]:
    """Return where secrets lie: (file, spelling, secret) each, sorted."""
    needles = [(secret, name, spelt) for secret in secrets for name, spelt in spellings(secret).items()]
    found = set()
    for file in files:
        for content in contents(file):
            found |= {(str(file), name, secret) for secret, name, spelt in needles if spelt in content}
    return sorted(found)
