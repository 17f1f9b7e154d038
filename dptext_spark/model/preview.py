"""A sentence, word by word: its treatment with the reason, the possible outputs, and one draw.

With importance, the sentence is chosen in as a whole, and each of its words once more alone.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace

import numpy as np
import pyarrow as pa

from dptext_spark.arrays import U64, Ids
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.guarantee import Guarantee
from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.lexicon.vocabulary import Vocabulary
from dptext_spark.mechanisms.base import PREVIOUS, Sampler
from dptext_spark.mechanisms.privacy_loss.accountant import RecordBound
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.model.record import record_account
from dptext_spark.randomness import Draws, RunKey
from dptext_spark.runtime.display import line, table
from dptext_spark.runtime.validation import Json
from dptext_spark.text.chunks import padded
from dptext_spark.text.engine import OutputSpans
from dptext_spark.text.names.public_names import KINDS, LISTED_KINDS
from dptext_spark.text.names.search import LIST_TYPES, NAME_TYPES
from dptext_spark.text.policy import FAKE, TYPES, Policy
from dptext_spark.text.selection import BEYOND, Texts, TokenSelection
from dptext_spark.text.tokens import listed
from dptext_spark.text.word_table import LOWERED, MASKED_NUMBER

MOST_CHARACTERS = 10_000
MOST_DRAWS, LEAST_DRAWS = 1_000, 5  # of a word whose law has no closed form
ALL_DRAWS = 5_000  # of all words of a text, as far as each has the least
# Treatment of a word by the settings: (action, reason).
STOP_KEPT = ("kept", "stop word")
NOT_CHOSEN = ("kept", "NOT CHOSEN, IN CLEAR")
BEYOND_BUDGET = ("masked", "beyond the budget")
LISTED, LISTED_KEPT = ("masked", "in a list"), ("kept", "in a list, in clear")
LISTED_NAME = ("pseudonym", "a name in a list")
UNIFORMLY, REMAPPED = "drawn uniformly", "drawn uniformly, then remapped"
OOV_FATE = {
    "mask": ("masked", "unknown"),
    "draw": (UNIFORMLY, "unknown"),
    "keep": ("kept", "UNKNOWN, IN CLEAR"),
}
NUMBER_FATE = {
    "random": ("random digits", "number"),
    "mask": ("masked", "number"),
    "keep": ("kept", "NUMBER, IN CLEAR"),
}


@dataclass(frozen=True)
class Word:
    """A word of the sentence, or an identifier.

    Attributes:
        action: drawn, kept, masked, fake, `drawn uniformly` (`, then remapped`) or `random digits`.
        reason: why; empty for a drawn word.
        became: its replacement in this draw.
        outputs: how many words it can become; None for a word that is not drawn.
        itself: the probability of staying what it is; None likewise.
        candidates: the likeliest outputs with their probabilities, most likely first.
        draws: None where these figures are those of the law; where it has no closed form, how many fresh draws they are
            counted on, `outputs` with them: shares, not probabilities.
    """

    text: str
    action: str
    reason: str
    became: str
    outputs: int | None = None
    itself: float | None = None
    candidates: tuple[tuple[str, float], ...] = ()
    draws: int | None = None


@dataclass(frozen=True)
class Preview:
    """A sentence, one draw, and the possible outputs of each word.

    Attributes:
        text: the sentence.
        output: the sanitized sentence.
        words: each of its words.
        guarantee: of a drawn word.
        remapped: a sentence on the effect of a remap; None where draws are released unchanged.
        plain: one draw by the same mechanism where draws depend on no other word; None where that was not asked for.
        record: ε of the sentence as one record; None where a record has no ε.
        lists_left_out: settings of lists of names that only a run can read.

    Examples:
        >>> shown = dp.preview(model, "Please send the parcel")
        >>> shown.text
        'Please send the parcel'
        >>> len(shown.output.split())
        4
    """

    text: str
    output: str
    words: tuple[Word, ...]
    guarantee: Guarantee
    record: RecordBound | None = None
    remapped: str | None = None
    plain: str | None = None
    lists_left_out: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """Return the numbers of words and of drawn words, without the sentence: it may be private."""
        drawn = sum(word.action == "drawn" for word in self.words)
        return line("Preview", f"{len(self.words):,} words", f"{drawn:,} drawn", f"{self.guarantee!r}")

    def _repr_html_(self) -> str:
        """Return the sentence before and after, with the treatment of each word, for a notebook."""
        rows = [
            (word.text, f"{word.became}: {word.action}{f', {word.reason}' if word.reason else ''}")
            for word in self.words
        ]
        return table("Preview", rows, pair=(self.text, self.output), note=str(self.guarantee))

    def as_dict(self) -> dict[str, Json]:
        """Return all fields, JSON-able."""
        words = [
            {**asdict(word), "candidates": [{"word": w, "probability": p} for w, p in word.candidates]}
            for word in self.words
        ]
        return {
            "text": self.text,
            "output": self.output,
            "words": words,
            "guarantee": self.guarantee.as_dict(),
            **({} if self.remapped is None else {"remapped": self.remapped}),
            **({} if self.plain is None else {"plain": self.plain}),
            **({} if self.record is None else {"record": self.record.as_dict()}),
            **({"lists_left_out": list(self.lists_left_out)} if self.lists_left_out else {}),
        }


def preview(model: Privatizer, text: str, *, top: int = 4) -> Preview:
    """Privatize one text with a fresh key, and explain it.

    Args:
        model: the compiled model.
        text: at most `MOST_CHARACTERS`.
        top: candidates listed for each word.

    Raises:
        SettingsError: the text is too long.
        DataError: it is no valid Unicode.

    Examples:
        >>> for word in dp.preview(model, "Please send the parcel").words:
        ...     print(word.text, word.action)
        Please drawn
        send drawn
        the kept
        parcel drawn
    """
    if len(text) > MOST_CHARACTERS:
        raise SettingsError(f"text: {len(text):,} characters are too many. Use at most {MOST_CHARACTERS:,}.")
    try:
        raw = text.encode("utf-8")
    except UnicodeEncodeError:
        raise DataError("text: not valid Unicode.") from None
    policy = model.policy
    spans = _cut_tokens(model, raw, replace(policy, stop_words="draw"))
    listed = {start: code for start, _, code in _cut_tokens(model, raw, policy)}
    identifiers = _identifiers(model, raw)
    # A draw depends on the position of its word, so each word is drawn again, alone, at its position.
    alone = [b" " * start + raw[start:end] for start, end, _ in spans]
    rows = _binary([raw, *alone])
    same_row = _binary([b""] * len(rows))
    levels = levels_of_words(model, rows.slice(0, 1), listed)
    starts = [start for start, _, _ in spans]
    chosen = chosen_alone(starts, levels, [len(row) for row in (raw, *alone)], len(model.samplers))
    key = RunKey.generate()
    drawn, _, placed = model.privatize_with_spans(
        rows, column="text", row_ids=same_row, key=key, chosen=chosen
    )
    output, *pieces = drawn.to_pylist()
    replaced = _replaced(placed, output)
    whole = chosen
    if chosen is not None:
        first = slice(0, len(starts))
        whole = chosen._replace(
            starts=chosen.starts[first], levels=chosen.levels[first], units=chosen.units[:1]
        )
    after = drawn_after(model, rows.slice(0, 1), key, whole)
    known = {(levels.get(start, 0), code) for start, code in listed.items() if code >= 0}
    candidates = {
        level: _candidates(sampler, model.vocabulary, sorted(c for at, c in known if at == level), top)
        for level, sampler in enumerate(model.samplers)
    }
    words, turn = [], iter(after)
    for (start, end, _), piece in zip(spans, pieces, strict=True):
        written = raw[start:end].decode("utf-8")
        code, level = listed.get(start, LOWERED), levels.get(start, 0)
        if start in identifiers:
            action, reason = identifiers[start]
            piece = replaced[start]  # alone, it may not be found
        else:
            action, reason = _fate(code, policy) if level in candidates or code < 0 else NOT_CHOSEN
            if level == BEYOND:
                action, reason = BEYOND_BUDGET
            if action == UNIFORMLY and model.sampler.remap is not None:
                action = REMAPPED
        if code >= 0 and level in candidates:
            at = f"level {level + 1}" if len(candidates) > 1 else ""
            candidate = candidates[level][code]
            if model.sampler.reads_context:
                before, output_word = next(turn)
                candidate, piece = _in_context(model, code, before, top), model.vocabulary.word(output_word)
            words.append(replace(candidate, text=written, reason=at, became=piece.lstrip(" ")))
        elif action == "kept":
            became = _lowered(written) if policy.case == "lower" else written
            words.append(Word(written, action, reason, became))
        else:
            words.append(Word(written, action, reason, piece.lstrip(" ")))
    account = record_account(model)
    draws = [(levels.get(start, 0), code) for start, code in listed.items() if code >= 0]
    counted = [
        draw for draw in (set(draws) if model.consistency == "record" else draws) if draw[0] in candidates
    ]
    record = account.of(sum(model.units.multiples[level] for level, _ in counted))
    if record is not None:
        record = replace(record, draws=len(counted))
    return Preview(
        text, output, tuple(_as_in(output, words)), model.guarantee(), record, _remapped(model.sampler)
    )


def _remapped(sampler: Sampler) -> str | None:
    """Describe the effect of a remap on draws; None without a remap."""
    remap = sampler.summary.remap
    if remap is None:
        return None
    return (
        f"Probabilities are those of what is released: of the {remap.outputs_before:,} words that can be drawn, "
        f"{remap.replaced:,} are replaced (Bayes remap; prior: {remap.prior}), so that {remap.outputs:,} can come out. Nobody "
        "learns more than from the draw itself, also where more words stay as they are."
    )


def drawn_after(
    model: Privatizer, text: pa.Array, key: RunKey, chosen: TokenSelection | None
) -> list[tuple[int, int]]:  # fmt: skip
    """Draw a text, and return (the word before, the output) of each draw that depends on it; none if no draw does."""
    noise, pairs = model.noise(_binary([b""]), "text", key, ""), list[tuple[int, int]]()
    draw = noise.in_context
    if draw is None:
        return []

    def note_draws(ids: Ids, before: Ids, blocks: U64) -> Ids:
        outputs = draw(ids, before, blocks)
        for place, (h, u) in enumerate(zip(before.tolist(), outputs.tolist(), strict=True)):
            pairs.append((int(outputs[place - 1]) if h == PREVIOUS else h, u))
        return outputs

    model.engine.privatize(text, noise._replace(in_context=note_draws), chosen)
    return pairs


def _in_context(model: Privatizer, word: int, before: int, top: int) -> Word:
    """Compute the possible outputs of a word after another, from its law there."""
    law = model.sampler.law_after(word, before)
    share, name = law.probability, model.vocabulary.word
    likely = [(name(int(law.ids[i])), float(share[i])) for i in np.lexsort((law.ids, -share))[:top]]
    return Word("", "drawn", "", "", len(law.ids), float(share[law.ids == word].sum()), tuple(likely))


def _as_in(output: str, words: list[Word]) -> Iterator[Word]:
    """Yield the words in their case in the output: a single capital's depends on the words around it."""
    at = 0
    for word in words:
        size, alone, became = len(word.became), word.became.casefold(), word.became
        for place in range(at, len(output) - size + 1):
            if output[place : place + size].casefold() == alone:
                at, became = place + size, output[place : place + size]
                break
        yield replace(word, became=became)


