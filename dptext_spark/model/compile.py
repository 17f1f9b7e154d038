"""From settings to a compiled model on disk: opened where it exists, compiled once where it does not."""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any, Literal

from dptext_spark._version import __version__
from dptext_spark.config.model import ModelConfig
from dptext_spark.config.sections import Embedding
from dptext_spark.config.values import briefly
from dptext_spark.encoder.name_classifier import Classifier, read_classifier
from dptext_spark.errors import SCHEMA_VERSION, DataError, SettingsError
from dptext_spark.importance.budget import Budget, check_budget
from dptext_spark.importance.levels import Importance, require_one_distance
from dptext_spark.importance.providers import Frequencies
from dptext_spark.lexicon.lexicon import PACKAGED, Lexicon, with_shared_words
from dptext_spark.lexicon.vocabulary import read_excluded
from dptext_spark.mechanisms import Mechanism
from dptext_spark.mechanisms.base import Sampler, check_context
from dptext_spark.mechanisms.remap import Remappable, released_together, remap_of, require_one_remap
from dptext_spark.model import artifact
from dptext_spark.model.certificate import certify, is_cheap
from dptext_spark.model.machine_code import attach_code, expected_text, make_code
from dptext_spark.model.privatizer import ENGINE_VERSION, Consistency, Privatizer, providers_of
from dptext_spark.model.public_text import FIELD, check_corpus, read_prior
from dptext_spark.model.record import file_digest, made_from, with_budget, with_importance
from dptext_spark.runtime.display import Progress, by_default, counted, silent
from dptext_spark.runtime.paths import PRIVATE, user_cache, write_atomically
from dptext_spark.text.engine import Engine
from dptext_spark.text.identifiers.provider import Provider, require_named
from dptext_spark.text.policy import Policy
from dptext_spark.text.tokens import drawn_words
from dptext_spark.text.word_table import WordTable


def compile(
    mechanism: Mechanism,
    lexicon: Lexicon | Sequence[Lexicon],
    policy: Policy | None = None,
    consistency: Consistency = "token",
    importance: Importance | None = None,
    *,
    budget: Budget | None = None,
    providers: Sequence[Provider] = (),
    frequencies: Frequencies | None = None,
    progress: Progress | None = None,
) -> Privatizer:
    """Compile a mechanism over a lexicon into a model that replaces the words of texts.

    Args:
        mechanism: what each word is drawn by.
        lexicon: the words. Several for a mechanism that takes several embeddings, such as Diffractor; the words that are in all
            of them are used.
        policy: which words are drawn, kept, masked; None for `Policy()`.
        consistency: `token` draws every occurrence anew; `record` one draw per record and word; `dataset` one per word.
        importance: which share of a record's words is drawn; None for all that the policy draws.
        budget: ε and δ that each record has at most: the law of its words is chosen by how many are drawn. None for one law.
        providers: finders of identifiers in addition to the policy's own patterns. They are code: a model with some is neither
            saved nor shipped to Spark, unless the policy names them by import path.
        frequencies: of the very texts that are sanitized, as `spark.document_frequencies` counts them; needed by an importance
            of provider `idf` without a corpus before it can choose words.
        progress: progress callback, called with each step. None prints them on stderr in a notebook or terminal.

    Raises:
        SettingsError: a parameter does not fit the lexicon, another number of lexicons than the mechanism takes, an importance
            that does not agree with the consistency, or a budget that does not fit the rest or that no law keeps; a classifier
            of names that cannot be used, or a provider that cannot be imported.
        DataError: fewer than two words are in all lexicons; a corpus cannot be read.

    Examples:
        >>> model = dp.compile(dp.CusText(epsilon=2.0, k=20), lexicon, consistency="record")
        >>> model.guarantee().unit
        'all occurrences of a word in a record'
    """
    policy = policy or Policy()
    return _compiled(
        mechanism, lexicon, policy, consistency, importance, budget, tuple(providers), frequencies,
        read_classifier(policy.names), progress or by_default(),
    )  # fmt: skip


