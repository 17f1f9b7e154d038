"""Linkage: can somebody who holds texts, or knows words, find which released row is whose?

Some rows, the queries, are looked for among all others. An adversary ranks the candidates of a query by a score. The audit counts
the others that score higher than the right one, and those that score the same. So a table is read once, in any number of parts.
The success among any smaller number of candidates is known exactly (:func:`success`).

    released     holds all source texts, and looks for the source of a released row: log P(released | source)
    source       holds a source text, and looks for its release: log P(released | source) - log P(released)
    ... by tf-idf   the same without any knowledge of the law: cosine of TF-IDF vectors of both rows' words
    3, 5, 10 words  knows so many of a row's distinct drawn words, at random, and looks for its release
    author       holds another text of the author of a row, and looks for its release, by TF-IDF

Without a law the first two are those by TF-IDF.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from scipy.stats import hypergeom

from dptext_spark.arrays import F64, I64, U64, Bools, Ids, offsets
from dptext_spark.audit.attacks import linkage_scores
from dptext_spark.audit.attacks.aligned_rows import LAW, RowWords, joined_rows, released_rows, source_rows
from dptext_spark.audit.attacks.linkage_scores import DrawBits, LongLaw, Ranks, ShortLaw, WordsFit
from dptext_spark.audit.results import AuditResult, Estimate, Group, ResultView, mean
from dptext_spark.audit.table_audit import Findings
from dptext_spark.audit.text_classifier import Pair
from dptext_spark.config.requirements import Metric, split_subject
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey, hash_keys
from dptext_spark.runtime.jit import compiled
from dptext_spark.text.tokens import drawn_words

SIZES = (3, 5, 10)  # words that an adversary knows
SOUGHT, LOST, NOT_ASKED = range(3)  # lost: the law excludes the right row itself
FEWEST = 50  # rows among which linkage is measured, and that classifiers learn from
FEW = 10  # candidates: a row that leaves fewer is singled out
RELEASED, SOURCE, AUTHOR = "released", "source", "author"
ROWS = "rows"  # in the place of an adversary: how many rows were counted
BY_WORDS = tuple(f"{size}_words" for size in SIZES)
BY_COSINE = {RELEASED: "tfidf", SOURCE: "tfidf_source"}
FIGURES = {
    RELEASED: "linkage",
    SOURCE: "linkage_source",
    **{name: f"linkage_{name}" for name in (*BY_COSINE.values(), *BY_WORDS, AUTHOR)},
}


class Pairs(NamedTuple):
    """Rows of a source beside their releases.

    Attributes:
        rows: uint64[n], identifies rows.
        authors: uint64[n], whose they are; None where that is not asked.
    """

    source: RowWords
    output: RowWords
    rows: U64
    authors: U64 | None = None


def joined(parts: Sequence[Pairs]) -> Pairs:
    """Put rows behind each other."""
    if len(parts) == 1:
        return parts[0]
    source, output = (joined_rows([getattr(part, side) for part in parts]) for side in ("source", "output"))
    authors = [part.authors for part in parts if part.authors is not None]
    return Pairs(
        source, output, np.concatenate([part.rows for part in parts]), np.concatenate(authors) if authors else None
    )  # fmt: skip


@compiled
def _add_cosines(
    words: Any, bounds: Any, terms: I64, weight: F64, unknown: float, rows: Any, own: Any, starts: I64, holders: I64,
    values: F64, true: F64, fit: Ranks, is_own: bool, authors: Any, whose: Any, counts: I64, sums: F64, touched: I64,
    reached: I64,
) -> None:  # fmt: skip
    """Score rows by the cosine of their TF-IDF vectors and those of queries.

    `words` int64[n] are terms, -1 for words that no sampled row holds; such a word has an identifier within its row in `terms`.
    `weight` float64[T] are inverse document frequencies, `unknown` that of all other words. The queries that hold term t are
    holders[starts[t]:starts[t + 1]], and `values` its normed weights there. `true` float64[Q] is filled where `is_own`, from row
    i for query i. Rows (uint64) equal to `own`, and those of the author `whose`, are no candidates; empty `authors`: nobody
    asks. `counts` int64[T], `sums` float64[Q] (zeros), `touched` int64[most words of a row] and `reached` int64[Q] are scratch.
    """
    for row in range(bounds.shape[0] - 1):
        many, square = 0, 0.0
        low, high = bounds[row], bounds[row + 1]
        for at in range(low, high):
            term = words[at]
            if term < 0:
                times = 1
                fresh = True
                for other in range(low, high):
                    if other != at and words[other] < 0 and terms[other] == terms[at]:
                        fresh = fresh and other > at
                        times += 1
                if fresh:
                    square += (times * unknown) ** 2
                continue
            if counts[term] == 0:
                touched[many] = term
                many += 1
            counts[term] += 1
        for i in range(many):
            square += (counts[touched[i]] * weight[touched[i]]) ** 2
        norm = math.sqrt(square) if square > 0.0 else 1.0
        many_queries = 0
        for i in range(many):
            term = touched[i]
            value = counts[term] * weight[term] / norm
            counts[term] = 0
            if is_own:
                for at in range(starts[term], starts[term + 1]):
                    if holders[at] == row:
                        true[row] += values[at] * value
                continue
            for at in range(starts[term], starts[term + 1]):
                q = holders[at]
                if sums[q] == 0.0:
                    reached[many_queries] = q
                    many_queries += 1
                sums[q] += values[at] * value
        for i in range(many_queries):
            q = reached[i]
            score = sums[q]
            sums[q] = 0.0
            if rows[row] == own[q] or (authors.shape[0] > 0 and authors[row] == whose[q]):
                continue
            fit.possible[q] += 1
            if score > true[q] + 1e-12:
                fit.better[q] += 1
            elif score >= true[q] - 1e-12:
                fit.equal[q] += 1


class LinkAttack:
    """Looks for the queries among rows that are not their own. `fits`: rank of each query, by the adversary's name."""

    def __init__(self, names: Sequence[str], queries: int) -> None:
        """Count nothing yet."""
        self.fits = {name: Ranks.none(queries) for name in names}

    def add(self, candidates: Pairs) -> None:
        """Count some candidates."""
        raise NotImplementedError

    def standing(self, name: str) -> I64:
        """Return for each query whether it is looked for, is `LOST`, or is `NOT_ASKED`: int64[Q]; after the first candidates."""
        raise NotImplementedError


