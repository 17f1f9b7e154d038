"""The files of a token classifier in ONNX: what its labels stand for, and what its graph may hold.

It comes from a folder, or from a package that is installed here and whose code is not run. Nothing is downloaded, and nothing
is read but three files: `config.json`, `tokenizer.json` and one `.onnx`, which stands beside them or in a folder `onnx`.

The graph holds all its weights, takes `input_ids` and, if it likes, `attention_mask` and `token_type_ids`, gives `logits`, and
has operators of onnxruntime's own only, none of which draws at random.

Its labels stand for persons, locations, organizations and other names. A label is `O` (no name), a plain name such as `PER`, or
one with the place of a word within a name: `B-PER` begins it, `I-PER` goes on; `E`, `S`, `L` and `U` are read as well. Names
are read without case and punctuation, so that `GIVEN_NAME`, `GivenName` and `given-name` are one. What neither table below
holds counts as `other`: a name too many is masked rather than one too few.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from dptext_spark.encoder.weights import CONFIG, package_places
from dptext_spark.errors import SettingsError
from dptext_spark.runtime.record import Record

KINDS = PERSON, LOCATION, ORGANIZATION, OTHER = ("person", "location", "organization", "other")
OUTSIDE = "O"
MOST_LABELS = 1_000
KINDS_OF: Mapping[str, tuple[str, ...]] = {
    PERSON: (
        "per", "pers", "person", "persons", "personname", "name", "fullname", "givenname", "given", "firstname", "first",
        "middlename", "middle", "surname", "lastname", "last", "familyname", "patronymic", "nickname", "patient", "doctor",
        "staff", "hcp",
    ),
    LOCATION: (
        "loc", "location", "locations", "place", "gpe", "geo", "city", "town", "street", "streetname", "streetaddress", "address",
        "state", "county", "country", "region", "province", "district", "fac", "facility", "nearbygpscoordinate",
    ),
    ORGANIZATION: (
        "org", "organization", "organisation", "organizations", "company", "companyname", "corporation", "corp", "group",
        "hospital", "school", "university",
    ),
}  # fmt: skip
# Identifiers are found by rules (policy.identifiers), and numbers have a rule of their own (policy.numbers); the rest is no name.
LEFT_OUT = frozenset({
    "email", "emailaddress", "url", "uri", "website", "phone", "phonenumber", "telephone", "telephonenumber", "tel", "fax",
    "username", "user", "handle", "ip", "ipaddress", "ipv4", "ipv6", "mac", "macaddress", "iban", "bic", "swift", "taxid", "tax",
    "taxnumber", "bankaccount", "account", "accountnumber", "accountnum", "routingnumber", "governmentid", "passport",
    "passportnumber", "driverslicense", "driverlicense", "driverlicensenum", "licenseplate", "idcard", "idcardnum", "idnum", "id",
    "ssn", "socialnumber", "socialnum", "socialsecuritynumber", "creditcard", "creditcardnumber", "card", "cvv", "creditcardcvv",
    "pin", "password", "pass", "building", "buildingnumber", "buildingnum", "secondaryaddress", "zipcode", "zip", "postcode",
    "postalcode", "medicalrecord", "number", "num", "date", "dateofbirth", "dob", "birthdate", "bod", "time", "datetime", "age",
    "money", "amount", "percent", "quantity", "cardinal", "ordinal", "currency", "language", "sex", "gender", "title", "prefix",
})  # fmt: skip
_LABEL = re.compile(r"(?:[BIESLU]-)?([A-Za-z][A-Za-z0-9 _./-]{0,63})")


@dataclass(frozen=True)
class Labels(Record):
    """The labels of a classifier.

    Attributes:
        names: those without `B-` and `I-` that count as names, in the order of their ids, such as `GIVEN_NAME`.
        kinds: the kind of each, a position in `KINDS`.
        of_logits: the position in `names` of each logit; -1 for `O` and what is left out.
    """

    names: tuple[str, ...]
    kinds: tuple[int, ...]
    of_logits: tuple[int, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The kinds that occur, in the order of `KINDS`."""
        return tuple(kind for place, kind in enumerate(KINDS) if place in self.kinds)


def kind_of(name: str) -> str | None:
    """Return the kind of a label without `B-` and `I-`; None for what is left out."""
    plain = re.sub("[^a-z0-9]", "", name.lower())
    if plain in LEFT_OUT:
        return None
    return next((kind for kind, names in KINDS_OF.items() if plain in names), OTHER)


