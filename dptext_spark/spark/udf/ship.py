"""Bring a compiled model to every node, once, as files that the workers of a node memory-map and share.

`artifact` ships through Spark (`addArtifact`), `path` points to a folder that every node sees (a volume). `broadcast` gives
each worker a copy of its own, and leaves one on the disks on the way: for small models on classic sessions. What is shipped
holds neither the key nor a text. It is public knowledge, but for a private model, which holds counts of the private texts.
"""

from __future__ import annotations

import atexit
import os
import shutil
import tempfile
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from dptext_spark.errors import SettingsError, require_choice
from dptext_spark.model.artifact import MANIFEST, open_model, read_manifest, save_model, seal_of
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.paths import user_cache
from dptext_spark.spark.session.session import context_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SHIP = ("artifact", "path", "broadcast")


@dataclass(frozen=True)
class Shipped:
    """Where the workers find the model.

    Attributes:
        folder: the folder that every node sees; empty where Spark shipped the files.
        prefix: stands before the file names; empty unless Spark shipped the files. It is the start of the manifest's seal, since
            Spark refuses a name that was shipped with other content, and equal arrays may have been made from other settings.
        broadcast: Spark's handle of the broadcast model, None for files.
        seal: of the model's manifest: a worker opens these files, and hashes them, once for each content; empty: any.
        providers: the import paths that the settings name, which workers may import and no others.
    """

    folder: str
    prefix: str
    broadcast: Any = None
    seal: str = ""
    providers: tuple[str, ...] = ()


def ship(
    spark: SparkSession,
    folder: str | os.PathLike[str],
    how: Literal["artifact", "path", "broadcast"] = "artifact",
    providers: tuple[str, ...] = (),
) -> Shipped:
    """Ship the artifact in `folder`.

    Args:
        spark: the session.
        folder: the artifact.
        how: it travels.
        providers: the import paths that the settings name.

    Raises:
        SettingsError: an unknown `how`, or a broadcast on Spark Connect.
        DataError: no artifact there.
    """
    require_choice("run.ship", how, SHIP)
    manifest = read_manifest(folder)
    if how == "path":
        return Shipped(str(Path(folder).resolve()), "", seal=manifest.seal, providers=providers)
    if how == "broadcast":
        context = context_of(spark)
        if context is None:
            raise SettingsError(
                "run.ship: broadcast given, but Spark Connect has no broadcasts; valid there: artifact, path."
            )
        model = _broadcast(context, str(Path(folder).resolve()), manifest.seal, providers)
        return Shipped("", "", model, providers=providers)
    prefix = f"{manifest.seal[:24]}-"
    for file in _staged(str(Path(folder).resolve()), prefix):
        spark.addArtifact(file, file=True)  # one by one: a classic session takes no more
    return Shipped("", prefix, seal=manifest.seal, providers=providers)


@cache
def _staged(folder: str, prefix: str) -> tuple[str, ...]:
    """Copy an artifact's files under their shipped names to a folder that lives as long as this process.

    Executors fetch them from the driver when their first task needs them, which may be any time later.
    """
    stage = Path(tempfile.mkdtemp(prefix="dptext-ship-"))
    atexit.register(shutil.rmtree, stage, ignore_errors=True)
    names = [MANIFEST, *(f"{name}.npy" for name in read_manifest(folder).arrays)]
    for name in names:
        try:
            os.link(Path(folder) / name, stage / f"{prefix}{name}")
        except OSError:  # another file system, or one without links
            shutil.copyfile(Path(folder) / name, stage / f"{prefix}{name}")
    return tuple(str(stage / f"{prefix}{name}") for name in names)


@cache
def _broadcast(context: Any, folder: str, seal: str, providers: tuple[str, ...]) -> Any:  # noqa: ARG001  (tells models apart)
    """Broadcast a model once a session."""
    return context.broadcast(open_model(folder, verify=False, providers=providers))


@cache
def open_shipped(shipped: Shipped) -> Privatizer:
    """Open the model in a worker, once a process."""
    if shipped.broadcast is not None:
        model: Privatizer = shipped.broadcast.value
        for one in model.imported:
            one.require()
        return model
    if shipped.folder:
        return open_model(shipped.folder, seal=shipped.seal or None, providers=shipped.providers)
    from pyspark import SparkFiles

    folder = Path(SparkFiles.get(f"{shipped.prefix}{MANIFEST}")).parent
    return open_model(folder, prefix=shipped.prefix, seal=shipped.seal or None, providers=shipped.providers)


def shipped_model(spark: SparkSession, privatizer: Privatizer) -> Shipped:
    """Keep a model in the user's cache, and ship it."""
    folder = Path(user_cache()) / "artifacts" / f"frame-{seal_of(privatizer)[:32]}"
    save_model(privatizer, folder)
    return ship(spark, folder, providers=privatizer.policy.providers)
