"""One strict YAML file, and overrides that are merged into it."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.config.file import dumped, override, read_settings
from dptext_spark.errors import SettingsError


def read(folder: Path, text: str | bytes) -> dict[str, Any]:
    file = folder / "settings.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return read_settings(file)


TEXTS = [
    "08", "1e3", "no", "5e-3", "-0", "+1", ".5", "1.", ".inf", "-.inf", ".nan", "1_000", "0x1F", "0o7", "1:30", "2026-01-01",
    "~", "null", "", "true", "y", "=", "<<", "[x]", "- a", "a: b", "# x", " x ", "\t", "é", "😀", "a\nb", "a\x85b", "a\u2028b",
    "\ufeffa",
    "'", '"', "%x", "@x", "`x`", "!x", "&x", "*x", "|", ">",
]  # fmt: skip


def test_what_is_written_is_read_back_equal(tmp_path: Path) -> None:
    settings = {"columns": TEXTS, "a": {name: 1 for name in TEXTS}, "b": [1, 1e3, 1e-9, True, None, -2.5]}
    assert read(tmp_path, dumped(settings, 100)) == settings
    kinds = [type(value) for value in read(tmp_path, dumped(settings, 100))["b"]]
    assert kinds == list(map(type, settings["b"]))


def test_reads_the_core_schema_and_no_more(tmp_path: Path) -> None:
    written = "1e-3 no on 2024-01-01 010 1:30 true ~ 1_000 .5 -7 1. null .inf -.inf"
    expected = [0.001, "no", "on", "2024-01-01", 10, "1:30", True, None, "1_000", 0.5, -7, 1.0, None]
    expected += [math.inf, -math.inf]
    assert read(tmp_path, f"a: [{written.replace(' ', ', ')}]\n") == {"a": expected}
    assert math.isnan(read(tmp_path, "c: .nan\n")["c"])


def test_an_empty_file_and_a_byte_order_mark_are_no_trouble(tmp_path: Path) -> None:
    assert read(tmp_path, "# nothing\n") == {}
    assert read(tmp_path, b"\xef\xbb\xbfa: 1\n") == {"a": 1}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("- a\n- b\n", "holds a list"),
        ("hello\n", "holds a str"),
        ("a: 1\na: 2\n", "line 2: 'a' is set twice"),
        ("1: a\n", "line 1: 1 is not valid as the name"),
        ("? [a]\n: b\n", "not valid as the name of a setting"),
        ("a: [1\n", "line 2, column 1: not valid YAML"),
        ("a: !!python/object/apply:os.system [true]\n", "not valid YAML"),
        ("a: 1\n---\nb: 2\n", "not valid YAML"),
        ("\ta: 1\n", "not valid YAML"),
        (b"a: \xff\n", "not UTF-8 text"),
        ("a: \x01\n", "not valid YAML"),
        ("a: " + "[" * 3000 + "]" * 3000, "33 or more levels of sections and lists inside each other"),
    ],
)
def test_refuses_what_is_no_plain_mapping(tmp_path: Path, text: str | bytes, said: str) -> None:
    with pytest.raises(SettingsError, match="settings: ") as caught:
        read(tmp_path, text)
    assert said in str(caught.value)


def test_a_file_that_is_missing_or_a_folder_is_named(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=r"nothing.yaml.*cannot be read .No such file"):
        read_settings(tmp_path / "nothing.yaml")
    with pytest.raises(SettingsError, match=r"cannot be read .Is a directory"):
        read_settings(tmp_path)


@pytest.mark.parametrize(
    ("item", "expected"),
    [
        ("a.b=2", {"a": {"b": 2, "c": 1}}),
        ("a.b=1e3", {"a": {"b": 1000.0, "c": 1}}),
        ("a.b=text with = in it", {"a": {"b": "text with = in it", "c": 1}}),
        ("a.b='x' = y", {"a": {"b": "'x' = y", "c": 1}}),
        ("a.b=k: v", {"a": {"b": "k: v", "c": 1}}),
        ("a.b={k: v}", {"a": {"b": "{k: v}", "c": 1}}),
        ("a.b=[x, y]", {"a": {"b": ["x", "y"], "c": 1}}),
        ("a.b=null", {"a": {"b": None, "c": 1}}),
        ("new.deep.er=1", {"a": {"b": 0, "c": 1}, "new": {"deep": {"er": 1}}}),
        ("empty.x=1", {"a": {"b": 0, "c": 1}, "empty": {"x": 1}}),
    ],
)
def test_an_override_is_a_yaml_scalar_or_list(item: str, expected: dict[str, Any]) -> None:
    settings: dict[str, Any] = {"a": {"b": 0, "c": 1}}
    if item.startswith("empty"):
        settings["empty"] = None
    assert override(settings, [item]) == expected
    assert settings["a"] == {"b": 0, "c": 1}, "the settings that were given are not changed"


@pytest.mark.parametrize("item", ["a.b=", "run.id=  "])
def test_an_empty_value_is_no_value(item: str) -> None:
    """Most often a variable that was not set: a run id that vanished would make a run that nothing binds."""
    with pytest.raises(SettingsError, match=r"no value"):
        override({}, [item])


@pytest.mark.parametrize("item", ["a", "=1", ".=1", "a..b=1", "a.=1", ""])
def test_an_override_without_a_name_is_refused(item: str) -> None:
    with pytest.raises(SettingsError, match=r"Choose a.b=value"):
        override({}, [item])
    with pytest.raises(SettingsError, match=r"--set a.b.c: 'a.b' is a value, not a section"):
        override({"a": {"b": 1}}, ["a.b.c=2"])
    assert override({}, ["a.b=1", "a.b=2"]) == {"a": {"b": 2}}  # the later one wins


OF_INPUT = ["password", "fs.azure.account.key", "accessKey", "sas", "authToken", "pwd", "connectionString"]
OF_INPUT += ["parquet.encryption.key.list", "fs.s3a.encryption.key"]
SECRETS = ["key.file=/home/run.key", "key=marker", "key.secret=marker"]
SECRETS += [f"input.options.{name}=marker" for name in OF_INPUT]
OPTIONS = ("input.options.sep=;", "input.options.multiLine=true")
FINE = ("row_key=id", "record_key=id", "policy.tokenizer=words", *OPTIONS)


@pytest.mark.parametrize("item", SECRETS)
def test_secrets_are_refused_and_not_repeated(item: str) -> None:
    with pytest.raises(SettingsError, match="process lists and shell histories") as caught:
        override({}, [item])
    assert "marker" not in str(caught.value)
    override({}, FINE)  # these only sound like secrets
