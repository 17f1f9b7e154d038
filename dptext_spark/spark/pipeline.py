"""`Privatize`: a stage of a `pyspark.ml` pipeline, which is saved with its settings, its model and the place of its key.

What is saved holds no key: the stage knows a file or a variable, and reads it when it transforms. The model lies beside the
settings as pieces of its files in a table, so that it goes wherever Spark writes.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from dptext_spark.config.keys import read_key
from dptext_spark.config.load import parse_model_config
from dptext_spark.config.sections import Key
from dptext_spark.errors import DataError, DPTextError, SettingsError
from dptext_spark.model.artifact import MANIFEST, open_model, save_model, seal_of
from dptext_spark.model.privatizer import Privatizer
from dptext_spark.runtime.paths import user_cache
from dptext_spark.spark.errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.frame import privatize
from dptext_spark.spark.session.session import context_of
from dptext_spark.spark.tables.tables import escaped

try:
    from pyspark.ml import Transformer
    from pyspark.ml.param import Param, Params, TypeConverters
    from pyspark.ml.param.shared import HasInputCols
    from pyspark.ml.util import (
        DefaultParamsReader,
        DefaultParamsWriter,
        MLReadable,
        MLReader,
        MLWritable,
        MLWriter,
    )
except ImportError as error:  # a client of Spark Connect may come without it
    raise SettingsError(
        f"Privatize: this pyspark has no pyspark.ml ({error.name}); valid here: dps.privatize on a DataFrame, or a pyspark with "
        "it (the extra [spark])."
    ) from None

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

PIECE = 8 << 20  # bytes of a file in one row
TOGETHER = 4  # rows that are sent at once
_FILE = re.compile(r"[a-z0-9_]+(\.[a-z0-9_]+)*\.(npy|json)")
_TABLE = pa.schema([("name", pa.string()), ("piece", pa.int64()), ("content", pa.binary())])


def _text(name: str, said: str) -> Param[str]:
    return Param(Params._dummy(), name, said, typeConverter=TypeConverters.toString)


class Privatize(Transformer, HasInputCols, MLReadable["Privatize"], MLWritable):
    """Replaces the words of text columns in a pipeline, as :func:`dps.privatize` does: the frame is the same but for the texts.

    `setInputCols` and a place of the key are needed, and at token level `setRunId`: a frame that is transformed twice must draw
    the same noise. No ledger counts it. Private lists (`policy.mask`, `policy.keep`) are not in a stage.

    Raises:
        SettingsError: this pyspark has no `pyspark.ml`.

    Examples:
        >>> stage = dps.Privatize(model).setInputCols(["body"]).setRowKey("id").setRunId("first")
        >>> stage = stage.setKeyEnv("DPTEXT_KEY")  # a variable with 32 random bytes in hex
        >>> stage.transform(df).columns
        ['id', 'body']
        >>> stage.save(f"{config.input.path}_stage")
        >>> loaded = dps.Privatize.load(f"{config.input.path}_stage")
        >>> loaded.transform(df).collect() == stage.transform(df).collect()
        True
    """

    rowKey = _text("rowKey", "a unique column; not needed where every row knows its file and place (Parquet)")
    recordKey = _text("recordKey", "the column that says what a record is; by default the row")
    runId = _text("runId", "what token-level draws are for")
    udf = _text("udf", "auto, arrow or pandas")
    keyFile = _text("keyFile", "the file of the run key")
    keyEnv = _text("keyEnv", "the environment variable of the run key")
    keyDeliver = _text("keyDeliver", "closure, or executors, which read the key for themselves")
    weights: Param[Sequence[str]] = Param(
        Params._dummy(),
        "weights",
        "for each text column a column with a number for each word",
        typeConverter=TypeConverters.toListString,
    )

    def __init__(self, model: Privatizer | None = None) -> None:
        """Take the compiled model; :meth:`setModel` gives it later."""
        super().__init__()
        self._model = model
        self._setDefault(udf="auto", keyDeliver="closure", weights=[])

    def setModel(self, model: Privatizer) -> Privatize:
        """Take the compiled model."""
        self._model = model
        return self

    def getModel(self) -> Privatizer:
        """Return the compiled model.

        Raises:
            SettingsError: there is none.
        """
        if self._model is None:
            raise SettingsError(
                "model: none set; valid: a compiled one, as Privatize(model) or setModel(model) takes it."
            )
        return self._model

    def setInputCols(self, value: Sequence[str]) -> Privatize:
        """Set the text columns, which are replaced; text in nested ones by a path with dots."""
        if isinstance(value, str):
            raise SettingsError(f"inputCols: {value!r} given; valid: a list with at least one text column.")
        return self._setting(inputCols=list(value))

    def setRowKey(self, value: str) -> Privatize:
        """Set the unique column."""
        return self._setting(rowKey=value)

    def setRecordKey(self, value: str) -> Privatize:
        """Set the column that says what a record is."""
        return self._setting(recordKey=value)

    def setRunId(self, value: str) -> Privatize:
        """Set what token-level draws are for."""
        return self._setting(runId=value)

    def setUdf(self, value: str) -> Privatize:
        """Set the kind of function: auto, arrow or pandas."""
        return self._setting(udf=value)

    def setWeights(self, value: Sequence[str]) -> Privatize:
        """Set the columns that weigh the words of each text column, for a model with importance from the user."""
        return self._setting(weights=list(value))

    def setKeyFile(self, value: str) -> Privatize:
        """Set the file of the run key, which is read at each transformation and never saved."""
        return self._setting(keyFile=value)

    def setKeyEnv(self, value: str) -> Privatize:
        """Set the environment variable of the run key, which is read at each transformation and never saved."""
        return self._setting(keyEnv=value)

    def setKeyDeliver(self, value: str) -> Privatize:
        """Set `closure`, or `executors` for workers that read the key for themselves."""
        return self._setting(keyDeliver=value)

    def _setting(self, **values: Any) -> Privatize:
        self._set(**values)
        return self

    def _value(self, param: Param[str]) -> str | None:
        return str(self.getOrDefault(param)) if self.isDefined(param) else None

    def _key(self) -> Key:
        """Return where the key is, as the section of the settings.

        Raises:
            SettingsError: nowhere, or in two places; a value that is no name of a variable, so that no key is saved by mistake.
        """
        place = {"file": self._value(self.keyFile), "env": self._value(self.keyEnv)}
        deliver = self._value(self.keyDeliver)
        if not any(place.values()):
            raise SettingsError(
                "keyFile: none set, nor keyEnv; valid: the file or the variable of the run key, so that each transformation "
                "draws the same noise."
            )
        return parse_model_config({"key": {**place, "deliver": deliver}}).key

    def _validated(self) -> tuple[Privatizer, Key]:
        """Return the model and where the key is.

        Raises:
            SettingsError: something is missing.
        """
        model, key = self.getModel(), self._key()
        if not self.isDefined(self.inputCols) or not self.getInputCols():
            raise SettingsError("inputCols: none set; valid: a list with at least one text column.")
        if model.consistency == "token" and self._value(self.runId) is None:
            raise SettingsError(
                "runId: none set, and token-level draws hang on it; valid: a name of this release, so that each transformation "
                "draws the same noise."
            )
        parse_model_config({"run": {"id": self._value(self.runId), "udf": self._value(self.udf)}})
        return model, key

    def _transform(self, dataset: DataFrame) -> DataFrame:
        model, key = self._validated()
        return privatize(
            dataset,
            self.getInputCols(),
            model,
            row_key=self._value(self.rowKey),
            record_key=self._value(self.recordKey),
            key=read_key(key),
            run_id=self._value(self.runId),
            udf=str(self.getOrDefault(self.udf)),
            weights=self.getOrDefault(self.weights),
        )

    def write(self) -> MLWriter:
        """Return what saves the stage."""
        return _Writer(self)

    @classmethod
    def read(cls) -> MLReader[Privatize]:
        """Return what loads a stage."""
        return _Reader()


class _Writer(MLWriter):
    """Saves settings, model and where the key is."""

    def __init__(self, stage: Privatize) -> None:
        super().__init__()
        self._stage = stage

    def save(self, path: str) -> None:
        """Save the stage into a folder that Spark writes; with `overwrite`, in the place of what is there.

        Raises:
            SettingsError: something of the stage is missing; a model that holds counts of private texts, or names providers; a
                replacement on Spark Connect.
            RunError: Spark cannot write there.
        """
        stage, spark = self._stage, self.sparkSession
        model, _ = stage._validated()
        if model.selector is not None and model.selector.is_private:
            raise SettingsError(
                "model: it holds counts of private texts, and a saved stage is not its owner's alone; valid: importance.corpus, "
                "or Privatize(model) made anew by the program."
            )
        if model.imported:
            raise SettingsError(
                "model: it names providers, which are code, and a stage that is loaded imports none; valid: a model without, or "
                "Privatize(model) made anew by the program."
            )
        if self.shouldOverwrite and context_of(spark) is None:
            raise SettingsError(
                f"overwrite: given for {path!r}, but Spark Connect cannot replace a saved stage; valid there: a path where "
                "nothing is."
            )
        try:
            with suppress_sensitive_logs(spark):
                super().save(path)
        except DPTextError:
            raise
        except Exception as error:
            raise reduced(error, stage.getInputCols()) from None

    def saveImpl(self, path: str) -> None:
        """Write the settings and the model."""
        stage, spark = self._stage, self.sparkSession
        model = stage.getModel()
        with TemporaryDirectory(prefix="dptext-stage-") as folder:
            save_model(model, folder)
            for number, table in enumerate(_pieces(Path(folder))):
                writer = spark.createDataFrame(table).coalesce(1).write.mode("append" if number else "error")
                writer.parquet(f"{path}/model")
        # The last of it, so that what is there in part is no stage.
        DefaultParamsWriter.saveMetadata(stage, path, spark, extraMetadata={"model": seal_of(model)})


class _Reader(MLReader[Privatize]):
    """Loads a stage."""

    def load(self, path: str) -> Privatize:
        """Load the stage that was saved into a folder.

        Raises:
            DataError: what is there is no stage, or its model is not the one that was saved.
            RunError: Spark cannot read it.
        """
        spark, stage = self.sparkSession, Privatize()
        try:
            with suppress_sensitive_logs(spark):
                metadata = DefaultParamsReader.loadMetadata(escaped(path), spark)
                if (
                    metadata.get("class") != f"{Privatize.__module__}.{Privatize.__name__}"
                    or "model" not in metadata
                ):
                    raise DataError(f"load: {path!r} holds no stage of Privatize.")
                stage._resetUid(metadata["uid"])
                DefaultParamsReader.getAndSetParams(stage, metadata)
                stage.setModel(_restored(spark, f"{path}/model", str(metadata["model"])))
        except DPTextError:
            raise
        except Exception as error:
            raise reduced(error, []) from None
        return stage


def _pieces(folder: Path) -> Iterator[pa.Table]:
    """Cut the files of a model into rows of a table, a few at a time."""
    rows: list[dict[str, str | int | bytes]] = []
    for file in sorted(folder.iterdir()):
        with file.open("rb") as stream:
            number = 0
            while content := stream.read(PIECE):
                rows.append({"name": file.name, "piece": number, "content": content})
                number += 1
                if len(rows) == TOGETHER:
                    yield pa.Table.from_pylist(rows, _TABLE)
                    rows = []
    if rows:
        yield pa.Table.from_pylist(rows, _TABLE)


def _restored(spark: SparkSession, path: str, seal: str) -> Privatizer:
    """Put the files of a model together again, in the user's cache, where it is not there; open the model.

    Raises:
        DataError: pieces are missing, or the model is not the one that was saved.
    """
    kept = Path(user_cache()) / "artifacts" / f"frame-{seal[:32]}"
    if not (kept / MANIFEST).is_file():
        with TemporaryDirectory(prefix="dptext-stage-") as folder:
            _put_together(spark, path, Path(folder))
            save_model(open_model(folder, seal=seal), kept)
    return open_model(kept, seal=seal)


def _put_together(spark: SparkSession, path: str, folder: Path) -> None:
    last: tuple[str, int] = ("", -1)
    for name, number, content in spark.read.parquet(escaped(path)).orderBy("name", "piece").toLocalIterator():
        follows = number == last[1] + 1 if name == last[0] else number == 0
        if not _FILE.fullmatch(name) or not follows:
            raise DataError(f"load: {path!r} is not as it was saved; save the stage again.")
        with (folder / name).open("ab") as stream:
            stream.write(content)
        last = (name, number)
