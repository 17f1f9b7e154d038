"""Count the unknown words of a sample of texts, and judge whether they mean another language.

Words of another language become `[OOV]` nearly all, or uniform words. A run looks at a sample first, and ends where most of its
words are unknown. One odd text must not end it: most rows must be mostly unknown, too.

The optional package py3langid names their likely language; it reads no network and no file of the user's.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.util import find_spec

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import I64
from dptext_spark.errors import DataError
from dptext_spark.text.engine import Engine
from dptext_spark.text.tokens import listed
from dptext_spark.text.word_table import INVALID, NUMBERS, OOV_WORDS, WORDS

EXTRA = "language"
LEAST_LETTERS = 20  # of a text: fewer show no language
ENGLISH = "English"
# By ISO 639; a code that is not here is named as it is.
NAMES = {
    "af": "Afrikaans", "am": "Amharic", "ar": "Arabic", "as": "Assamese", "az": "Azerbaijani", "be": "Belarusian",
    "bg": "Bulgarian", "bn": "Bengali", "bs": "Bosnian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish",
    "de": "German", "el": "Greek", "en": ENGLISH, "eo": "Esperanto", "es": "Spanish", "et": "Estonian", "eu": "Basque",
    "fa": "Persian", "fi": "Finnish", "fr": "French", "fy": "Frisian", "ga": "Irish", "gd": "Scottish Gaelic", "gl": "Galician",
    "gu": "Gujarati", "ha": "Hausa", "he": "Hebrew", "hi": "Hindi", "hr": "Croatian", "ht": "Haitian Creole", "hu": "Hungarian",
    "hy": "Armenian", "id": "Indonesian", "ig": "Igbo", "is": "Icelandic", "it": "Italian", "ja": "Japanese", "jv": "Javanese",
    "ka": "Georgian", "kk": "Kazakh", "km": "Khmer", "kn": "Kannada", "ko": "Korean", "ku": "Kurdish", "ky": "Kyrgyz",
    "la": "Latin", "lb": "Luxembourgish", "lo": "Lao", "lt": "Lithuanian", "lv": "Latvian", "mg": "Malagasy",
    "mk": "Macedonian", "ml": "Malayalam", "mn": "Mongolian", "mr": "Marathi", "ms": "Malay", "mt": "Maltese", "my": "Burmese",
    "ne": "Nepali", "nl": "Dutch", "nn": "Norwegian", "no": "Norwegian", "oc": "Occitan", "or": "Odia", "pa": "Punjabi",
    "pl": "Polish", "ps": "Pashto", "pt": "Portuguese", "qu": "Quechua", "ro": "Romanian", "ru": "Russian", "rw": "Kinyarwanda",
    "si": "Sinhala", "sk": "Slovak", "sl": "Slovenian", "so": "Somali", "sq": "Albanian", "sr": "Serbian", "sv": "Swedish",
    "sw": "Swahili", "ta": "Tamil", "te": "Telugu", "tg": "Tajik", "th": "Thai", "tl": "Tagalog", "tr": "Turkish",
    "uk": "Ukrainian", "ur": "Urdu", "uz": "Uzbek", "vi": "Vietnamese", "xh": "Xhosa", "yo": "Yoruba", "yue": "Cantonese",
    "zh": "Chinese", "zu": "Zulu",
}  # fmt: skip
NONE = "zxx"  # no language


def can_tell() -> bool:
    """Check whether the package is installed."""
    return find_spec("py3langid") is not None


def likely_language(texts: Iterable[bytes | None]) -> str | None:
    """Return the language of more than half of the texts that have enough letters, by its English name.

    Texts go nowhere: the package scores bytes in memory, and logs none.

    Args:
        texts: UTF-8; NULL, invalid UTF-8 and texts with too few letters do not count.

    Returns:
        None where no language has more than half, or the package is not installed.
    """
    if not can_tell():
        return None
    from py3langid import classify

    votes: Counter[str] = Counter()
    for text in texts:
        try:
            content = "" if text is None else bytes(text).decode()
        except UnicodeDecodeError:
            continue
        if sum(map(str.isalpha, content)) >= LEAST_LETTERS:
            code = str(classify(content)[0])
            votes[NAMES.get(code, code)] += 1
    (language, most), *_ = votes.most_common(1) or [(NONE, 0)]
    return language if language != NONE and 2 * most > votes.total() else None


LEAST_WORDS = 100  # a sample of fewer words says nothing
LEAST_ROWS = 10  # with words; fewer say nothing
AT_ONCE = 64  # texts that are cut together: what cutting takes is many times their bytes
BAND = 10  # per cent: a share is named by its band
_KEYS = (np.uint64(0), np.uint64(0))  # hashes of unknown words are not used


@dataclass(frozen=True)
class UnknownWords:
    """Word counts of the rows of a sample.

    Attributes:
        with_words: rows with a word that was looked up.
        mostly_unknown: rows in which more than half of these words are unknown.
        words: that were looked up: all but numbers and identifiers.
        unknown: those that the lexicon does not hold; kept stop words are known.
    """

    rows: int = 0
    with_words: int = 0
    mostly_unknown: int = 0
    words: int = 0
    unknown: int = 0

    @classmethod
    def of_rows(cls, words: I64, unknown: I64) -> UnknownWords:
        """Sum up int64[rows] of looked-up and of unknown words."""
        mostly = int((2 * unknown > words).sum())
        return cls(len(words), int((words > 0).sum()), mostly, int(words.sum()), int(unknown.sum()))

    @property
    def is_enough(self) -> bool:
        """Check whether the sample is large enough for a result."""
        return self.words >= LEAST_WORDS and self.with_words >= LEAST_ROWS

    @property
    def is_mostly_unknown(self) -> bool:
        """Check whether more than half of the words are unknown, and more than half of the rows are mostly unknown."""
        return self.is_enough and 2 * self.unknown > self.words and 2 * self.mostly_unknown > self.with_words

    @property
    def band(self) -> str:
        """The share of unknown words, as a band: an exact share would reveal facts about the texts."""
        low = min(BAND * (100 * self.unknown // (BAND * max(self.words, 1))), 100 - BAND)
        return f"{low} to {low + BAND} %"


def count_unknown(engine: Engine, texts: pa.Array) -> tuple[I64, I64]:
    """Count the words of texts that are looked up, and those that are not found; nothing is drawn.

    Args:
        engine: whose lexicon, policy and identifiers count.
        texts: string, large_string or binary [n]; NULLs, and texts that are no valid UTF-8, have no words.

    Returns:
        (looked up int64[n], unknown int64[n]).
    """
    words, unknown = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
    for start in range(0, len(texts), AT_ONCE):
        counts = listed(engine, texts.slice(start, AT_ONCE), _KEYS).counts.astype(np.int64)
        valid = counts[:, INVALID] == 0
        here = slice(start, start + len(counts))
        words[here] = (counts[:, WORDS] - counts[:, NUMBERS]) * valid
        unknown[here] = counts[:, OOV_WORDS] * valid
    return words, unknown


def refusal(
    found: UnknownWords,
    language: str | None,
    *,
    can_tell: bool,
    done: str = " Nothing was written to the target.",
) -> DataError:
    """Return the error of a run with mostly unknown words: a band of the share and the likely language, no word.

    Args:
        found: of the sample.
        language: the likely one; None where none is likely, or none was looked for.
        can_tell: whether one was looked for.
        done: a sentence on the written data; empty if no run began.
    """
    if not can_tell:
        likely = f"The extra [{EXTRA}] names the likely language"
    elif language in (None, ENGLISH):
        likely = "No other language was recognised. The texts may be of another kind, such as codes or logs"
    else:
        likely = f"The likely language is {language}"
    return DataError(
        f"policy.allow_unknown: {found.band} of the words of a sample of {found.rows:,} rows are not in the lexicon. "
        f"{likely}. Most of the text would become unknown words.{done} Choose a lexicon of that language (guide 'Another "
        "language'), or policy.allow_unknown: true."
    )
