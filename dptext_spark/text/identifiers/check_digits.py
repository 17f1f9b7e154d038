"""Check digits of cards (Luhn, ISO/IEC 7812-1) and of international account numbers (ISO 13616, ISO 7064 mod 97-10)."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np

from dptext_spark.arrays import U8
from dptext_spark.runtime.jit import Int, compiled

# Length of an account number by country, as the registry of ISO 13616 has it.
LENGTHS = {
    15: "NO",
    16: "BE",
    18: "DK FI FO GL NL SD FK",
    19: "MK SI",
    20: "AT BA EE KZ LT LU XK MN",
    21: "CH CR HR LI LV",
    22: "BG BH DE GB GE IE ME RS",
    23: "AE GI IL IQ TL OM SO",
    24: "AD CZ ES MD PK RO SA SE SK TN VG",
    25: "PT ST LY",
    26: "IS TR",
    27: "BI DJ FR GR IT MC MR SM",
    28: "AL AZ BY CY DO GT HU LB NI PL SV",
    29: "BR EG PS QA UA",
    30: "JO KW MU YE",
    31: "MT SC",
    32: "LC",
    33: "RU",
}


@cache
def lengths() -> U8:
    """Return uint8[26 * 26], the length of an account number by the two letters of its country; 0: there are none."""
    found = np.zeros(26 * 26, np.uint8)
    for length, countries in LENGTHS.items():
        for country in countries.split():
            found[(ord(country[0]) - 65) * 26 + ord(country[1]) - 65] = length
    return found


@compiled
def luhn(text: Any, start: Int, end: Int) -> Int:
    """Return the sum of the digits of text[start:end] (uint8), every second from the last but one doubled, modulo 10."""
    total, double = np.int64(0), False
    for i in range(end - 1, start - 1, -1):
        if 48 <= text[i] <= 57:
            digit = np.int64(text[i]) - 48
            doubled = 2 * digit - 9 if digit > 4 else 2 * digit
            total += doubled if double else digit
            double = not double
    return total % 10


@compiled
def account_end(text: Any, start: Int, end: Int, known: Any) -> Int:
    """Return where the account number at text[start:end] (uint8) ends by its country, -1 where none is."""
    if end - start < 15:
        return np.int64(-1)
    country = ((text[start] | 32) - 97) * 26 + (text[start + 1] | 32) - 97
    length = np.int64(known[country])
    i, n = start, 0
    while i < end and n < length:
        n += 48 <= text[i] <= 57 or 97 <= (text[i] | 32) <= 122
        i += 1
    if length == 0 or n < length:
        return np.int64(-1)
    return i


@compiled
def account_rest(text: Any, start: Int, end: Int) -> Int:
    """Return the number that text[start:end] (uint8, an account number) stands for, modulo 97; 1 where its digits are right."""
    rest = np.int64(0)
    for turn in range(2):  # what stands behind country and check digits comes first
        seen = 0
        for i in range(start, end):
            c = np.int64(text[i])
            digit, letter = 48 <= c <= 57, 97 <= (c | 32) <= 122
            if digit or letter:
                seen += 1
                if (seen > 4) == (turn == 0):
                    rest = (rest * 10 + c - 48) % 97 if digit else (rest * 100 + (c | 32) - 87) % 97
    return rest
