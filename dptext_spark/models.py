"""From settings to a compiled model on disk: opened where it exists, compiled once where it does not."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

from dptext_spark import artifact
from dptext_spark.compiled import user_cache
from dptext_spark.config import ModelConfig
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.privatizer import ENGINE_VERSION, Privatizer
from dptext_spark.version import __version__

# Told each step, in words that hold nothing of the data, with the share that is done where it is known.
Progress = Callable[[str, float | None], None]


def prepare(config: ModelConfig, progress: Progress | None = None) -> tuple[Privatizer, Path]:
    """Return the privatizer of the settings and the artifact folder that holds it.

    `run.artifact` is opened where it is named; else the artifact lies in the user's cache, under a digest of
    the settings, the lexicon's fingerprint and the versions, and is compiled there if it is not sound.
    Two processes may do so at once.

    Raises:
        SettingsError: `run.artifact` was made from other settings, or a parameter does not fit the lexicon.
        DataError: the lexicon or the artifact is missing, damaged or changed.
    """
    say = progress or (lambda step, share: None)
    if config.run.artifact is not None:
        folder = Path(config.run.artifact)
        _require_same(config, folder)
        return artifact.open_artifact(folder, verify=True), folder
    fingerprint = _known_fingerprint(config)
    if fingerprint is not None:
        folder = _cached(config, fingerprint)
        found = _open_cached(folder, say)
        if found is not None:
            return found, folder
    lexicon = load_lexicon(config, say)
    _remember(config, lexicon.fingerprint)
    folder = _cached(config, lexicon.fingerprint)
    found = _open_cached(folder, say)
    if found is None:
        _compile(config, lexicon, folder, say)
        found = artifact.open_artifact(folder, verify=True)
    return found, folder


def compile_to(config: ModelConfig, folder: str | Path, progress: Progress | None = None) -> str:
    """Compile the settings into an artifact at `folder`, whole or not at all; return its fingerprint.

    Raises:
        SettingsError: `folder` holds something else, or a parameter does not fit the lexicon.
        DataError: the lexicon is missing or damaged.
    """
    say = progress or (lambda step, share: None)
    return _compile(config, load_lexicon(config, say), Path(folder), say)


def load_lexicon(config: ModelConfig, progress: Progress | None = None) -> Lexicon:
    """Return the lexicon that the settings name: the packaged one, a saved folder, or a file of word vectors.

    Raises:
        SettingsError: an unknown format.
        DataError: it is missing, malformed or changed.
    """
    source = config.lexicon
    if source.source == "default":
        return Lexicon.default()
    path = Path(source.source)
    if path.is_dir():
        return Lexicon.open(path)
    if not path.exists():
        raise DataError(
            f"lexicon.source: {source.source!r} does not exist; valid: default, a saved lexicon, "
            "or a file of word vectors."
        )
    say = progress or (lambda step, share: None)
    return Lexicon.read(
        path,
        format=source.format,
        limit=source.limit,
        vocabulary=source.vocabulary,
        tokenizer=config.policy.tokenizer,
        progress=lambda done, whole: say("reading the lexicon", done / whole if whole else None),
    )


def _compile(config: ModelConfig, lexicon: Lexicon, folder: Path, say: Progress) -> str:
    """Compile and save; another process that saved the same artifact meanwhile is no harm."""
    say(f"compiling {config.mechanism.name} for {len(lexicon):,} words", None)
    sampler = config.mechanism.compile(lexicon)
    privatizer = Privatizer(lexicon, sampler, config.policy, config.consistency)
    spec = config.spec() | {"engine": ENGINE_VERSION, "lexicon_fingerprint": lexicon.fingerprint}
    try:
        return artifact.save(privatizer, folder, spec)
    except OSError as error:
        # The last step renames a finished folder into place, which fails where another one is there by now.
        if (folder / artifact.MANIFEST).exists():
            return artifact.save(privatizer, folder, spec)
        raise DataError(f"artifact: {str(folder)!r} cannot be written ({error.strerror}).") from None


def _open_cached(folder: Path, say: Progress) -> Privatizer | None:
    """Open a copy in the cache; one that is missing or damaged is made again."""
    if not folder.exists():
        return None
    try:
        return artifact.open_artifact(folder, verify=True)
    except DataError:
        say("a cached model is damaged; making it again", None)
        # Another process may have put it aside by now.
        with (
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".damaged-") as aside,
            suppress(FileNotFoundError),
        ):
            os.replace(folder, Path(aside) / "artifact")
        return None


def _cached(config: ModelConfig, fingerprint: str) -> Path:
    """Return the place in the cache of what the settings and the lexicon give."""
    made_from = config.spec() | {
        "lexicon": fingerprint,
        "engine": ENGINE_VERSION,
        "version": __version__,
        "stop_words": config.policy.stop_list(),
    }
    return user_cache() / "artifacts" / _digest(made_from)


def _digest(value: Any) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _note(config: ModelConfig) -> Path | None:
    """Return where the fingerprint of a lexicon file is noted, to recognise it unread."""
    source = config.lexicon
    seen: list[Any] = [source.format, source.limit, config.policy.tokenizer]
    for named in (source.source, source.vocabulary):
        if named is not None:
            try:
                status = os.stat(named)
            except OSError:
                return None  # reading it will say what is wrong
            seen.append([os.path.realpath(named), status.st_size, status.st_mtime_ns, status.st_ino])
    return user_cache() / "lexicons" / f"{_digest(seen)}.json"


def _known_fingerprint(config: ModelConfig) -> str | None:
    """Return the lexicon's fingerprint where it can be had without reading the vectors."""
    source = config.lexicon.source
    if source == "default":
        return Lexicon.default().fingerprint
    if Path(source).is_dir():
        return Lexicon.open(source, verify=False).fingerprint
    note = _note(config)
    if note is None or not note.exists():
        return None
    try:
        return str(json.loads(note.read_text(encoding="utf-8"))["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a note that cannot be read costs a reading of the file, nothing else


def _remember(config: ModelConfig, fingerprint: str) -> None:
    """Note the fingerprint of a lexicon file."""
    source = config.lexicon.source
    note = None if source == "default" or Path(source).is_dir() else _note(config)
    if note is None:
        return
    note.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.NamedTemporaryFile("w", dir=note.parent, delete=False, encoding="utf-8") as draft:
        json.dump({"fingerprint": fingerprint}, draft)
    os.replace(draft.name, note)


def _require_same(config: ModelConfig, folder: Path) -> None:
    """Refuse an artifact that was made from other settings or by another engine.

    Its lexicon must agree where the settings name one.
    """
    made_from = artifact.read_manifest(folder)["spec"]
    wanted = config.spec()
    if "lexicon" not in config.model_fields_set:
        del wanted["lexicon"]
    for section, value in wanted.items():
        recorded = made_from.get(section)
        pairs = (
            [(f"{section}.{name}", value[name], (recorded or {}).get(name)) for name in value]
            if isinstance(value, dict)
            else [(section, value, recorded)]
        )
        for name, given, there in pairs:
            if given != there:
                raise SettingsError(
                    f"{name}: {given!r} given, but the artifact {str(folder)!r} was made with {there!r}; "
                    "change the "
                    "setting, or prepare another artifact."
                )
    if made_from.get("engine") != ENGINE_VERSION:
        raise SettingsError(
            f"run.artifact: {str(folder)!r} was made for engine {made_from.get('engine')!r}, and this is "
            f"{ENGINE_VERSION!r}; prepare it again."
        )