class Laws:
    """The law of a model, in the form that rows are scored by."""

    def __init__(self, privatizer: Privatizer, marginal: F64 | None = None) -> None:
        """Read it; `marginal` is log P(output) of a long law where that is known, float64[V]."""
        sampler = privatizer.sampler
        self.sampler, self.in_context = sampler, sampler.reads_context
        self.prior = prior_of(privatizer)
        self.is_long = not (sampler.has_short_laws or sampler.reads_context)
        self.long: LongLaw | None = None
        if self.is_long:
            known = DrawBits.of(sampler, self.prior).marginal if marginal is None else marginal
            self.long = LongLaw(sampler, self.prior, known)
        elif not self.in_context:
            self._short = ShortLaw.read(sampler, self.prior)

    def uniform(self, *, back: bool) -> F64:
        """Return log P(output) of an unknown word, where any word of the lexicon may replace it: float64[V].

        With `back` minus log P(output) under the prior; in context, of the word by itself. 0 where no known word leads to it.
        """
        size, remap = len(self.prior), self.sampler.remap
        outputs = np.ones(size) if remap is None else np.bincount(remap, minlength=size)
        with np.errstate(divide="ignore", invalid="ignore"):
            score = np.log(outputs / size)
            if back:
                public = np.log(self.prior) if self.in_context else (self.long or self._short).marginal
                score = np.where(np.isfinite(score - public), score - public, 0.0)
        return np.asarray(score)

    def short(self, released: RowWords) -> tuple[I64, ShortLaw]:
        """Return the key of each released word, int64[n], and the law by it; in context each word before it is another key."""
        if not self.in_context:
            return released.ids.astype(np.int64), self._short
        pairs = (np.maximum(released.ids, 0).astype(np.int64) << 32) + released.before + 1
        distinct, keys = np.unique(pairs, return_inverse=True)
        outputs, before = (distinct >> 32).astype(np.int32), ((distinct & 0xFFFFFFFF) - 1).astype(np.int32)
        law = self.sampler.inputs_after(outputs, before)
        assert law is not None
        return keys.reshape(-1), ShortLaw.of(law.starts, law.words, law.probability, self.prior)


