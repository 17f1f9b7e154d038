"""The run key from a file or an environment variable: what is read, what is removed, and what a message may say."""

from __future__ import annotations

import base64
import hashlib
import os
from pathlib import Path

import pytest

from dptext_spark.config.load import parse_model_config
from dptext_spark.config.sections import Key, Secret, read_key, refuse_given, taken
from dptext_spark.errors import SettingsError
from dptext_spark.randomness import RunKey

SECRET = hashlib.sha256(b"a key of the tests").digest()
FORMS = {
    "base64": base64.b64encode(SECRET).decode(),
    "url-safe, without padding": base64.urlsafe_b64encode(SECRET).decode().rstrip("="),
    "base64 over two lines": base64.encodebytes(SECRET + SECRET[::-1]).decode(),
    "hex": SECRET.hex(),
    "HEX": f" {SECRET.hex().upper()}\n",
}


@pytest.mark.parametrize("form", FORMS)
def test_a_variable_is_read_once_and_removed(form: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_KEY", FORMS[form])
    read_key(Key(env="RUN_KEY"))
    assert os.environ["RUN_KEY"] == FORMS[form]
    found = taken(Key(env="RUN_KEY"))
    assert found is not None
    assert found.secret == SECRET + (SECRET[::-1] if "lines" in form else b"")
    assert found.kind == "env"
    assert "RUN_KEY" not in os.environ
    assert os.environb.get(b"RUN_KEY") is None
    with pytest.raises(SettingsError, match=r"key\.env: the environment variable 'RUN_KEY' is not set"):
        taken(Key(env="RUN_KEY"))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("MARKERMARKERMARKER", "key.env: 13 bytes are too few"),
        ("MARKER" * 10 + "!", "key.env: 61 characters are neither base64 nor hex"),
        ("é" * 40, "key.env: 80 characters are neither base64"),
        ("A" * 64, "key.env: 'RUN_KEY' is not a key: it has fewer than 16 different bytes"),
        ("ab" * 31, "key.env: 31 bytes are too few"),
    ],
)
def test_what_is_no_key_is_refused_unseen(text: str, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RUN_KEY", text)
    with pytest.raises(SettingsError) as caught:
        read_key(Key(env="RUN_KEY"))
    assert said in str(caught.value)
    assert "MARKER" not in str(caught.value)
    assert text not in str(caught.value)


def test_a_file_is_checked(tmp_path: Path) -> None:
    file = tmp_path / "run.key"
    file.write_bytes(SECRET)
    file.chmod(0o600)
    read_key(Key(file=str(file)))
    found = taken(Key(file=str(file)))
    assert found is not None
    assert found.secret == SECRET
    file.chmod(0o644)
    for act in (taken, read_key):
        with pytest.raises(SettingsError, match=r"key\.file: .*other users can read"):
            act(Key(file=str(file)))


def test_other_sources_need_nothing_here() -> None:
    for key in (Key(), Key(secret=Secret(scope="text", name="run-key"))):
        read_key(key)
        assert taken(key) is None
    kinds = {key.kind for key in (Key(), Key(env="A"), Key(secret=Secret(scope="s", name="n")))}
    assert kinds == {"os", "env", "secret"}


def test_a_variable_of_the_workers_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    """Workers of a local Spark that is started later inherit it."""
    monkeypatch.setenv("RUN_KEY", FORMS["base64"])
    found = taken(Key(env="RUN_KEY", deliver="executors"))
    assert found is not None
    assert found.secret == SECRET
    assert found.source is not None
    assert os.environ["RUN_KEY"] == FORMS["base64"]


@pytest.mark.parametrize("key", [{}, {"secret": {"scope": "text", "name": "run-key"}}])
def test_what_workers_cannot_read_is_refused_with_executors(key: dict[str, object]) -> None:
    needs = r"executors needs .*key\.file or key\.env"
    for deliver, said in (("executors", needs), ("broadcast", "valid")):
        with pytest.raises(SettingsError, match=rf"key\.deliver: .*{said}"):
            parse_model_config({"key": {**key, "deliver": deliver}})
    assert parse_model_config({"key": key}).key.deliver == "closure"


def test_a_key_of_the_calling_program_is_refused_with_executors() -> None:
    key = Key(file="/secure/run.key", deliver="executors")
    with pytest.raises(SettingsError, match=r"^key\.deliver: executors needs a key that workers can read"):
        refuse_given(key, RunKey.generate())
    refuse_given(key, None)
    refuse_given(Key(), RunKey.generate())
