"""The run key from a file or an environment variable: what is read, what is removed, and what a message may say."""

from __future__ import annotations

import base64
import os
from pathlib import Path

import pytest

from dptext_spark.errors import SettingsError
from dptext_spark.keys import read_key, take_from_environment, taken
from dptext_spark.settings.sections import Key, Secret

SECRET = bytes(range(200, 240))
FORMS = {
    "base64": base64.b64encode(SECRET).decode(),
    "url-safe, without padding": base64.urlsafe_b64encode(SECRET).decode().rstrip("="),
    "base64 over two lines": base64.encodebytes(SECRET * 2).decode(),
    "hex": SECRET.hex(),
    "HEX": f" {SECRET.hex().upper()}\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_is_read_once_and_removed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_KEY", FORMS[form])
    read_key(Key(env="RUN_KEY"))
    assert os.environ["RUN_KEY"] == FORMS[form]
    found = take_from_environment(Key(env="RUN_KEY"))
    assert (
        found is not None and found.secret == SECRET * (2 if "lines" in form else 1) and found.kind == "env"
    )
    assert "RUN_KEY" not in os.environ and os.environb.get(b"RUN_KEY") is None
    with pytest.raises(SettingsError, match=r"key\.env: the environment variable 'RUN_KEY' is not set"):
        take_from_environment(Key(env="RUN_KEY"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("MARKERMARKERMARKER", "key.env: 13 bytes given; valid: 32 or more"),
        ("MARKER" * 10 + "!", "key.env: 61 characters that are no base64 and no hex given"),
        ("é" * 40, "key.env: 80 characters that are no base64"),
        ("A" * 64, "fewer than 8 different bytes"),
    ],
)
def test_what_is_no_key_is_refused_unseen(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_KEY", text)
    with pytest.raises(SettingsError) as caught:
        read_key(Key(env="RUN_KEY"))
    assert said in str(caught.value) and "MARKER" not in str(caught.value) and text not in str(caught.value)


def test_a_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "run.key"
    file.write_bytes(bytes(range(32)))
    file.chmod(0o600)
    read_key(Key(file=str(file)))
    file.write_bytes(b"short")
    with pytest.raises(SettingsError, match="holds 5 bytes; 32 or more are needed"):
        read_key(Key(file=str(file)))
    with pytest.raises(SettingsError, match="cannot be read"):
        read_key(Key(file=str(tmp_path / "none")))


def test_other_sources_need_nothing_here() -> None:
    for key in (Key(), Key(secret=Secret(scope="text", name="run-key"))):
        read_key(key)
        assert take_from_environment(key) is None
    assert [Key().kind, Key(env="A").kind, Key(secret=Secret(scope="s", name="n")).kind] == [
        "os",
        "env",
        "secret",
    ]


def test_a_file_is_read_before_spark_starts(tmp_path: Path) -> None:
    file = tmp_path / "key"
    file.write_bytes(SECRET)
    with pytest.raises(SettingsError, match=r"key\.file: .*may be read by others"):
        file.chmod(0o644)
        taken(Key(file=str(file)))
    file.chmod(0o600)
    found = taken(Key(file=str(file)))
    assert found is not None and found.secret == SECRET
    assert taken(Key()) is None