def _compiled(
    mechanism: Mechanism,
    lexicon: Lexicon | Sequence[Lexicon],
    policy: Policy,
    consistency: Consistency,
    importance: Importance | None,
    budget: Budget | None,
    providers: tuple[Provider, ...],
    frequencies: Frequencies | None,
    classifier: Classifier | None,
    say: Progress,
) -> Privatizer:
    """Compile as :func:`compile` does, with the classifier that the policy names, read before."""
    imported = providers_of(policy)
    shared = with_shared_words([lexicon] if isinstance(lexicon, Lexicon) else lexicon)
    mechanisms = (mechanism,) if importance is None else importance.mechanisms(mechanism)
    for level_mechanism in mechanisms:
        level_mechanism.require_lexicons(len(shared))
    require_one_remap(mechanisms)
    shared = for_policy(mechanisms[0], shared, policy)
    if any(level_mechanism.reads_context for level_mechanism in mechanisms):
        check_context(consistency, len(mechanisms))
        shared = in_table_order(shared, policy)
    if budget is not None:
        check_budget(mechanism, policy, consistency, importance)
        return with_budget(
            budget, mechanism, shared, policy, consistency, providers, say, classifier, imported
        )
    say(f"compiling {mechanism.name} for {len(shared[0]):,} words", None)
    sampler, *further = _samplers(mechanisms, shared, importance)
    require_one_distance(mechanisms, [sampler.guarantee, *(other.guarantee for other in further)])
    privatizer = Privatizer(
        shared[0], sampler, policy, consistency, providers=providers, classifier=classifier, imported=imported
    )
    if importance is None:
        return privatizer
    say("weighing words", None)
    return with_importance(privatizer, importance, tuple(further), frequencies)


def _samplers(
    mechanisms: Sequence[Mechanism], lexicons: Sequence[Lexicon], importance: Importance | None
) -> list[Sampler]:
    """Compile the mechanism of each level. Where outputs are replaced, one table serves all levels (mechanisms/remap)."""
    if importance is None or len(mechanisms) == 1 or remap_of(mechanisms[0]) == "none":
        return [mechanism.compile(*lexicons) for mechanism in mechanisms]
    drawn = [
        mechanism.without_remap.compile(*lexicons)
        for mechanism in mechanisms
        if isinstance(mechanism, Remappable)
    ]
    return [*released_together(mechanisms, drawn, importance.shares, lexicons[0])]


def for_policy(mechanism: Mechanism, lexicons: Sequence[Lexicon], policy: Policy) -> tuple[Lexicon, ...]:
    """Return lexicons that know which words a policy draws, where the mechanism depends on it; else as they are."""
    if remap_of(mechanism) == "none" or not lexicons:
        return tuple(lexicons)
    table = WordTable.build(lexicons[0].vocabulary, policy.stop_list())
    return (lexicons[0].drawing(drawn_words(Engine(table, policy))), *lexicons[1:])


def in_table_order(lexicons: tuple[Lexicon, ...], policy: Policy) -> tuple[Lexicon, ...]:
    """Return lexicons, with the first one's pairs in the order of the policy's word table: fluent draws follow its words."""
    first = lexicons[0]
    beyond = WordTable.build(first.vocabulary, policy.stop_list()).beyond()
    return first.with_prior(first.prior.before(beyond)), *lexicons[1:]


def prepare(
    config: ModelConfig, progress: Progress | None = None, frequencies: Frequencies | None = None
) -> tuple[Privatizer, Path]:
    """Return the privatizer of the settings and the artifact folder that holds it.

    `frequencies` are those of the sanitized texts, if importance is measured by them. Without them the model describes itself,
    but refuses to choose words.

    `run.artifact` is opened if it is named. Otherwise the artifact is in the user's cache, under a digest of the settings, the
    lexicons' fingerprints and the versions. It is compiled there if it is missing or damaged. Two processes may do so at once.

    Raises:
        SettingsError: `run.artifact` is not the model that `run.artifact_fingerprint` names, or was made from other settings;
            a parameter does not fit the lexicon; a provider cannot be imported.
        DataError: the lexicon or the artifact is missing, damaged or changed.
    """
    say = progress or silent
    providers_of(config.policy)
    if config.run.artifact is not None:
        folder, expected = Path(config.run.artifact), config.run.expected_seal
        artifact.require_expected(folder, expected)
        _require_same(config, folder)
        attach_code(folder, config.run.expected_code, say)
        return artifact.open_model(folder, seal=expected, providers=config.policy.providers), folder
    classifier = read_classifier(config.policy.names)
    fingerprints = _known_fingerprints(config)
    if fingerprints is not None:
        folder = _cached(config, fingerprints, frequencies, classifier)
        privatizer = _open_cached(folder, config, say)
        if privatizer is not None:
            return privatizer, folder
    lexicons = load_lexicons(config, say)
    fingerprints = [lexicon.fingerprint for lexicon in lexicons]
    _remember(config, fingerprints)
    folder = _cached(config, fingerprints, frequencies, classifier)
    privatizer = _open_cached(folder, config, say)
    if privatizer is None:
        _compile(config, lexicons, folder, say, frequencies, classifier)
        privatizer = artifact.open_model(folder, providers=config.policy.providers)
    return privatizer, folder


