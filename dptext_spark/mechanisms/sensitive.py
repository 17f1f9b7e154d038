"""Which words SanText+ takes as sensitive: the parameter, and the ids it stands for."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pyarrow as pa

from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms.base import Ids
from dptext_spark.mechanisms.parameters import Parameter, is_number


@dataclass(frozen=True)
class Sensitive(Parameter):
    """`none`, a share of the lexicon, or words; these must be public (see :mod:`dptext_spark.mechanisms.santext`)."""

    kind: ClassVar[str] = "none, share or list of words"
    words: ClassVar[bool] = True

    @property
    def domain(self) -> str:
        """The three forms."""
        return "none, a share above 0 and at most 1, or a list of words (in settings also {file: path}, a word a line)"

    def accepts(self, value: object) -> bool:
        """Whether `value` is of one of the forms."""
        return value == "none" or isinstance(value, tuple) or (is_number(value) and 0 < value <= 1)

    def problem(self, name: str, value: object) -> str | None:
        """Return what is wrong with `value`, None where it is of one of the forms; no word of a list is shown."""
        if isinstance(value, tuple) and not (
            len(value) >= 2 and all(isinstance(word, str) and word for word in value)
        ):
            return f"{name}: a list of two words or more is needed, none of them empty."
        return super().problem(name, value)


def sensitive_ids(sensitive: str | float | tuple[str, ...], lexicon: Lexicon) -> Ids:
    """Return the ids of the sensitive words, int32[n] ascending.

    Args:
        sensitive: a share, the last words of the lexicon, or words.
        lexicon: V words.

    Raises:
        SettingsError: a word is not in the lexicon, or fewer than two are left; no word of a list is shown.
    """
    if isinstance(sensitive, tuple):
        given = f"a list of {len(sensitive):,}"
        ids = lexicon.vocabulary.ids(pa.array(sensitive, pa.string()))
        missing = int((ids < 0).sum())
        if missing:
            raise SettingsError(
                f"mechanism.sensitive: {missing:,} of {len(sensitive):,} words are not in the lexicon; valid: its "
                "words, in lower case as it holds them."
            )
        found: Any = np.unique(ids)
    else:
        given = repr(sensitive)
        count = math.ceil(float(sensitive) * len(lexicon))
        found = np.arange(len(lexicon) - count, len(lexicon))
    if len(found) < 2:
        raise SettingsError(
            f"mechanism.sensitive: {given} given, which leaves {len(found)} of {len(lexicon):,} words; at "
            "least two are needed, for a word with no other to become cannot be protected."
        )
    return np.asarray(found, np.int32)
