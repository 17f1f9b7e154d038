"""What a run releases, once more and in plain Python: from the rules, the run key and the compiled laws alone.

Nothing of the package's engine, workers, identities and draws is used. A law itself is the compiled sampler, one word at a time,
which reads numbers that are made here; the samplers have tests of their own.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from cryptography.hazmat.primitives.ciphers import Cipher, algorithms, modes

from dptext_spark.model.privatizer import ENGINE_VERSION, Privatizer
from tests.core.importance.test_selector import plainly
from tests.core.randomness.test_draws import plain_hash
from tests.core.text.plain_engine import Plain, form, kind, shape, written
from tests.spark.pairs.table import SECRET, TAG, Row

PRIME = 2**61 - 1
BITS = 2**64
MASKS = {"person": "[PERSON]", "location": "[LOCATION]", "listed": "[NAME]", "email": "[EMAIL]"}
NO_WORD = -1
COUNTED = ("words", "drawn", "stop_kept", "oov", "numbers")


def expand(secret: bytes, salt: bytes, info: bytes, length: int) -> bytes:
    """HKDF-SHA256 (RFC 5869)."""
    extracted = hmac.new(salt or bytes(32), secret, hashlib.sha256).digest()
    out, block = b"", b""
    for number in range(1, -(-length // 32) + 1):
        block = hmac.new(extracted, block + info + bytes([number]), hashlib.sha256).digest()
        out += block
    return out[:length]


def derive(*context: str, length: int = 32) -> bytes:
    """A subkey of the run key for a context."""
    info = b"".join(len(part.encode()).to_bytes(4, "little") + part.encode() for part in context)
    return expand(SECRET, b"dptext_spark draws", info, length)


def aes(subkey: bytes, first: int, second: int) -> tuple[int, int]:
    """Two 64-bit numbers of a block that is two such numbers."""
    encryptor = Cipher(algorithms.AES(subkey), modes.ECB()).encryptor()
    out = encryptor.update(first.to_bytes(8, "little") + second.to_bytes(8, "little"))
    return int.from_bytes(out[:8], "little"), int.from_bytes(out[8:], "little")


def hash_keys(secret: bytes) -> tuple[int, int]:
    """The two keys of a content hash."""
    parts = (int.from_bytes(secret[at : at + 8], "little") & PRIME for at in (0, 8))
    first, second = (max(2, part % (PRIME - 1)) for part in parts)
    return first, second


def identity_of(value: int | str | bytes, scope: str) -> tuple[int, int]:
    """What stands for a row or a record."""
    if isinstance(value, int):
        return aes(derive("identity", scope, "integer"), value % BITS, 0)
    secret = derive("identity", scope, "bytes", length=48)
    data = value.encode() if isinstance(value, str) else value
    return aes(secret[16:], *plain_hash(data, *hash_keys(secret)))


class Numbers:
    """The numbers of one draw, as a sampler asks for them: lanes 2j and 2j + 1 are one encryption under the j-th lane key."""

    def __init__(self, subkey: bytes, block: tuple[int, int]) -> None:
        self.subkey, self.block = subkey, block

    def __len__(self) -> int:
        return 1

    @property
    def blocks(self) -> np.ndarray:
        return np.array([self.block], np.uint64)

    def take(self, rows: Sequence[int]) -> Numbers:
        return self

    def pair(self, index: int, rows: slice = slice(None)) -> np.ndarray:
        key = expand(self.subkey, b"", b"lane %d" % index, 32)
        return np.array([aes(key, *self.block)], np.uint64)

    def u64(self, lane: int, rows: slice = slice(None)) -> np.ndarray:
        return self.pair(lane // 2)[:, lane % 2]


@dataclass
class Token:
    """A stretch of a text: a gap, a mark in place of a name, or a word."""

    source: str  # as the input holds it
    place: int  # byte of the text where it begins
    action: str  # as :class:`Piece` names it; `drawn` where the policy draws it
    text: str  # what is written, unless it is drawn
    code: int = -1  # of a word of the lexicon that is drawn; -1 else
    how: str = ""  # it is written
    counter: str = ""  # of a word
    level: int | None = 0  # of its law; None: it stays as it is; -1: it is masked beyond a budget

    @property
    def is_drawn(self) -> bool:
        return bool(self.counter) and self.code >= 0 and self.level is not None and self.level >= 0


@dataclass
class Reference:
    """The plain reference of a run."""

    entry: Row  # the settings
    model: Privatizer  # whose laws are sampled, and nothing else of it
    run_id: str  # of the run, or of a micro-batch
    corpus: Sequence[str]  # documents in which importance counts

    def __post_init__(self) -> None:
        self.words = [str(word) for word in self.model.vocabulary.strings().to_pylist()]
        self.engine = Plain(self.words, lambda number: number, self.model.policy)
        every = [*self.words, *self.model.table.beyond()]
        self.number = {word: number for number, word in enumerate(every)}
        self.counts: Counter[str] = Counter()
        self.units: list[int] = []  # drawn words of a row; at record level those that differ within a text

    def row(self, row: dict[str, Any]) -> dict[str, Any]:
        """Return the text columns of a row as they are released; counts are added up."""
        places = dict(self._texts(row))
        cut = {place: list(self._cut(text)) for place, text in places.items() if text is not None}
        self._choose([token for tokens in cut.values() for token in tokens])
        released = {place: self._released(tokens, place, row) for place, tokens in cut.items()}
        words = [token for tokens in cut.values() for token in tokens if token.counter]
        drawn = [[token.code for token in tokens if token.is_drawn] for tokens in cut.values()]
        self.units.append(sum(len(set(text) if self.entry.level == "record" else text) for text in drawn))
        self.counts += Counter({"words": len(words), "drawn": sum(map(len, drawn))})
        others = Counter(token.counter for token in words if token.counter != "drawn")
        self.counts += others + Counter(unknown_rows=int(2 * others["oov"] > len(words)))
        named = {name: name.split(".")[0] for name in self.entry.columns}
        return {root: self._put(name, row[root], released) for name, root in named.items()}

    def weights(self, row: dict[str, Any], column: str) -> list[float] | None:
        """Return a number for each word of a text, as a user's column has them."""
        if row[column] is None:
            return None
        words = [token for token in self._cut(row[column]) if token.counter]
        return [float(len(token.source)) for token in words]

    def _texts(self, row: dict[str, Any]) -> Iterator[tuple[tuple[str, int | None], str | None]]:
        for name in self.entry.columns:
            value = row[name.split(".")[0]]
            if name in ("body", "note"):
                yield (name, None), value
            else:
                texts = value or []
                parts = [part if name == "tags" else part[0] for part in texts]
                yield from (((name, at), part) for at, part in enumerate(parts))

    def _put(self, name: str, value: Any, released: dict[Any, str]) -> Any:
        if name in ("body", "note"):
            return released.get((name, None))
        if value is None:
            return None
        texts = [released.get((name, at)) for at in range(len(value))]
        return texts if name == "tags" else [(text,) for text in texts]

    def _cut(self, text: str) -> Iterator[Token]:
        """Cut a tagged text: what a tag names is found where the settings look for it, else it is words like others."""
        place, begun, plain = 0, 0, ""
        found: list[tuple[int, str, str]] = []  # where in the plain text, what it becomes, what it was
        for match in TAG.finditer(text):
            plain += text[begun : match.start()]
            tag, inner = match.groups()
            if self._is_found(tag):
                found.append((len(plain), inner if tag == "clear" else MASKS[tag], inner))
            plain += inner
            begun = match.end()
        plain += text[begun:]
        at = 0
        for start, mark, inner in [*found, (len(plain), "", "")]:
            for piece in self.engine.pieces(plain[at:start]):
                code = self.engine.number[form(piece.source)] if piece.action == "drawn" else -1
                how = shape(piece.text) if code >= 0 else ""
                yield Token(piece.source, place, piece.action, piece.text, code, how, piece.counter)
                place += len(piece.source.encode())
            if inner:
                action = "clear" if mark == inner else "mark"
                yield Token(inner, place, action, mark)
                place += len(inner.encode())
            at = start + len(inner)

    def _is_found(self, tag: str) -> bool:
        if tag == "email":
            return True
        return ("names" if tag in ("person", "location") else "lists") in self.entry.features

    def _choose(self, tokens: list[Token]) -> None:
        """Give each word its law: by importance, by a budget, or the only one there is."""
        words = [token for token in tokens if token.counter]
        if "importance" in self.entry.features:
            self._rank(words)
        elif "budget" in self.entry.features:
            self._allot([token for token in words if token.code >= 0])

    def _rank(self, words: list[Token]) -> None:
        selection = self.model.selector.selection  # type: ignore[union-attr]
        weights = list(map(float, self._weights(selection.provider, words)))
        shares = [level.share for level in selection.levels] or [selection.percent]
        levels = plainly(weights, shares, selection.direction)
        for token, level in zip(words, levels, strict=True):
            token.level = None if level == len(shares) else level
        if self.entry.level == "record":  # equal words are drawn alike
            best: dict[int, int] = {}
            for token in words:
                if token.level is not None:
                    best[token.code] = min(best.get(token.code, token.level), token.level)
            for token in words:
                token.level = best.get(token.code) if token.code >= 0 else token.level

    def _weights(self, provider: str, words: list[Token]) -> Iterator[float]:
        if provider == "column":
            yield from (len(token.source) for token in words)
        elif provider == "random":
            yield from (mixed(len(words), place) for place in range(len(words)))
        else:
            pieces = [self.engine.pieces(text) for text in self.corpus]
            held = [{form(piece.source) for piece in every if piece.counter} for every in pieces]
            for token in words:
                frequency = sum(form(token.source) in document for document in held)
                yield np.float32(math.log(1 + len(held)) - math.log(1 + frequency))

    def _allot(self, drawn: list[Token]) -> None:
        most = self.model.selector.most.tolist()  # type: ignore[union-attr]
        distinct = self.entry.level == "record"
        turns: dict[int, int] = {}
        for at, token in enumerate(drawn):
            turns.setdefault(token.code if distinct else at, len(turns))
        law = next((number for number, limit in enumerate(most) if len(turns) <= limit), len(most) - 1)
        for at, token in enumerate(drawn):
            token.level = law if turns[token.code if distinct else at] < most[-1] else -1

    def _released(self, tokens: list[Token], place: tuple[str, int | None], row: dict[str, Any]) -> str:
        name, number = place
        level = self.entry.level
        shared = ("draws", self.model.fingerprint, ENGINE_VERSION, level)
        context = (*shared, self.run_id, name) if level == "token" else shared
        identity = self._identity(number, row)
        out, before = "", NO_WORD
        for token in tokens:
            if token.action == "drawn" and token.level is not None and token.level >= 0:
                law = self.model.samplers[token.level]
                subkey = derive(*context, "words", *([f"level {token.level}"] if token.level else []))
                position = token.place if level == "token" else 0
                block = (identity[0] ^ token.code, identity[1] ^ position ^ (1 << 63))
                numbers, ids = Numbers(subkey, block), np.array([token.code], np.int32)
                if "fluent" in self.entry.features:
                    drawn = int(law.sample_after(ids, np.array([before], np.int32), numbers)[0])  # type: ignore[arg-type]
                else:
                    drawn = int(law.sample(ids, numbers)[0])  # type: ignore[arg-type]
                out += written(self.words[drawn], token.how)
                before = drawn
            elif token.action == "drawn":
                out += token.source if token.level is None else "[BGT]"
                before = token.code if token.level is None else NO_WORD
            elif token.action == "digits":
                out += self._digits(token, context, identity)
                before = NO_WORD
            else:
                out += token.text
                if token.action in ("kept", "clear"):
                    before = self.number.get(form(token.text.split()[-1]), NO_WORD)
                elif token.action != "gap" or set(map(kind, token.text)) - set("SAHX"):
                    before = NO_WORD
        return out

    def _identity(self, number: int | None, row: dict[str, Any]) -> tuple[int, int]:
        level = self.entry.level
        if level == "dataset":
            return 0, 0
        if level == "record":
            named = self.entry.record_key
            return identity_of(row["id"] if named is None else row[named], "record")
        if number is None:
            return identity_of(row["id"], "row")
        return identity_of(row["id"].to_bytes(8, "little") + number.to_bytes(8, "little"), "row")

    def _digits(self, token: Token, context: tuple[str, ...], identity: tuple[int, int]) -> str:
        content = plain_hash(token.source.encode(), *hash_keys(derive(*context, "content", length=16)))
        position = token.place if self.entry.level == "token" else 0
        block = (identity[0] ^ content[0], identity[1] ^ position ^ content[1] ^ (1 << 62))
        state, out = aes(derive(*context, "others"), *block)[0], ""
        for _ in token.source:
            out += str(state * 10 // BITS)
            state = state * 10 % BITS
        return out


def mixed(size: int, place: int, seed: int = 0) -> int:
    """The weight of a place, where importance is random: splitmix64 of the seed, the number of words and the place."""
    golden, *factors = 0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB
    state = seed * golden % BITS ^ (size << 32) ^ place
    for factor in factors:
        state = (state + golden) % BITS
        state = (state ^ state >> 30) * factor % BITS
        state ^= state >> 31
    return state >> 40