def _binary(rows: list[bytes]) -> pa.Array:
    """Wrap rows without `pa.array`, which imports pandas: at several tenths of a second."""
    offsets = np.cumsum([0, *(len(row) for row in rows)], dtype=np.int64)
    return pa.Array.from_buffers(
        pa.large_binary(), len(rows), [None, pa.py_buffer(offsets), pa.py_buffer(b"".join(rows))]
    )


def _fate(code: int, policy: Policy) -> tuple[str, str]:
    """Describe the treatment of a token, by its code under a policy that masks unknown tokens."""
    if code >= 0:
        return ("drawn", "")
    if code == LOWERED:
        return STOP_KEPT
    return NUMBER_FATE[policy.numbers] if code == MASKED_NUMBER else OOV_FATE[policy.oov]


def _candidates(sampler: Sampler, vocabulary: Vocabulary, words: list[int], top: int) -> dict[int, Word]:
    """Compute the possible outputs of each word: from its law, or from draws where that has no closed form."""
    name = vocabulary.word
    laws = {word: sampler.law(word) for word in words}
    unknown = np.array([word for word in words if laws[word] is None], np.int32)
    draws = min(MOST_DRAWS, max(LEAST_DRAWS, ALL_DRAWS // max(1, len(unknown))))
    blocks = np.arange(2 * draws * len(unknown), dtype=np.uint64).reshape(-1, 2)
    samples = sampler.sample(np.repeat(unknown, draws), Draws(secrets.token_bytes(32), blocks))
    counted = dict(zip(unknown.tolist(), samples.reshape(-1, draws), strict=True))
    candidates = {}
    for word, law in laws.items():
        if law is not None:
            ids, share = law.ids, law.probability
        else:
            ids, count = np.unique(counted[word], return_counts=True)
            share = count / draws
        likely = [(name(int(ids[i])), float(share[i])) for i in np.lexsort((ids, -share))[:top]]
        itself = float(share[ids == word].sum())
        tries = None if law is not None else draws
        candidates[word] = Word("", "drawn", "", "", len(ids), itself, tuple(likely), tries)
    return candidates


def _cut_tokens(privatizer: Privatizer, raw: bytes, policy: Policy) -> list[tuple[int, int, int]]:
    """Cut a text: (start, end, code) of each token, in bytes; unknown words and numbers count as masked."""
    engine = replace(privatizer.engine, policy=replace(policy, oov="mask", numbers="mask"))
    listing = listed(engine, _binary([raw]), (np.uint64(2), np.uint64(2)))
    return [(int(start), int(end), int(code)) for start, end, code in listing.tokens[: listing.size, :3]]


def _identifiers(privatizer: Privatizer, raw: bytes) -> dict[int, tuple[str, str]]:
    """Return the treatment and type of each identifier of a text, by its start."""
    finder = privatizer.engine.finder
    if finder is None:
        return {}
    data, bounds = padded(_binary([raw]))
    matches = finder.find(data, bounds, _binary([raw]))
    faked = finder.identifiers.wanted(FAKE)
    names = [finder.names[kind] for kind in matches.types]
    search = privatizer.policy.names
    finders = [
        *(["public lists"] if search.lists else []),
        *(["a classifier"] if search.model is not None else []),
    ]
    by = f"a name, by {' or '.join(finders)}"
    actions = [
        LISTED_KEPT if is_kept else LISTED if name in LIST_TYPES else LISTED_NAME if name in LISTED_KINDS else
        ("pseudonym", by) if name in KINDS else ("masked", by) if name in NAME_TYPES and search else
        ("fake" if name in faked else "masked", f"identifier ({name}), by a {'rule' if name in TYPES else 'provider'}")
        for name, is_kept in zip(names, matches.kept.tolist(), strict=True)
    ]  # fmt: skip
    return dict(zip(matches.spans.starts.tolist(), actions, strict=True))


def _replaced(placed: OutputSpans | None, output: str) -> dict[int, str]:
    """Return the replacement of each identifier of the first text, by its start."""
    if placed is None:
        return {}
    raw, spans = output.encode(), placed.found.spans
    first = np.flatnonzero(spans.owners == 0)
    return {
        int(spans.starts[i] - spans.rows[0]): raw[placed.places[i, 0] : placed.places[i, 1]].decode()
        for i in first
    }


def _lowered(written: str) -> str:
    """Return a kept word in lower case, with its own apostrophes, unlike the look-up form."""
    pairs = zip(written, look_up_form(written), strict=True)
    return "".join(char if char == "\u2019" else low for char, low in pairs)


def levels_of_words(privatizer: Privatizer, text: pa.Array, listed: Mapping[int, int]) -> dict[int, int]:
    """Return the level of each word that the policy draws, by where it begins; empty where importance chooses nothing.

    Args:
        privatizer: that chooses.
        text: one text.
        listed: the code of each listed token, by where it begins.

    Raises:
        SettingsError: importance is a column, and a sentence has none, or was not counted yet.
    """
    if privatizer.selector is None:
        return {}
    if privatizer.selector.reads_weights:
        raise SettingsError(
            "importance.provider: 'column' is not valid for a preview, because it has no column of weights. Choose idf "
            "with a corpus, attention or random."
        )
    selections = privatizer.choose([Texts(text)])
    assert selections is not None
    (chosen,) = selections
    levels = dict(zip(chosen.starts.tolist(), chosen.levels.tolist(), strict=True))
    return {start: levels[start] for start, code in listed.items() if code >= 0}


def chosen_alone(
    starts: Sequence[int], levels: Mapping[int, int], sizes: Sequence[int], none: int
) -> TokenSelection | None:
    """Return the choice of words for a batch: the text, then each word alone at its place; None for all words.

    Args:
        starts: where each word begins.
        levels: of the words that the policy draws, by where they begin.
        sizes: bytes of the text, then of each word's row.
        none: how many levels there are.
    """
    if not levels:
        return None
    offsets = np.cumsum(sizes[:-1])
    at = np.array([levels.get(start, none) for start in starts] * 2, np.uint8)
    places = np.concatenate([np.array(starts, np.int64), offsets + np.array(starts, np.int64)])
    return TokenSelection(places, at, none, np.zeros(len(sizes), np.int64))