def labels_of(id2label: object, field: str) -> Labels:
    """Read the labels of a classifier.

    Args:
        id2label: as `config.json` has it: ids from 0 as strings, a label each.
        field: what messages call it.

    Raises:
        SettingsError: there are none, ids are missing, a label is no label, none is `O`, or none stands for a name.
    """
    if not isinstance(id2label, Mapping) or not id2label:
        raise SettingsError(f"{field}: config.json holds no id2label; valid: a label for each id from 0.")
    if len(id2label) > MOST_LABELS:
        raise SettingsError(
            f"{field}: id2label has {len(id2label):,} labels; valid: at most {MOST_LABELS:,}."
        )
    given = [id2label.get(str(place)) for place in range(len(id2label))]
    if any(label is None for label in given):
        raise SettingsError(
            f"{field}: id2label misses ids; valid: one label for each id from 0 to {len(given) - 1}."
        )
    names: list[str] = []
    of_logits = []
    for place, label in enumerate(given):
        found = _LABEL.fullmatch(label) if isinstance(label, str) else None
        if found is None:
            raise SettingsError(
                f"{field}: the label of id {place} is none; valid: O, names such as PER, or B-PER and I-PER."
            )
        name = found[1]
        if label == OUTSIDE or kind_of(name) is None:
            of_logits.append(-1)
            continue
        if name not in names:
            names.append(name)
        of_logits.append(names.index(name))
    if OUTSIDE not in given:
        raise SettingsError(
            f"{field}: none of the {len(given)} labels is O; valid: O for words that are no name."
        )
    kinds = tuple(KINDS.index(kind) for name in names if (kind := kind_of(name)) is not None)
    if all(KINDS[kind] == OTHER for kind in kinds):
        raise SettingsError(
            f"{field}: no label stands for a person, a location or an organization; valid: labels such as "
            "PER, GIVEN_NAME, LOC, CITY, ORG."
        )
    return Labels(tuple(names), kinds, tuple(of_logits))


TOKENIZER = "tokenizer.json"
GRAPH = "*.onnx"
SUBFOLDER = "onnx"
MOST_BYTES = 1 << 30
INPUTS = IDS, MASK, SEGMENTS = ("input_ids", "attention_mask", "token_type_ids")
LOGITS = "logits"
DOMAINS = frozenset({"", "ai.onnx", "ai.onnx.ml", "com.microsoft"})
RANDOM = frozenset({
    "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
})  # fmt: skip
OUTWARD = frozenset({"EPContext"})  # whose content is a file of its own
_NEEDED = f"a folder with {CONFIG}, {TOKENIZER} and one .onnx file, there or in its folder {SUBFOLDER}"


class ClassifierFiles(NamedTuple):
    """The files of a classifier.

    Attributes:
        config: its settings.
        tokenizer: its tokenizer.
        graph: its graph, with all weights.
    """

    config: Path
    tokenizer: Path
    graph: Path


def find_classifier(source: str | Path, field: str) -> ClassifierFiles:
    """Find the files of a classifier.

    Args:
        source: a folder, or the name of an installed package that holds one.
        field: what messages call it.

    Raises:
        SettingsError: there is neither such a folder nor such a package, a file is missing or one too many, or they
            are too large.
    """
    folder = Path(source)
    if not folder.is_dir():
        folder = _of_package(str(source), field)
    for name, what in ((CONFIG, "settings"), (TOKENIZER, "tokenizer")):
        if not (folder / name).is_file():
            raise SettingsError(f"{field}: {str(source)!r} holds no {what} ({name}); valid: {_NEEDED}.")
    graphs = _graphs(folder)
    if len(graphs) != 1:
        given = ", ".join(repr(str(one.relative_to(folder))) for one in graphs) or "none"
        raise SettingsError(f"{field}: {str(source)!r} holds {given} as .onnx files; valid: {_NEEDED}.")
    found = ClassifierFiles(folder / CONFIG, folder / TOKENIZER, graphs[0])
    size = sum(file.stat().st_size for file in found)
    if size > MOST_BYTES:
        raise SettingsError(
            f"{field}: the files of {str(source)!r} have {size:,} bytes; valid: at most {MOST_BYTES:,}."
        )
    return found


def _graphs(folder: Path) -> list[Path]:
    return sorted([*folder.glob(GRAPH), *(folder / SUBFOLDER).glob(GRAPH)])