def compile_to(config: ModelConfig, folder: str | Path, progress: Progress | None = None) -> str:
    """Compile the settings into an artifact at `folder`, atomically; return its `run.artifact_fingerprint`.

    Raises:
        SettingsError: `folder` holds something else, a parameter does not fit the lexicon, or words are weighed by a run's counts
            of its own texts.
        DataError: the lexicon is missing or damaged.
    """
    if config.importance is not None and config.importance.own_data:
        raise SettingsError(
            "importance.corpus: not set, so that each run counts its own texts and makes its own model. Choose a text file "
            "with one document a line."
        )
    say = progress or silent
    classifier = read_classifier(config.policy.names)
    _compile(config, load_lexicons(config, say), Path(folder), say, None, classifier)
    return artifact.expected_fingerprint(folder)


def compile_with_code(
    config: ModelConfig, folder: str | Path, progress: Progress | None = None, code: bool = True
) -> str:
    """Do the same, and make the machine code of the model's loops; return the `run.artifact_fingerprint` of both.

    If the code cannot be made, the model has none, and the progress callback gets the reason.

    Args:
        config: the settings.
        folder: where the artifact goes.
        progress: progress callback, called with each step.
        code: whether machine code is made; without, the model alone is named.

    Raises:
        SettingsError, DataError: as :func:`compile_to`.
    """
    say = progress or silent
    fingerprint = compile_to(config, folder, say)
    if not code:
        return fingerprint
    try:
        make_code(folder, progress=say, providers=config.policy.providers)
    except DataError as error:
        say(f"The model has no machine code, and each node compiles the loops: {error}", None)
    return expected_text(folder)


def load_lexicon(config: ModelConfig, progress: Progress | None = None) -> Lexicon:
    """Return the lexicon of the settings: where they name several, the first, cut down to the words that are in all.

    Raises:
        SettingsError: an unknown format.
        DataError: it is missing, malformed or changed, or fewer than two words are in all.
    """
    return with_shared_words(load_lexicons(config, progress))[0]


def load_lexicons(config: ModelConfig, progress: Progress | None = None) -> tuple[Lexicon, ...]:
    """Return the lexicons that the settings name, as they are: packaged, saved folders, or files of word vectors.

    Raises:
        SettingsError: an unknown format.
        DataError: one is missing, malformed or changed.
    """
    say = progress or silent
    tokenizer = config.policy.tokenizer
    prior = config.lexicon.prior
    if prior is not None:
        check_corpus(prior.corpus)
    unfit = None if config.lexicon.exclude is None else read_excluded(config.lexicon.exclude)
    lexicons = [_load(source, field, tokenizer, say) for field, source in _sources(config).items()]
    if unfit is not None:
        sizes = [len(lexicon) for lexicon in lexicons]
        lexicons = [lexicon.without(unfit) for lexicon in lexicons]
        if sizes == [len(lexicon) for lexicon in lexicons]:
            say(f"lexicon.exclude: none of its {len(unfit):,} words is in the lexicon", None)
    first, *more = lexicons
    if prior is not None:
        say("counting the public text", None)
        first = first.with_prior(read_prior(prior.corpus, first, config.policy))
    return first, *more


def _known_prior(config: ModelConfig) -> str | None:
    """Compute the identity of the settings' prior before it is read; None for Zipf's law.

    Raises:
        DataError: the corpus cannot be read, or a saved prior is damaged.
    """
    if config.lexicon.prior is not None:
        check_corpus(config.lexicon.prior.corpus)
        return file_digest(FIELD, config.lexicon.prior.corpus)
    source = config.lexicon.source
    if source == PACKAGED:
        prior = Lexicon.default().prior
    elif Path(source).is_dir():
        prior = Lexicon.open(source, verify=False).prior
    else:
        return None
    return None if prior.is_by_rank else prior.digest


def _sources(config: ModelConfig) -> dict[str, Embedding]:
    """Return the named sources, by their settings."""
    more = {f"lexicon.more[{number}].source": source for number, source in enumerate(config.lexicon.more)}
    return {"lexicon.source": config.lexicon, **more}