_NO_LAW = ShortLaw(np.zeros(1, np.int64), np.zeros(0, np.int32), *np.zeros((3, 0)))


def _query_blocks(words: Ids, of_query: I64, queries: int) -> list[tuple[I64, Ids]]:
    """Group consecutive queries so that each group has at most `TABLE_WORDS` different words, or is one query.

    `words` int32[m] are those of the queries; `of_query` int64[m] says of which, ascending.
    """
    bounds = offsets(np.bincount(of_query, minlength=queries))
    groups: list[tuple[I64, Ids]] = []
    start, words_so_far = 0, np.zeros(0, np.int32)
    for query in range(queries):
        more = np.union1d(words_so_far, words[bounds[query] : bounds[query + 1]])
        if len(more) > linkage_scores.TABLE_WORDS and query > start:
            groups.append((np.arange(start, query), words_so_far))
            start, more = query, np.unique(words[bounds[query] : bounds[query + 1]])
        words_so_far = more.astype(np.int32)
    return [*groups, (np.arange(start, queries), words_so_far)] if queries > start else groups


class ByLaw(LinkAttack):
    """An adversary with the texts and the law; `back` looks for the release of a source row, else for the source of a release."""

    def __init__(self, laws: Laws, queries: Pairs, *, back: bool) -> None:
        """Take the queries."""
        name = SOURCE if back else RELEASED
        super().__init__([name], len(queries.rows))
        self.laws, self.queries, self.back, self.fit = laws, queries, back, self.fits[name]
        self.side = queries.source if back else queries.output
        self.keys, self.law = (np.zeros(0, np.int64), _NO_LAW) if laws.is_long else laws.short(queries.output)
        self.true = np.full(len(queries.rows), linkage_scores.NEVER)
        every = np.arange(len(queries.rows))
        self.groups = [(every, np.zeros(0, np.int32))]
        if laws.is_long:
            drawn = np.flatnonzero(self.side.kind == LAW if back else self.side.ids >= 0)
            self.groups = _query_blocks(self.side.ids[drawn], self.side.rows[drawn], len(every))
        self.uniform, self.is_scored = laws.uniform(back=back), False

    def _table(self, words: Ids) -> tuple[F64, I64]:
        """Return the table of the words of some queries, and the row of each word."""
        if self.laws.long is None:
            return np.zeros((0, 0)), np.zeros(0, np.int64)
        slots = np.full(len(self.laws.prior), -1, np.int64)
        slots[words] = np.arange(len(words))
        return (self.laws.long.by_word if self.back else self.laws.long.by_output)(words), slots

    def add(self, candidates: Pairs) -> None:
        """Count some candidates."""
        others = candidates.output if self.back else candidates.source
        keys, law = self.keys, self.law
        if self.back and not self.laws.is_long:
            keys, law = self.laws.short(others)
        order = np.argsort(others.shape, kind="stable")
        shapes = others.shape[order]
        mode, own = int(self.laws.is_long), _room(self.queries.source)
        room = own if self.back else _room(candidates.source)
        for chosen, words in self.groups:
            table, slots = self._table(words)
            if not self.is_scored:
                linkage_scores.own_scores(
                    self.queries.source, self.queries.output, chosen, self.keys, self.law, table, slots, mode, self.back,
                    self.true, own, self.uniform,
                )  # fmt: skip
            shape = self.side.shape[chosen]
            low, high = (np.searchsorted(shapes, shape, side=side) for side in ("left", "right"))
            linkage_scores.rank(
                self.side, chosen, others, order, low, high, self.queries.rows, candidates.rows, keys, law, table, slots,
                mode, self.back, self.true, self.fit, room, self.uniform,
            )  # fmt: skip
        self.is_scored = True

    def standing(self, name: str) -> I64:  # noqa: ARG002  (it has one)
        """Mark the lost queries."""
        return np.where(self.true == linkage_scores.NEVER, LOST, SOUGHT)


