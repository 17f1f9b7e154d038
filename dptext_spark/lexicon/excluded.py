"""Words that are never put out: obscenities and slurs of the packaged list, and what a user's own list names.

A list is a UTF-8 text with one word a line. Blank lines and lines that begin with # are comments.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from dptext_spark.errors import DataError
from dptext_spark.lexicon.characters import look_up_form

EXCLUDED_FILE = "excluded.txt"


@cache
def excluded_words() -> frozenset[str]:
    """Return the packaged list, as the lexicon looks words up."""
    packaged = files("dptext_spark.lexicon") / "default" / EXCLUDED_FILE
    return words_of_list(packaged.read_text(encoding="utf-8"))


def read_excluded(path: str | Path, field: str = "lexicon.exclude") -> frozenset[str]:
    """Read a list of words, as the lexicon looks words up.

    Args:
        path: the file.
        field: that names the file in errors.

    Raises:
        DataError: it cannot be read, is no UTF-8, or holds no word.
    """
    try:
        words = words_of_list(Path(path).read_text(encoding="utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(f"{field}: {str(path)!r} is no UTF-8 text, from byte {error.start:,} on.") from None
    except (OSError, ValueError) as error:
        raise DataError(f"{field}: {str(path)!r} cannot be read; valid: a UTF-8 text file.") from error
    if not words:
        raise DataError(f"{field}: {str(path)!r} holds no word; valid: one word a line.")
    return words


def words_of_list(text: str) -> frozenset[str]:
    """Return the words of a list, as the lexicon looks words up."""
    lines = (line.strip() for line in text.splitlines())
    return frozenset(look_up_form(line) for line in lines if line and not line.startswith("#"))