def _load(source: Embedding, field: str, tokenizer: Literal["words", "whitespace"], say: Progress) -> Lexicon:
    """Open or read one lexicon."""
    if source.source == "default":
        return Lexicon.default()
    path = Path(source.source)
    if path.is_dir():
        opened = Lexicon.open(path)
        opened.require_cut_by(tokenizer, field)
        return opened
    if not path.exists():
        raise DataError(
            f"{field}: {source.source!r} does not exist. Choose default, a saved lexicon, or a file of word vectors."
        )
    return Lexicon.read(
        path,
        format=source.format,
        limit=source.limit,
        vocabulary=source.vocabulary,
        tokenizer=tokenizer,
        progress=counted("reading the lexicon", say),
    )


def _compile(
    config: ModelConfig,
    lexicons: Sequence[Lexicon],
    folder: Path,
    say: Progress,
    frequencies: Frequencies | None = None,
    classifier: Classifier | None = None,
) -> str:
    """Compile and save; another process that saved the same artifact meanwhile is no harm."""
    privatizer = _compiled(
        config.mechanism, lexicons, config.policy, config.consistency, config.importance, config.budget, (), frequencies,
        classifier, say,
    )  # fmt: skip
    words = _one_or_all([lexicon.fingerprint for lexicon in lexicons])
    spec = config.spec() | {"engine": ENGINE_VERSION, "lexicon_fingerprint": words}
    try:
        artifact.save_model(privatizer, folder, spec=spec)
    except OSError as error:
        # The last step renames a finished folder into place. It fails if another process was faster.
        if not (folder / artifact.MANIFEST).exists():
            raise DataError(f"artifact: {str(folder)!r} cannot be written ({error.strerror}).") from None
        artifact.save_model(privatizer, folder, spec=spec)
    _certify(privatizer, folder, say)
    return privatizer.fingerprint


def _certify(privatizer: Privatizer, folder: Path, say: Progress) -> None:
    """Put a certificate into a model that has none, where that takes seconds; runs take it from there."""
    if artifact.certificate_of(folder) is None and is_cheap(privatizer):
        certificate = certify(privatizer, progress=counted("certifying", say))
        try:
            artifact.keep_certificate(folder, certificate)
        except DataError:
            say("the certificate cannot be stored", None)  # a run goes on without one


def _one_or_all(fingerprints: Sequence[str]) -> str | list[str]:
    """Return the fingerprint of the one lexicon, or those of all."""
    return fingerprints[0] if len(fingerprints) == 1 else list(fingerprints)


def _open_cached(folder: Path, config: ModelConfig, say: Progress) -> Privatizer | None:
    """Open a copy in the cache; one that is missing or damaged is made again."""
    if not folder.exists():
        return None
    try:
        privatizer = artifact.open_model(folder, providers=config.policy.providers)
        _certify(privatizer, folder, say)
        return privatizer
    except DataError:
        say("a cached model is damaged, and dptext makes it again", None)
        # Another process may have put it aside by now.
        with (
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".damaged-") as aside,
            suppress(FileNotFoundError),
        ):
            os.replace(folder, Path(aside) / "artifact")
        return None


def _cached(
    config: ModelConfig,
    fingerprints: Sequence[str],
    frequencies: Frequencies | None = None,
    classifier: Classifier | None = None,
) -> Path:
    """Return the cache folder of a model, by settings, lexicons, document frequencies and classifier of names."""
    parts = config.spec() | {
        "importance": None if config.importance is None else made_from(config.importance, frequencies),
        "lexicon": _one_or_all(fingerprints),
        "engine": ENGINE_VERSION,
        "schema": SCHEMA_VERSION,
        "version": __version__,
        "code": _code(),
        "stop_words": config.policy.stop_list(),
    }
    prior = _known_prior(config)
    if prior is not None:
        parts["prior"] = prior
    if classifier is not None:
        parts["names"] = classifier.digest
    if config.policy.providers:
        parts["providers"] = [provider.record.as_dict() for provider in providers_of(config.policy)]
    return user_cache() / "artifacts" / _digest(parts)


@cache
def _code() -> str:
    """Compute a digest of the modules that write what a model stores: a checkout changes without a new version."""
    package = Path(__file__).parents[1]
    folders = (package / name for name in ("mechanisms", "importance", "model"))
    # Within a ZIP file of the package there is no file to read: then the version alone tells models apart.
    files = [package / "guarantee.py", *sorted(file for folder in folders for file in folder.rglob("*.py"))]
    return _digest([hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file()])