class ByWords(LinkAttack):
    """An adversary with some of a row's distinct drawn words, looking for its release."""

    def __init__(self, laws: Laws, queries: Pairs, key: RunKey, *, only_first: bool) -> None:
        """Choose the words that are known.

        Args:
            laws: the law.
            queries: with their releases.
            key: which words are known follows from it.
            only_first: whether equal released words of a row are one draw.
        """
        n = len(queries.rows)
        super().__init__(BY_WORDS, n)
        self.laws, self.only_first = laws, only_first
        self.own = queries.rows
        self.known, self.counts = _known_words(queries.source, key)
        self.fit = WordsFit.none(n, SIZES)
        is_known = np.arange(self.known.shape[1]) < self.counts[:, None]
        query, rank = np.nonzero(is_known)
        words = self.known[is_known].astype(np.int32)
        self.groups = _query_blocks(words, query, n) if laws.is_long else [(np.arange(n), words)]
        self.slots = np.full(len(laws.prior), -1, np.int64)
        distinct = np.unique(words)
        self.slots[distinct] = np.arange(len(distinct))
        self.of_words = laws.prior[distinct]
        order = np.argsort(self.slots[words], kind="stable")
        self.starts = offsets(np.bincount(self.slots[words], minlength=len(distinct)))
        self.holders, self.ranks = query[order].astype(np.int64), rank[order].astype(np.int64)
        self.queries: Pairs | None = queries  # until their own releases are scored
        for place, name in enumerate(BY_WORDS):
            self.fits[name] = Ranks(*(getattr(self.fit, count)[:, place] for count in Ranks._fields))

    def add(self, candidates: Pairs) -> None:
        """Count some candidates."""
        sides = [candidates] if self.queries is None else [self.queries, candidates]
        for chosen, words in self.groups:
            table = None if self.laws.long is None else self.laws.long.absent(words)
            for side in sides:
                self._score(side, chosen, words, table)
                if side is self.queries:
                    self.fit.true[chosen] = self.fit.scores[chosen]
        self.queries = None

    def _score(self, side: Pairs, chosen: I64, words: Ids, table: F64 | None) -> None:
        """Score released rows for some queries by their words."""
        n, both = len(self.own), (side.rows, self.own)
        if table is None:
            keys, law = self.laws.short(side.output)
            sums, room = np.zeros((n, len(SIZES))), np.zeros(len(self.of_words))
            linkage_scores.rank_known(
                side.output, keys, law, *both, self.slots, self.starts, self.holders, self.ranks, self.of_words, self.fit,
                self.only_first, room, room.astype(np.int64), sums, sums.astype(np.int64), np.zeros(n, np.int64),
            )  # fmt: skip
        else:
            slots = np.zeros(len(self.laws.prior), np.int64)
            slots[words] = np.arange(len(words))
            linkage_scores.rank_known_by_table(
                side.output, table, linkage_scores.by_chance(self.laws.prior[words]), *both, chosen, slots[self.known],
                self.counts, self.fit, self.only_first, np.zeros(len(words)),
            )  # fmt: skip

    def standing(self, name: str) -> I64:
        """Mark queries that have too few words, or are lost."""
        place = BY_WORDS.index(name)
        return np.where(
            self.counts < SIZES[place],
            NOT_ASKED,
            np.where(self.fit.true[:, place] == linkage_scores.NEVER, LOST, SOUGHT),
        )


def _known_words(source: RowWords, key: RunKey) -> tuple[I64, I64]:
    """Return words that are known of each row, int64[Q, 10] in random order, and how many there are, int64[Q]."""
    drawn = np.flatnonzero(source.kind == LAW)
    row, word = np.unique(np.stack([source.rows[drawn], source.ids[drawn]]), axis=1)
    seed = int.from_bytes(key.derive("linkage words", length=16), "little")
    order = np.lexsort((np.random.default_rng(seed).random(len(row)), row))
    sizes = np.bincount(row, minlength=len(source.shape))
    rank = np.arange(len(row)) - np.repeat(offsets(sizes)[:-1], sizes)
    first = rank < SIZES[-1]
    known = np.zeros((len(sizes), SIZES[-1]), np.int64)
    known[row[first], rank[first]] = word[order][first]
    return known, np.minimum(sizes, SIZES[-1]).astype(np.int64)


