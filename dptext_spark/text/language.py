"""The likely language of some texts, by the optional package py3langid, which reads no network and no file of the user's."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from importlib.util import find_spec

EXTRA = "language"
LEAST_LETTERS = 20  # of a text: of fewer nothing is told
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
    """Whether the package is installed."""
    return find_spec("py3langid") is not None


def likely_language(texts: Iterable[bytes | None]) -> str | None:
    """Return the language of more than half of the texts that have enough letters, by its English name.

    Texts go nowhere: the package scores bytes in memory, and logs none.

    Args:
        texts: UTF-8; what is NULL, not valid, or has too few letters counts for nothing.

    Returns:
        None where no language has more than half, or the package is not installed.
    """
    if not can_tell():
        return None
    from py3langid import classify

    votes: Counter[str] = Counter()
    for text in texts:
        try:
            said = "" if text is None else bytes(text).decode()
        except UnicodeDecodeError:
            continue
        if sum(map(str.isalpha, said)) >= LEAST_LETTERS:
            code = str(classify(said)[0])
            votes[NAMES.get(code, code)] += 1
    (language, most), *_ = votes.most_common(1) or [(NONE, 0)]
    return language if language != NONE and 2 * most > votes.total() else None
