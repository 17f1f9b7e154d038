"""Word <-> int32 id, vectorised both ways over Arrow; two flat arrays that can be memory-mapped.

Lists name words that are never drawn: the packaged list of obscenities and slurs, and the user's own. A list is a UTF-8 text
with one word a line. Blank lines and lines that begin with # are comments.

One .npy file: memory-mapped on disk, read whole inside an archive, never unpickled.
"""

from __future__ import annotations

import io
import sys
from collections.abc import Sequence
from functools import cache, cached_property
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from dptext_spark.arrays import I32, I64, U8
from dptext_spark.errors import DataError, file_errors
from dptext_spark.lexicon.characters import look_up_form

if sys.version_info >= (3, 11):
    from importlib.resources.abc import Traversable as Traversable
else:
    from importlib.abc import Traversable as Traversable


def read_array(file: Path | Traversable) -> npt.NDArray[Any]:
    """Return the array that `file` holds.

    Args:
        file: a path on disk (memory-mapped, read-only), or a packaged file inside a .zip (read whole).

    Raises:
        DataError: the file is missing, truncated, or no .npy file.
    """
    try:
        if isinstance(file, Path):
            return np.asarray(np.load(file, mmap_mode="r", allow_pickle=False))
        return np.asarray(np.load(io.BytesIO(file.read_bytes()), allow_pickle=False))
    except FileNotFoundError as reason:
        raise DataError(f"{file}: the file does not exist.") from reason
    except (ValueError, EOFError, OSError) as reason:
        raise DataError(f"{file}: not a complete .npy file.") from reason


OFFSETS_FILE = "vocabulary.offsets.npy"
BYTES_FILE = "vocabulary.bytes.npy"
MOST_BYTES = 2**31 - 1