def _room(source: RowWords) -> I64:
    return np.zeros(int(np.diff(source.bounds).max(initial=0)) + 1, np.int64)


class ByCosine(LinkAttack):
    """An adversary who compares the words of two rows and knows no law.

    Inverse document frequencies log((1 + n)/(1 + df)) + 1 come from the right rows of all queries, a sample of the candidates.
    """

    def __init__(self, name: str, queries: RowWords, right: RowWords, pairs: Pairs) -> None:
        """Score the right row of each query."""
        n = len(queries.shape)
        super().__init__([name], n)
        self.own, self.is_source = pairs.rows, right is pairs.source
        self.whose = np.zeros(0, np.uint64) if pairs.authors is None else pairs.authors
        self.terms = np.unique(np.concatenate([right.plain, queries.plain]))
        in_rows = np.unique(np.stack([np.searchsorted(self.terms, right.plain), right.rows]), axis=1)
        frequency = np.bincount(in_rows[0], minlength=len(self.terms))
        self.weight = np.log((1 + n) / (1 + frequency)) + 1.0
        self.unknown = math.log(1 + n) + 1.0
        (term, query), times = np.unique(
            np.stack([np.searchsorted(self.terms, queries.plain), queries.rows]), axis=1, return_counts=True
        )
        value = times * self.weight[term]
        norm = np.sqrt(np.bincount(query, weights=value**2, minlength=n))
        self.holders, self.values = query.astype(np.int64), value / norm[query]
        self.starts = offsets(np.bincount(term, minlength=len(self.terms)))
        self.true, self.fit = np.zeros(n), self.fits[name]
        self._run(right, pairs.rows, self.whose, True)

    def standing(self, name: str) -> I64:  # noqa: ARG002  (it has one)
        """Mark queries that have nothing in common with the right row."""
        return np.where(self.true == 0.0, LOST, SOUGHT)

    def add(self, candidates: Pairs) -> None:
        """Count some candidates."""
        side = candidates.source if self.is_source else candidates.output
        authors = candidates.authors if len(self.whose) and candidates.authors is not None else self.whose[:0]
        self._run(side, candidates.rows, authors, False)

    def _run(self, side: RowWords, rows: U64, authors: U64, is_own: bool) -> None:
        place = np.minimum(np.searchsorted(self.terms, side.plain), len(self.terms) - 1)
        words = (
            np.where(self.terms[place] == side.plain, place, -1) if len(self.terms) else np.zeros(0, np.int64)
        )
        _add_cosines(
            words, side.bounds, side.plain.view(np.int64), self.weight, self.unknown, rows, self.own, self.starts,
            self.holders, self.values, self.true, self.fit, is_own, authors, self.whose,
            np.zeros(len(self.terms), np.int64), np.zeros(len(self.true)), _room(side), np.zeros(len(self.true), np.int64),
        )  # fmt: skip


class Linker:
    """All adversaries against a release, and how they fare as its rows come in."""

    def __init__(
        self,
        queries: Pairs,
        key: RunKey,
        authors: Pairs | None = None,
        laws: Laws | None = None,
        *,
        shared: bool,
        asked: Collection[str] = FIGURES,
    ) -> None:
        """Get ready.

        Args:
            queries: rows that are looked for, see :func:`read_pairs`.
            key: which words an adversary knows follows from it.
            authors: a text that is held beside the release of another row of its author.
            laws: the law; None where it is not known.
            shared: whether equal words of a row are one draw.
            asked: names of adversaries; no other is tried.
        """
        sides = {RELEASED: (queries.output, queries.source), SOURCE: (queries.source, queries.output)}
        self.adversaries: list[LinkAttack] = [
            ByCosine(name, *sides[way], queries) for way, name in BY_COSINE.items() if name in asked
        ]
        if laws is not None:
            self.adversaries += [ByLaw(laws, queries, back=name == SOURCE) for name in sides if name in asked]
            if not set(asked).isdisjoint(BY_WORDS):
                self.adversaries.append(ByWords(laws, queries, key, only_first=shared))
        if authors is not None:
            self.adversaries.append(ByCosine(AUTHOR, authors.source, authors.output, authors))

    def add(self, candidates: Pairs) -> None:
        """Count some rows; those of the queries are recognised."""
        for adversary in self.adversaries:
            adversary.add(candidates)

    @property
    def standings(self) -> Iterator[tuple[str, I64, Ranks]]:
        """Yield each adversary's name, its lost and unasked queries, and their ranks."""
        for adversary in self.adversaries:
            for name, fit in adversary.fits.items():
                yield name, adversary.standing(name), fit


