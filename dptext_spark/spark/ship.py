"""Bring a compiled model to every node, once, as files that the workers of a node memory-map and share.

`artifact` ships through Spark (`addArtifact`), `path` points to a folder that every node sees (a volume). `broadcast` gives
each worker a copy of its own, and leaves one on the disks on the way: for small models on classic sessions. The shipped files
hold neither the key nor a text. They are public knowledge; only a private model holds counts of the private texts.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from dptext_spark.config.model import ModelConfig
from dptext_spark.errors import DataError, SettingsError, require_choice
from dptext_spark.model.artifact import MANIFEST, open_model, read_manifest, save_model, seal_of
from dptext_spark.model.machine_code import FILE, FOLDER, digest_of, read_code, take, trusted_code
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.paths import user_cache
from dptext_spark.spark.session import context_of

SHIP = ("artifact", "path", "broadcast")
_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Shipped:
    """Place of the model for workers.

    Attributes:
        folder: the folder that every node sees; empty where Spark shipped the files.
        prefix: stands before the file names; empty unless Spark shipped the files. It is the start of the manifest's seal, since
            Spark refuses a name that was shipped with other content, and equal arrays may have been made from other settings.
        broadcast: Spark's handle of the broadcast model and its machine code (None where it has none); None for files.
        seal: of the model's manifest: a worker opens these files, and hashes them, once for each content; empty: any.
        providers: the import paths that the settings name, which workers may import and no others.
        code: the digest of its machine code, which the driver trusts: a worker takes that code, and no other; empty: none.
    """

    folder: str
    prefix: str
    broadcast: Any = None
    seal: str = ""
    providers: tuple[str, ...] = ()
    code: str = ""

    @property
    def code_prefix(self) -> str:
        """Prefix of the archive of machine code, if Spark shipped it."""
        return f"{self.code[:24]}-code-"


def ship(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    how: Literal["artifact", "path", "broadcast"] = "artifact",
    providers: tuple[str, ...] = (),
    vouched: str | None = None,
) -> Shipped:
    """Ship the artifact in `folder`, with its machine code where that is trusted; else a sentence is logged.

    `vouched` is the digest of machine code that `run.artifact_fingerprint` names.

    Raises:
        SettingsError: an unknown `how`, or a broadcast on Spark Connect.
        DataError: no artifact there.
    """
    require_choice("run.ship", how, SHIP)
    manifest = read_manifest(folder)
    home = str(Path(folder).resolve())
    code = _code(home, vouched)
    digest = "" if code is None else digest_of(code)
    if how == "path":
        return Shipped(home, "", seal=manifest.seal, providers=providers, code=digest)
    if how == "broadcast":
        context = context_of(spark)
        if context is None:
            raise SettingsError(
                "run.ship: broadcast does not work with Spark Connect. Choose artifact or path."
            )
        sent = _broadcast(context, home, manifest.seal, providers, code)
        return Shipped("", "", sent, providers=providers, code=digest)
    shipped = Shipped("", f"{manifest.seal[:24]}-", seal=manifest.seal, providers=providers, code=digest)
    names = (MANIFEST, *(f"{name}.npy" for name in manifest.arrays))
    files = _staged(home, shipped.prefix, names)
    if code is not None:
        files += _staged(str(Path(home) / FOLDER), shipped.code_prefix, (FILE,))
    for file in files:
        spark.addArtifact(file, file=True)  # one by one: a classic session takes no more
    return shipped


def ship_for(spark: SparkSession, folder: str | os.PathLike[str], config: ModelConfig) -> Shipped:
    """Ship the artifact in `folder` by the settings."""
    return ship(spark, folder, config.run.ship, config.policy.providers, config.run.expected_code)


def _code(folder: str, vouched: str | None) -> bytes | None:
    """Return the machine code of an artifact, if it is trusted; otherwise log that once."""
    try:
        return trusted_code(folder, vouched)
    except DataError as error:
        _warn(f"{error} Workers compile the loops instead.")
        return None


@cache
def _warn(text: str) -> None:
    """Log a sentence, once a process."""
    _log.warning("%s", text)


@cache
def _stage() -> Path:
    """Make the folder of shipped files. It lives as long as this process."""
    stage = Path(tempfile.mkdtemp(prefix="dptext-ship-"))
    atexit.register(shutil.rmtree, stage, ignore_errors=True)
    return stage


def _staged(folder: str, prefix: str, names: tuple[str, ...]) -> tuple[str, ...]:
    """Copy files under their shipped names to the stage, where they are not there.

    Executors fetch them from the driver when their first task needs them, at any later time. A name has a digest of its content.
    Spark refuses a name from another place, even with the same content: two folders may hold the same code.
    """
    paths = []
    for name in names:
        staged = _stage() / f"{prefix}{name}"
        if not staged.exists():
            try:
                os.link(Path(folder) / name, staged)
            except OSError:  # another file system, or one without links
                part = staged.with_suffix(".part")
                shutil.copyfile(Path(folder) / name, part)
                part.replace(staged)
        paths.append(str(staged))
    return tuple(paths)


@cache
def _broadcast(
    context: Any,
    folder: str,
    seal: str,  # noqa: ARG001  (the cache tells models apart by it)
    providers: tuple[str, ...],
    code: bytes | None,
) -> Any:
    """Broadcast a model once a session."""
    return context.broadcast((open_model(folder, providers=providers), code))


def _attach(shipped: Shipped) -> None:
    """Take the shipped machine code; if it cannot be used, log that once and let numba compile."""
    if not shipped.code:
        return

    try:
        code = _received(shipped)
        if digest_of(code) != shipped.code:
            raise DataError(f"{FILE} differs from the file that was sent.")
        take(code)
    except (DataError, OSError) as error:
        _log.warning("Machine code of the model: %s Loops are compiled instead.", error)


def _received(shipped: Shipped) -> bytes:
    """Return the machine code next to a worker's model, of any origin."""
    if shipped.broadcast is not None:
        code: bytes | None = shipped.broadcast.value[1]
        return code or b""
    if shipped.folder:
        return read_code(Path(shipped.folder) / FOLDER / FILE)
    from pyspark import SparkFiles

    return read_code(Path(SparkFiles.get(f"{shipped.code_prefix}{FILE}")))


