"""Providers by import path: named by settings alone, part of the model with name and version, and right about each text."""

from __future__ import annotations

import importlib
import pickle
import re
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.config.load import parse_config, parse_model_config
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.model import artifact
from dptext_spark.model.artifact import open_model, save_model
from dptext_spark.model.compile import compile_to, prepare
from dptext_spark.model.preview import preview
from dptext_spark.text.identifiers import provider
from dptext_spark.text.identifiers.provider import MOST, ProviderError, import_providers
from dptext_spark.text.policy import Policy
from tests.core.model.small_models import KEY, compiled, drawn, settings_of
from tests.core.toy_providers import FAILS, WRONG, WRONG_TEXT, plain, write, write_wrong

TEXTS = [
    "it is T-12 and the zebras, not T-1.",
    "",
    None,
    "the and of it",
    "é zebraé T-9\nT-9 is",
    "xyzzy it zebras-T-77 a@b.example is",
]
# Words that are kept, and words that no lexicon holds: what is released of them is known without a draw.
CLEAR = {"oov": "keep", "numbers": "keep", "identifiers": "none"}


@pytest.fixture(autouse=True)
def modules(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder whose modules are imported anew by each test."""
    folder = tmp_path / "modules"
    folder.mkdir()
    monkeypatch.syspath_prepend(str(folder))
    # Bytecode is known by the second and the size of its source: one written anew within a second would not be read.
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    before = set(sys.modules)
    provider._imported.cache_clear()
    yield folder
    provider._imported.cache_clear()
    for name in set(sys.modules) - before:
        if name.startswith("toy_"):
            del sys.modules[name]


def renew(module: str) -> None:
    """Forget a module that was written anew."""
    sys.modules.pop(module, None)
    importlib.invalidate_caches()
    provider._imported.cache_clear()


@pytest.mark.parametrize("level", ["token", "record", "dataset"])
@pytest.mark.parametrize("kind", [pa.string(), pa.large_string(), pa.binary()], ids=str)
def test_what_it_finds_is_what_a_plain_reading_finds(modules: Path, level: str, kind: pa.DataType) -> None:
    made = compiled(Policy(providers=(write(modules, "toy_a"),), **CLEAR), level)  # type: ignore[arg-type]
    given = [text.encode() if text is not None and pa.types.is_binary(kind) else text for text in TEXTS]
    assert drawn(made, given, kind=kind) == [None if text is None else plain(text) for text in TEXTS]


def test_one_that_is_not_named_leaves_no_trace(modules: Path) -> None:
    path = write(modules, "toy_c")
    assert "providers" not in Policy().as_dict()
    without, with_one = compiled(Policy()), compiled(Policy(providers=(path,)))
    assert without.fingerprint == compiled(Policy(providers=())).fingerprint != with_one.fingerprint
    spec = parse_config({"input": {"path": "/i"}, "columns": ["a"], "output": {"path": "/o"}}).spec()
    assert "providers" not in spec["policy"]
    manifest = artifact.Manifest.of_privatizer(without).as_dict()
    assert "providers" not in manifest["policy"]  # type: ignore[operator]


def test_path_name_version_and_order_are_part_of_the_model(modules: Path) -> None:
    write(modules, "toy_d")
    write(modules, "toy_e")
    pairs = (("toy_d:Toy", "toy_e:Second"), ("toy_e:Second", "toy_d:Toy"))
    some = (("toy_d:Toy",), ("toy_d:Second",), ("toy_e:Toy",), *pairs)
    prints = [compiled(Policy(providers=paths)).fingerprint for paths in some]
    assert len(set(prints)) == len(some)
    assert prints[0] == compiled(Policy(providers=some[0])).fingerprint
    write(modules, "toy_d", version="2")
    renew("toy_d")
    assert compiled(Policy(providers=some[0])).fingerprint != prints[0]


@pytest.mark.long
def test_it_is_saved_and_opened_only_where_it_is_named(modules: Path, tmp_path: Path) -> None:
    path = write(modules, "toy_g")
    made = compiled(Policy(providers=(path,)))
    save_model(made, tmp_path / "model")
    renew("toy_g")
    for named in ((), ("toy_g:Second",)):
        with pytest.raises(SettingsError, match=r"policy\.providers: (none|toy_g:Second) differs from"):
            open_model(tmp_path / "model", providers=named)
    assert "toy_g" not in sys.modules  # neither imported anything
    opened = open_model(tmp_path / "model", providers=(path,))
    assert opened.fingerprint == made.fingerprint
    assert drawn(opened, TEXTS) == drawn(made, TEXTS) == drawn(pickle.loads(pickle.dumps(opened)), TEXTS)


def test_a_doctored_model_imports_nothing(modules: Path, tmp_path: Path) -> None:
    """Sealed again with a fingerprint that fits, as whoever can write a model can."""
    made = compiled(Policy())
    save_model(made, tmp_path / "model")
    manifest = artifact.read_manifest(tmp_path / "model")
    write(modules, "toy_i")
    record = import_providers(("toy_i:Toy",))[0].record
    renew("toy_i")
    policy = Policy(providers=("toy_i:Toy",))
    seen = artifact.fingerprint_of(made.arrays(), policy, manifest.consistency, imported=(record,))
    replace(manifest, policy=policy, fingerprint=seen).sealed().write(tmp_path / "model")
    with pytest.raises(SettingsError, match=r"policy\.providers"):
        open_model(tmp_path / "model")
    assert "toy_i" not in sys.modules


def naming(*paths: str) -> dict[str, Any]:
    return {"providers": list(paths)} if paths else {}


def test_settings_prepare_a_model_by_what_is_there(modules: Path, tmp_path: Path) -> None:
    path = write(modules, "toy_j")
    settings = settings_of(tmp_path, naming(path))
    first, where = prepare(settings)
    assert prepare(settings)[1] == where
    assert first.imported[0].record.version == "1"
    compile_to(settings, tmp_path / "artifact")
    named = settings_of(tmp_path, naming(path), run={"artifact": str(tmp_path / "artifact")})
    assert prepare(named)[0].fingerprint == first.fingerprint
    compile_to(settings_of(tmp_path, naming()), tmp_path / "without")
    for paths, folder in (((), "artifact"), ((path,), "without")):
        with pytest.raises(SettingsError, match=rf"policy\.providers: .* of the model in .*{folder}"):
            prepare(settings_of(tmp_path, naming(*paths), run={"artifact": str(tmp_path / folder)}))
    write(modules, "toy_j", version="2")
    renew("toy_j")
    second, elsewhere = prepare(settings)
    assert elsewhere != where
    assert second.fingerprint != first.fingerprint
    with pytest.raises(DataError, match=r"other versions than toy, version 2"):
        prepare(named)


def test_a_preview_says_who_found_it(modules: Path, tmp_path: Path) -> None:
    made, _ = prepare(settings_of(tmp_path, naming(write(modules, "toy_k"))))
    found = {word.text: word for word in preview(made, "it is T-12 zebras").words}
    assert (found["T-12"].became, found["T-12"].action) == ("[TICKET]", "masked")
    assert found["T-12"].reason == "identifier (ticket), by a provider"
    assert found["zebras"].became == "[ANIMAL]"


@pytest.mark.parametrize("how", WRONG)
def test_one_that_is_wrong_says_so_by_a_code_and_no_word(modules: Path, how: str) -> None:
    made = compiled(Policy(providers=(write_wrong(modules, f"toy_{how}", how),)))
    made.imported[0].try_out()
    with pytest.raises(ProviderError) as caught:
        drawn(made, [WRONG_TEXT])
    assert caught.value.code == ("PROVIDER_FAILED_0" if how in FAILS else "PROVIDER_SPANS_0")
    assert "secret" not in str(caught.value)
    assert caught.value.__cause__ is None
    assert caught.value.__suppress_context__ or caught.value.__context__ is None


def test_the_second_of_two_is_known_by_its_number(modules: Path) -> None:
    paths = (write(modules, "toy_l"), write_wrong(modules, "toy_m", "raises"))
    with pytest.raises(ProviderError) as caught:
        drawn(compiled(Policy(providers=paths)), [WRONG_TEXT])
    assert caught.value.code == "PROVIDER_FAILED_1"


def test_text_that_is_no_utf8_is_shown_to_no_provider(modules: Path) -> None:
    made = compiled(Policy(providers=(write(modules, "toy_n"),), **CLEAR))  # type: ignore[arg-type]
    texts = pa.array([b"it is T-1", b"T-2 \xff", None, b"T-3"], pa.binary())
    out, counters = made.privatize(texts, column="c", row_ids=pa.array(range(4), pa.int64()), key=KEY)
    assert out.to_pylist() == ["it is [TICKET]", "", None, "[TICKET]"]
    assert counters.column("invalid").tolist() == [0, 1, 0, 0]


MADE_WRONG = {
    "no_module": (None, r"cannot be imported \(no module 'toy_no_module'\)"),
    "raises": ("raise ValueError('secret')", r"cannot be imported \(ValueError\)"),
    "imports": ("import no_such_module_anywhere", r"no module 'no_such_module_anywhere'"),
    "syntax": ("class (", r"cannot be imported \(SyntaxError\)"),
    "no_class": ("x = 1", "is no class of its module"),
    "function": ("def Toy(): pass", "is no class of its module"),
    "arguments": ("class Toy:\n def __init__(self, a): pass", r"cannot be made without arguments.*TypeError"),
    "no_types": ("class Toy:\n version = '1'\n def find(self, t): pass", r"lacks types or find \(AttributeError\)"),
    "no_find": ("class Toy:\n version, types = '1', ('a',)", r"lacks types or find \(AttributeError\)"),
    "find": ("class Toy:\n version, types, find = '1', ('a',), 1", "has a find that is no method"),
    "no_version": ("class Toy:\n types = ('a',)\n def find(self, t): pass", "has no version"),
    "version": ("class Toy:\n version, types = 1, ('a',)\n def find(self, t): pass", "has no version"),
    "name": ("class Toy:\n name, version, types = 'a\\n', '1', ('a',)\n def find(self, t): pass", "has no name"),
    "type": ("class Toy:\n version, types = '1', 'abc'\n def find(self, t): pass", "types that are no sequence of names"),
    "listed": ("class Toy:\n version, types = '1', ('name',)\n def find(self, t): pass", "has the type 'name'"),
}  # fmt: skip


@pytest.mark.parametrize("how", MADE_WRONG)
def test_one_that_cannot_be_made_is_named_with_what_is_valid(modules: Path, tmp_path: Path, how: str) -> None:
    source, said = MADE_WRONG[how]
    if source is not None:
        (modules / f"toy_{how}.py").write_text(source)
    for make in (
        lambda: prepare(settings_of(tmp_path, naming(f"toy_{how}:Toy"))),
        lambda: compiled(Policy(providers=(f"toy_{how}:Toy",))),
    ):
        with pytest.raises(SettingsError, match=rf"^policy\.providers.*{said}") as caught:
            make()
        assert "Choose " in str(caught.value)
        assert "secret" not in str(caught.value)


def test_what_fails_at_once_fails_before_anything_is_read(modules: Path) -> None:
    path, file = write_wrong(modules, "toy_o", "raises"), modules / "toy_o.py"
    file.write_text(file.read_text().replace("'secret' in", "text is None or ''=="))
    with pytest.raises(SettingsError, match=r"policy\.providers\[0\]: on .* failed with ValueError"):
        import_providers((path,), tried=True)
    assert import_providers((path,))[0].record.name == path


@pytest.mark.parametrize(
    ("paths", "said"),
    [
        ("a:B", "policy.providers: str is not valid. Choose a list of import paths"),
        ({"a": 1}, "policy.providers: dict is not valid"),
        (None, "policy.providers: NoneType is not valid"),
        (["a.B"], "policy.providers[0]: 'a.B' is not valid"),
        (["a:B", 1], "policy.providers[1]: int is not valid"),
        (["a:B()"], "policy.providers[0]: 'a:B()' is not valid"),
        (["a:B" * 200], "policy.providers[0]: "),
        (["__main__:B"], "is in the driver's own script"),
        (["a:B", "a:B"], "policy.providers[1]: 'a:B' is named twice"),
        ([f"a{i}:B" for i in range(MOST + 1)], "policy.providers: 17 providers are too many."),
    ],
)
def test_paths_that_are_none(paths: Any, said: str) -> None:
    for make in (
        lambda: Policy(providers=paths),
        lambda: parse_model_config({"policy": {"providers": paths}}),
    ):
        with pytest.raises(SettingsError, match=re.escape(said)):
            make()


def test_its_version_is_that_of_its_package(modules: Path) -> None:
    (modules / "toy_p.py").write_text(
        "import pyarrow\nclass Toy:\n types = ('a',)\n def find(self, t): pass\nToy.__module__ = 'pyarrow'\n"
    )
    with pytest.raises(SettingsError, match="has no version"):  # a file belongs to no package
        import_providers(("toy_p:Toy",))
    assert provider._version_of("pyarrow.compute") == pa.__version__
    assert provider._version_of("numpy") == np.__version__


def test_a_policy_goes_with_its_providers_only(modules: Path) -> None:
    made = compiled(Policy(providers=(write(modules, "toy_q"),)))
    with pytest.raises(SettingsError, match=r"policy\.providers: \[\] differs from"):
        replace(made, policy=Policy(), fingerprint="")
    with pytest.raises(SettingsError, match=r"policy\.providers: .* differs from \[\] of the privatizer"):
        replace(made, imported=(), fingerprint="")