def _digest(value: object) -> str:
    return hashlib.sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:32]


def _note(source: Embedding, tokenizer: str) -> Path | None:
    """Return the file that notes the fingerprint of a lexicon, to recognise it unread."""
    identity: list[Any] = [source.format, source.limit, tokenizer]
    for named in (source.source, source.vocabulary):
        if named is not None:
            try:
                status = os.stat(named)
            except OSError:
                return None  # the reader will report the problem
            identity.append([os.path.realpath(named), status.st_size, status.st_mtime_ns, status.st_ino])
    return user_cache() / "lexicons" / f"{_digest(identity)}.json"


def _known_fingerprints(config: ModelConfig) -> list[str] | None:
    """Return the lexicons' fingerprints if none needs a reading of the vectors."""
    if config.lexicon.exclude is not None:
        return None  # they belong to the remaining words
    fingerprints = [
        _known_fingerprint(source, config.policy.tokenizer) for source in _sources(config).values()
    ]
    known = [fingerprint for fingerprint in fingerprints if fingerprint is not None]
    return known if len(known) == len(fingerprints) else None


def _known_fingerprint(source: Embedding, tokenizer: str) -> str | None:
    """Return a lexicon's fingerprint if it needs no reading of the vectors."""
    if source.source == "default":
        return Lexicon.default().fingerprint
    if Path(source.source).is_dir():
        return Lexicon.open(source.source, verify=False).fingerprint
    note = _note(source, tokenizer)
    if note is None or not note.exists():
        return None
    try:
        return str(json.loads(note.read_text(encoding="utf-8"))["fingerprint"])
    except (OSError, ValueError, KeyError, TypeError):
        return None  # a note that cannot be read costs a reading of the file, nothing else


def _remember(config: ModelConfig, fingerprints: Sequence[str]) -> None:
    """Note the fingerprints of lexicon files."""
    if config.lexicon.exclude is not None:
        return
    for source, fingerprint in zip(_sources(config).values(), fingerprints, strict=True):
        is_file = source.source != "default" and not Path(source.source).is_dir()
        note = _note(source, config.policy.tokenizer) if is_file else None
        if note is None:
            continue
        note.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(note, json.dumps({"fingerprint": fingerprint}), PRIVATE)


def _require_same(config: ModelConfig, folder: Path) -> None:
    """Refuse an artifact that was made from other settings or by another engine.

    Its lexicon must agree where the settings name one.
    """
    manifest = artifact.read_manifest(folder)
    spec = manifest.spec
    engine = spec.get("engine")
    if spec and engine != ENGINE_VERSION:  # first: another engine may have had other settings, too
        raise SettingsError(
            f"run.artifact: {str(folder)!r} was made for engine {engine!r}, but this is {ENGINE_VERSION!r} and draws other "
            "words under the same key. Prepare it again."
        )
    require_named(manifest.policy.providers, config.policy.providers, repr(str(folder)))
    requested = config.spec()
    if "lexicon" not in config.model_fields_set:
        del requested["lexicon"]
    for values in (requested, spec):
        if isinstance(values.get("mechanism"), dict):
            values["mechanism"] = config.mechanism.unused() | values["mechanism"]
    requested.setdefault("budget", None)
    for section, value in requested.items():
        recorded = spec.get(section)
        pairs = (
            [(f"{section}.{name}", value[name], (recorded or {}).get(name)) for name in value]
            if isinstance(value, dict)
            else [(section, value, recorded)]
        )
        if section == "lexicon":
            then = (recorded or {}).get("version")
            if None not in (then, config.lexicon_version) and then != config.lexicon_version:
                raise SettingsError(
                    f"run.artifact: {str(folder)!r} was made with version {then} of the packaged lexicon, but this package "
                    f"has version {config.lexicon_version} with other words or vectors. Prepare it again."
                )
            pairs = [pair for pair in pairs if pair[0] not in ("lexicon.version", "lexicon.prior")]
            pairs = [pair for pair in pairs if pair[0] != "lexicon.exclude"]
            pairs += [
                (f"lexicon.{name}", value.get(name), (recorded or {}).get(name))
                for name in ("prior", "exclude")
            ]
        for name, asked, stored in pairs:
            if asked != stored:
                raise SettingsError(
                    f"{name}: {briefly(asked)} differs from {briefly(stored)} of artifact {str(folder)!r}. Change the "
                    "setting, or prepare another artifact."
                )