@cache
def open_shipped(shipped: Shipped) -> Privatizer:
    """Open the model in a worker, once a process."""
    _attach(shipped)
    if shipped.broadcast is not None:
        model: Privatizer = shipped.broadcast.value[0]
        for provider in model.imported:
            provider.require()
        for array in model.arrays().values():
            array.setflags(write=False)  # as those of files: compiled loops distinguish them
        return model
    if shipped.folder:
        return open_model(shipped.folder, seal=shipped.seal or None, providers=shipped.providers)
    from pyspark import SparkFiles

    folder = Path(SparkFiles.get(f"{shipped.prefix}{MANIFEST}")).parent
    return open_model(folder, prefix=shipped.prefix, seal=shipped.seal or None, providers=shipped.providers)


def check_complete(model: Privatizer) -> None:
    """Check that a model needs no counts of the text that it is to draw.

    Raises:
        SettingsError: it does.
    """
    if not model.chooses:
        raise SettingsError(
            "model: its importance needs document frequencies, and none were counted. Name "
            "importance.corpus, or compile the model with `frequencies` from spark.document_frequencies."
        )


def shipped_model(spark: SparkSession, privatizer: Privatizer) -> Shipped:
    """Keep a model in the user's cache, and ship it."""
    folder = Path(user_cache()) / "artifacts" / f"frame-{seal_of(privatizer)[:32]}"
    save_model(privatizer, folder)
    return ship(spark, folder, providers=privatizer.policy.providers)