def has_law(privatizer: Privatizer) -> bool:
    """Check that rows can be scored by a law: there is one, and it draws every word that the policy draws."""
    return privatizer.selector is None and privatizer.sampler.law(0) is not None


def told_by(privatizer: Privatizer) -> DrawBits | None:
    """Compute the information of a draw; None where there is no law to read."""
    return DrawBits.of(privatizer.sampler, prior_of(privatizer)) if has_law(privatizer) else None


def prior_of(privatizer: Privatizer) -> F64:
    """Compute the public frequency of the words that the policy draws, float64[V]."""
    return of_drawn(privatizer.prior.words, drawn_words(privatizer.engine))


def read_pairs(
    privatizer: Privatizer, listed: Privatizer, texts: Pair[Sequence[pa.Array]], rows: U64, key: RunKey,
    authors: U64 | None = None,
) -> Pairs:  # fmt: skip
    """Read rows and their releases.

    Args:
        privatizer: the model that made the release.
        listed: the same with these rows' lists of names.
        texts: a string array [n] for each text column, of the source and of the release.
        rows: uint64[n], identifies rows.
        key: of the hashes.
        authors: uint64[n].
    """
    keys, level = hash_keys(key.derive("linkage words", length=16)), privatizer.consistency
    return Pairs(
        source_rows(listed.engine, texts.plain, keys, level),
        released_rows(privatizer.engine, texts.private, keys, level), rows, authors,
    )  # fmt: skip


def success(better: I64, equal: I64, lost: Any, others: int, candidates: int, top: int) -> F64:
    """Compute the chance that each query's own row is in the first `top` of a random candidate set that holds it: float64[Q].

    Equal scores are put in a random order. The set is drawn without replacement: the number of better ones in it is
    hypergeometric, so that this is exact.

    Args:
        better: int64[Q], of the others, how many score higher.
        equal: int64[Q], how many the same.
        lost: bool[Q], queries that count as misses.
        others: rows beside the query's own.
        candidates: size of the set, at most others + 1.
        top: how many are looked at.
    """
    last = int((better + equal).max(initial=0)) + 1
    if candidates > others:
        share = (np.arange(last + 1) < top).astype(np.float64)
    else:
        share = hypergeom.cdf(top - 1, others, np.minimum(np.arange(last + 1), others), candidates - 1)
    total = np.append(0.0, np.cumsum(share))
    shares = (total[better + equal + 1] - total[better]) / (equal + 1)
    return np.where(lost, 0.0, shares)


@dataclass(frozen=True, kw_only=True)
class Linkage(AuditResult):
    """Result of linking rows.

    Attributes:
        first: how often the right row is the first of all candidates, by adversary.
        first_ten: how often it is among the first ten.
        guess: how often a random row is the right one.
        singled_out: share of the rows whose drawn words leave fewer than ten candidates; None without a law, and so the others.
        bits: average information of a draw on its word.
        bits_by_set: the part that the output set reveals.
        words: drawn words that single out one of the candidates, about.
    """

    name: str = "linkage"
    measures: str = "How often an adversary links a released row to its source row, or the other way round."
    knows: str | None = (
        "Each adversary holds the named texts, and knows the mechanism with all settings and public word "
        "frequencies, but not the key. TF-IDF knows the texts alone."
    )
    first: Mapping[str, Estimate]
    first_ten: Mapping[str, Estimate]
    candidates: int
    queries: Mapping[str, int]
    guess: float
    singled_out: Estimate | None = None
    bits: float | None = None
    bits_by_set: float | None = None
    words: int | None = None

    def shown(self) -> ResultView:
        """Show both figures of each adversary."""
        groups = (
            Group("first", self.first, "share of the rows", "The right row ranks first."),
            Group("among the first ten", self.first_ten, "share of the rows"),
        )
        known = {
            "rows with fewer than ten candidates": self.singled_out,
            "bits that a draw reveals about its word": self.bits,
            "by the output set alone": self.bits_by_set,
            "drawn words that single out one of the candidates": self.words,
        }
        single = {name: value for name, value in known.items() if value is not None}
        return ResultView(groups, {"a random guess": self.guess}, {"candidates": self.candidates, **single})