def _of_package(name: str, field: str) -> Path:
    """Return the folder within an installed package; its code is not run."""
    places = package_places(name)
    if not places:
        raise SettingsError(
            f"{field}: {name!r} is neither a folder nor an installed package; valid: {_NEEDED}, or the name of a package that "
            "holds one. Nothing is downloaded."
        )
    inside = {
        file.parent
        for place in places
        for file in place.rglob(CONFIG)
        if (file.parent / TOKENIZER).is_file() and _graphs(file.parent)
    }
    if len(inside) != 1:
        raise SettingsError(
            f"{field}: the package {name!r} holds {len(inside) or 'no'} classifiers; valid: one, which is {_NEEDED}."
        )
    return inside.pop()


def check_graph(written: bytes, labels: int, field: str) -> tuple[str, ...]:
    """Refuse a graph that is no classifier, or that needs more than onnxruntime and its own bytes.

    Args:
        written: the bytes of an `.onnx` file.
        labels: how many logits a sub-word must have.
        field: what messages call it.

    Returns:
        Its inputs, of `INPUTS`.

    Raises:
        SettingsError: it cannot be read, has other inputs or outputs, another number of labels, operators of others or random
            ones, or weights in other files.
    """
    import onnx

    try:
        model = onnx.load_model_from_string(written)
    except Exception as error:  # protobuf raises no narrower one
        raise SettingsError(f"{field}: its graph cannot be read ({type(error).__name__}).") from None
    own = {function.domain for function in model.functions}
    for node in _nodes(model):
        if node.domain not in DOMAINS and node.domain not in own:
            raise SettingsError(
                f"{field}: its graph has an operator of {node.domain!r}; valid: those of onnxruntime "
                f"({', '.join(sorted(DOMAINS - {''}))})."
            )
        if node.op_type in RANDOM | OUTWARD:
            raise SettingsError(
                f"{field}: its graph has the operator {node.op_type}; valid: none that draws at random or reads a file."
            )
    if any(tensor.data_location or len(tensor.external_data) for tensor in _tensors(model)):
        raise SettingsError(
            f"{field}: its graph has weights in other files; valid: one .onnx that holds all."
        )
    return _signature(model.graph, labels, field)


def _signature(graph: Any, labels: int, field: str) -> tuple[str, ...]:
    """Check inputs and outputs; return the inputs."""
    from onnx import TensorProto

    weights = {tensor.name for tensor in graph.initializer}
    inputs = {one.name: one.type.tensor_type for one in graph.input if one.name not in weights}
    right = all(one.elem_type == TensorProto.INT64 and len(one.shape.dim) == 2 for one in inputs.values())
    if IDS not in inputs or not set(inputs) <= set(INPUTS) or not right:
        raise SettingsError(
            f"{field}: its graph takes {', '.join(inputs) or 'nothing'}; valid: {IDS} int64[texts, sub-words], and of the same "
            f"type and shape {MASK} and {SEGMENTS}."
        )
    outputs = {one.name: one.type.tensor_type for one in graph.output}
    if LOGITS not in outputs:
        raise SettingsError(
            f"{field}: its graph gives {', '.join(outputs) or 'nothing'}; valid: {LOGITS}, one for each label."
        )
    logits = outputs[LOGITS]
    sizes = logits.shape.dim
    if logits.elem_type not in (TensorProto.FLOAT, TensorProto.FLOAT16) or len(sizes) != 3:
        raise SettingsError(f"{field}: its {LOGITS} are no floats; valid: float32[texts, sub-words, labels].")
    given = sizes[2].dim_value
    if given and given != labels:
        raise SettingsError(
            f"{field}: its graph has {given} {LOGITS} and id2label {labels} labels; valid: as many."
        )
    return tuple(name for name in INPUTS if name in inputs)


def _nodes(model: Any) -> Iterator[Any]:
    """Yield every node, of graphs within nodes and of functions, too."""
    waiting = [*model.graph.node, *(node for function in model.functions for node in function.node)]
    while waiting:
        node = waiting.pop()
        yield node
        for attribute in node.attribute:
            waiting += attribute.g.node
            for graph in attribute.graphs:
                waiting += graph.node


def _tensors(model: Any) -> Iterator[Any]:
    """Yield every tensor, of graphs within nodes and of functions, too."""
    graphs = [model.graph]
    for node in _nodes(model):
        for attribute in node.attribute:
            graphs += [attribute.g, *attribute.graphs]
            yield attribute.t
            yield from attribute.tensors
            for sparse in (attribute.sparse_tensor, *attribute.sparse_tensors):
                yield from (sparse.values, sparse.indices)
    for graph in graphs:
        yield from graph.initializer
        for sparse in graph.sparse_initializer:
            yield from (sparse.values, sparse.indices)
