"""Word vectors as arrays: .npz (arrays `words` and `vectors`) and Parquet (columns `word` and `vector`)."""

from __future__ import annotations

import itertools
import zipfile
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from dptext_spark.errors import DataError
from dptext_spark.lexicon.readers.builder import Block, ByteSource, Entries, check_dimensions, keys_from

BLOCK_VALUES = 1 << 20
PARQUET_ROWS = 4096


def read_npz(source: ByteSource) -> Entries:
    """Open a .npz file, plain or compressed; it is read by rows, never unpickled.

    Args:
        source: holds `words`, str or UTF-8 bytes [V], and `vectors`, float16, float32 or float64 [V, d]. An
            array in Fortran order is read whole.

    Raises:
        DataError: an array is missing or not of these kinds, or the two differ in length.
    """
    path = source.path
    try:
        archive = zipfile.ZipFile(source.rewound())
        missing = [name for name in ("words", "vectors") if f"{name}.npy" not in archive.namelist()]
        if missing:
            raise DataError(f"{path}: no array {', '.join(missing)}; it must hold words and vectors.")
        with archive.open("words.npy") as member:
            words = np.asarray(np.lib.format.read_array(member, allow_pickle=False))
        stream = archive.open("vectors.npy")
        shape, fortran, dtype = _npy_header(stream)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as reason:
        raise DataError(f"{path}: a damaged or truncated .npz file.") from reason
    except (ValueError, RuntimeError) as reason:
        raise DataError(
            f"{path}: cannot be read as arrays of strings and of numbers (Python objects are never read)."
        ) from reason
    if words.ndim != 1 or words.dtype.kind not in "US":
        raise DataError(f"{path}: words must be strings [V], given {words.dtype}{list(words.shape)}.")
    if len(shape) != 2 or dtype.kind != "f" or dtype.itemsize > 8:
        raise DataError(f"{path}: vectors must be float16, 32 or 64 [V, d], given {dtype}{list(shape)}.")
    if len(words) != shape[0]:
        raise DataError(f"{path}: {len(words):,} words, but {shape[0]:,} vectors.")
    check_dimensions(path, shape[1])
    return Entries(
        dimensions=shape[1],
        announced=shape[0],
        likely=shape[0],
        blocks=_npz_blocks(path, words, stream, shape[1], fortran, dtype),
    )


def _npy_header(stream: IO[bytes]) -> tuple[tuple[int, ...], bool, np.dtype[Any]]:
    """Read the header of a .npy stream: shape, Fortran order, dtype."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def _npz_blocks(
    path: Path,
    words: npt.NDArray[Any],
    stream: IO[bytes],
    dimensions: int,
    fortran: bool,
    dtype: np.dtype[Any],
) -> Iterator[Block]:
    """Yield the words with blocks of rows."""
    step = max(1, BLOCK_VALUES // dimensions)
    whole = _rows(path, stream, dimensions, len(words), dtype).T if fortran else None
    for start in range(0, len(words), step):
        stop = min(start + step, len(words))
        rows = (
            whole[start:stop] if whole is not None else _rows(path, stream, stop - start, dimensions, dtype)
        )
        try:
            keys = keys_from(pa.array(words[start:stop]))
        except (pa.ArrowException, UnicodeError) as reason:
            raise DataError(
                f"{path}: one of words {start:,} to {stop - 1:,} is no valid Unicode."
            ) from reason
        yield keys, _narrowed(rows)


def _narrowed(rows: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    """Return float32; what is too large becomes infinite, and is dropped and counted as such."""
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(rows, np.float32)


def _rows(path: Path, stream: IO[bytes], rows: int, columns: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Read rows x columns numbers."""
    size = rows * columns * dtype.itemsize
    try:
        data = stream.read(size)
    except (zipfile.BadZipFile, zlib.error, EOFError, OSError) as reason:
        raise DataError(f"{path}: the array vectors is damaged.") from reason
    if len(data) != size:
        raise DataError(f"{path}: the array vectors ends {size - len(data):,} bytes too early.")
    return np.frombuffer(data, dtype).reshape(rows, columns)


def read_parquet(source: ByteSource) -> Entries:
    """Open a Parquet file, read by batches.

    Args:
        source: holds `word` (string) and `vector` (a list of float16, float32 or float64, all of one length);
            other columns are not read.

    Raises:
        DataError: no Parquet file, no rows, or a column is missing or of another type.
    """
    path = source.path
    try:
        file = pq.ParquetFile(source.rewound())
        schema = file.schema_arrow
    except (pa.ArrowException, OSError) as reason:
        raise DataError(f"{path}: cannot be read as Parquet.") from reason
    missing = [name for name in ("word", "vector") if name not in schema.names]
    if missing:
        raise DataError(f"{path}: no column {', '.join(missing)}; it must hold word and vector.")
    word, vector = schema.field("word").type, schema.field("vector").type
    plain = word.value_type if pa.types.is_dictionary(word) else word
    if not (pa.types.is_string(plain) or pa.types.is_large_string(plain)):
        raise DataError(f"{path}: column word is {word}; it must be a string.")
    lists = pa.types.is_list(vector) or pa.types.is_large_list(vector) or pa.types.is_fixed_size_list(vector)
    if not lists or not pa.types.is_floating(vector.value_type):
        raise DataError(f"{path}: column vector is {vector}; it must be a list of floating-point numbers.")
    blocks = _parquet_blocks(path, file)
    first = next(blocks, None)
    if first is None:
        raise DataError(f"{path}: the file holds no rows.")
    rows = file.metadata.num_rows
    return Entries(
        dimensions=first[1].shape[1], announced=rows, likely=rows, blocks=itertools.chain([first], blocks)
    )


def _parquet_blocks(path: Path, file: Any) -> Iterator[Block]:
    """Yield the batches; rows are numbered from 1 in messages."""
    dimensions, row = 0, 1
    batches = file.iter_batches(batch_size=PARQUET_ROWS, columns=["word", "vector"])
    while True:
        try:
            batch = next(batches, None)
        except (pa.ArrowException, OSError) as reason:
            raise DataError(f"{path}: damaged data, in row {row:,} or after it.") from reason
        if batch is None:
            return
        if not len(batch):
            continue
        words, vectors = batch.column("word"), batch.column("vector")
        for name, column in (("word", words), ("vector", vectors)):
            if column.null_count:
                raise DataError(f"{path}, row {row + _first_null(column):,}: {name} is NULL.")
        sizes = pc.list_value_length(vectors).to_numpy(zero_copy_only=False)
        if not dimensions:
            dimensions = int(sizes[0])
            check_dimensions(path, dimensions)
        wrong = np.flatnonzero(sizes != dimensions)
        if len(wrong):
            place, size = row + int(wrong[0]), sizes[wrong[0]]
            raise DataError(f"{path}, row {place:,}: {size:,} numbers where row 1 has {dimensions:,}.")
        values = vectors.flatten()
        if values.null_count:
            place = row + _first_null(values) // dimensions
            raise DataError(f"{path}, row {place:,}: vector holds a NULL.")
        yield keys_from(words), _narrowed(values.to_numpy(zero_copy_only=False).reshape(-1, dimensions))
        row += len(batch)


def _first_null(column: pa.Array) -> int:
    """Return the index of the first NULL."""
    return int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