class Vocabulary:
    """V distinct words, numbered 0 to V-1 in the order of the lexicon.

    Attributes:
        offsets: int64[V+1], where each word begins in `data`; ascending, from 0 to len(data).
        data: uint8[...], the words in UTF-8 one after the other; at most 2 GiB.
    """

    def __init__(self, offsets: I64, data: U8) -> None:
        """Wrap two arrays (not copied; they may be memory-mapped).

        Raises:
            DataError: the arrays do not fit each other. That the words are distinct and valid UTF-8 is
                checked by :meth:`of` and, on disk, by the lexicon's fingerprint.
        """
        if offsets.dtype != np.int64 or offsets.ndim != 1 or data.dtype != np.uint8 or data.ndim != 1:
            raise DataError(
                f"vocabulary: offsets {offsets.dtype}[{offsets.ndim} axes] and data {data.dtype}[{data.ndim} axes] are not "
                "valid. Choose int64[V+1] and uint8[...]."
            )
        if len(data) > MOST_BYTES:
            raise DataError(
                f"vocabulary: {len(data):,} bytes of words are too many. Choose at most {MOST_BYTES:,}."
            )
        if (
            len(offsets) == 0
            or offsets[0] != 0
            or offsets[-1] != len(data)
            or bool((offsets[1:] < offsets[:-1]).any())
        ):
            raise DataError("vocabulary: offsets must ascend from 0 to the number of bytes.")
        self.offsets = offsets
        self.data = data

    @classmethod
    def of(cls, words: pa.Array | pa.ChunkedArray | Sequence[str]) -> Vocabulary:
        """Build from words in order.

        Args:
            words: string, large_string or binary [V], or a sequence of str.

        Raises:
            DataError: a NULL, a word twice, invalid UTF-8, or something that is no text.
        """
        try:
            array = words if isinstance(words, pa.Array | pa.ChunkedArray) else pa.array(words, pa.string())
            if isinstance(array, pa.ChunkedArray):
                array = array.combine_chunks()
            text = array.cast(pa.large_string())
            text.validate(full=True)
        except (pa.ArrowException, TypeError, UnicodeError) as reason:
            raise DataError("vocabulary: a word is not valid Unicode text.") from reason
        if text.null_count:
            raise DataError(f"vocabulary: {text.null_count:,} of {len(text):,} words are NULL.")
        distinct = pc.count_distinct(text).as_py()
        if distinct != len(text):
            raise DataError(f"vocabulary: only {distinct:,} of {len(text):,} words are distinct.")
        _, offset_buffer, data_buffer = text.buffers()
        offsets = np.zeros(1, np.int64)
        if len(text):
            offsets = np.frombuffer(offset_buffer, np.int64)[text.offset : text.offset + len(text) + 1]
        data = np.frombuffer(data_buffer, np.uint8) if data_buffer is not None else np.zeros(0, np.uint8)
        return cls(offsets - offsets[0], data[offsets[0] : offsets[-1]].copy())

    def __len__(self) -> int:
        """Return V."""
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        """Return the number of words."""
        return f"Vocabulary({len(self):,} words)"

    @cached_property
    def _strings(self) -> Any:
        offsets = pa.py_buffer(self.offsets.astype(np.int32))
        return pa.StringArray.from_buffers(len(self), offsets, pa.py_buffer(self.data))

    def strings(self) -> pa.StringArray:
        """Return all words, string[V]; the bytes are not copied."""
        return self._strings

    def word(self, index: int) -> str:
        """Return the word with id `index`; :class:`IndexError`: no such id (negative ones included)."""
        if not 0 <= index < len(self):
            raise IndexError(f"word id {index} is not valid. Choose 0 to {len(self) - 1}")
        return self.data[self.offsets[index] : self.offsets[index + 1]].tobytes().decode("utf-8")

    def words(self, ids: I32) -> pa.StringArray:
        """Return string[n] for int32[n] ids; :class:`IndexError`: an id outside 0 to V-1."""
        try:
            return self._strings.take(pa.array(np.asarray(ids), pa.int32()))
        except pa.ArrowIndexError as reason:
            raise IndexError(f"a word id is not valid. Choose 0 to {len(self) - 1}") from reason

    def ids(self, words: pa.Array) -> I32:
        """Return int32[n]: the id of each word, -1 where it is unknown or NULL.

        `words`: string or large_string [n], compared byte for byte (no case is folded here).
        """
        places = pc.index_in(words, value_set=self._strings.cast(words.type))
        return np.asarray(pc.fill_null(places, -1).to_numpy(zero_copy_only=False), dtype=np.int32)

    def save(self, folder: str | Path) -> None:
        """Write both arrays as .npy files into `folder`, and create it if it is missing."""
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        np.save(folder / OFFSETS_FILE, self.offsets, allow_pickle=False)
        np.save(folder / BYTES_FILE, self.data, allow_pickle=False)

    @classmethod
    def open(cls, folder: str | Path | Traversable) -> Vocabulary:
        """Open what :meth:`save` wrote, memory-mapped where `folder` lies on disk.

        Raises:
            DataError: a file is missing, truncated or of another form.
        """
        place = Path(folder) if isinstance(folder, str) else folder
        return cls(read_array(place / OFFSETS_FILE), read_array(place / BYTES_FILE))


EXCLUDED_FILE = "excluded.txt"


@cache
def excluded_words() -> frozenset[str]:
    """Return the packaged list, as the lexicon looks words up."""
    packaged = files("dptext_spark.lexicon") / "default" / EXCLUDED_FILE
    return words_of_list(packaged.read_text(encoding="utf-8"))


def read_excluded(path: str | Path, field: str = "lexicon.exclude") -> frozenset[str]:
    """Read a list of words, as the lexicon looks words up.

    Raises:
        DataError: it cannot be read, is no UTF-8, or holds no word.
    """
    with file_errors(field, path):
        words = words_of_list(Path(path).read_text(encoding="utf-8-sig"))
    if not words:
        raise DataError(f"{field}: {str(path)!r} has no word. Write one word a line.")
    return words


def words_of_list(text: str) -> frozenset[str]:
    """Return the words of a list, as the lexicon looks words up."""
    lines = (line.strip() for line in text.splitlines())
    return frozenset(look_up_form(line) for line in lines if line and not line.startswith("#"))