TOPS = (1, 10)
NO_LAW = (
    "linkage by an adversary who knows the law: this mechanism has no law to read, or importance chose "
    "the words. The adversary shown compares words by TF-IDF; one who knows more may find more"
)


@dataclass(frozen=True, eq=False)
class Standings:
    """Rank of an adversary's queries among all other rows.

    Attributes:
        lost: bool[q], of which the right row itself is excluded.
        others: rows beside a query's own.
    """

    fit: Ranks
    lost: Bools
    others: int

    @property
    def singled_out(self) -> Estimate:
        """The share of the rows that leave fewer than `FEW` candidates."""
        return mean((self.fit.possible + 1 < FEW).astype(np.float64))

    def rate(self, top: int, candidates: int | None = None) -> Estimate:
        """Compute how often the right row is in the first `top` of so many candidates; None: of all."""
        fit, among = self.fit, self.others + 1 if candidates is None else candidates
        return mean(success(fit.better, fit.equal, self.lost, self.others, among, top))


def findings_of(counted: pa.Table, asked: Sequence[str], told: DrawBits | None) -> Findings:
    """Return the figures of linkage.

    Args:
        counted: (adversary, query, standing, better, equal, possible), summed over all rows.
        asked: figures among a number of candidates that requirements name.
        told: information in the law that adversaries know; None where there is none.
    """
    table = counted.sort_by([("adversary", "ascending"), ("query", "ascending")])
    names = np.asarray(table.column("adversary").to_pylist())
    columns = {name: table.column(name).to_numpy() for name in ("standing", *Ranks._fields)}
    candidates = int(columns["better"][names == ROWS][0])
    standings: dict[str, Standings] = {}
    for name in FIGURES:
        chosen = (names == name) & (columns["standing"] != NOT_ASKED)
        if chosen.any():
            # Of a sample a query's own row may not be part.
            counts = [np.minimum(columns[count][chosen], candidates - 1) for count in Ranks._fields]
            standings[name] = Standings(Ranks(*counts), columns["standing"][chosen] == LOST, candidates - 1)
    if told is None:
        standings |= {name: standings[other] for name, other in BY_COSINE.items()}
    rates = {top: {name: standing.rate(top) for name, standing in standings.items()} for top in TOPS}
    figures = [rates[top][name].metric(f"{FIGURES[name]}_top{top}") for name in standings for top in TOPS]
    figures += [Metric("linkage_candidates", candidates), Metric("linkage_guess", 1 / candidates)]
    singled = None if told is None else standings[RELEASED].singled_out
    if singled is not None:
        figures.append(singled.metric("singled_out"))
    by_figure = {
        f"{FIGURES[name]}_top{top}": (standing, top) for name, standing in standings.items() for top in TOPS
    }
    for subject in asked:
        name, among = split_subject(subject)
        if name not in by_figure or among is None or among > candidates:
            figures.append(Metric(subject, None))  # not measured
            continue
        standing, top = by_figure[name]
        figures.append(standing.rate(top, among).metric(subject))
    result = Linkage(
        first=rates[1], first_ten=rates[10], candidates=candidates,
        queries={name: len(standing.lost) for name, standing in standings.items()}, guess=1 / candidates, singled_out=singled,
        bits=None if told is None else told.bits, bits_by_set=None if told is None else told.by_set,
        words=None if told is None else told.words(candidates),
    )  # fmt: skip
    return Findings(figures, [result], [NO_LAW] if told is None else [])
