"""The machine code of the loops that a prepared model needs, beside its arrays, so that no node compiles them.

The folder `code` of a model holds an archive of numba's own cache files. It is no part of the model's fingerprint, on which
draws depend, and may be made again at any time.

It runs unchecked. So its digest must be vouched for: by `run.artifact_fingerprint`, or because only the user can have written
it. The digest goes to the workers in the function's closure. The archive is read once. The compared bytes are unpacked to a
folder where only the user can write, and numba reads these files.
"""

from __future__ import annotations

import hashlib
import io
import os
import stat
import subprocess
import sys
import tempfile
import zipfile
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa

from dptext_spark.errors import DataError, either
from dptext_spark.importance.selector import Selector
from dptext_spark.model.artifact import expected_fingerprint, open_model
from dptext_spark.model.privatizer import WARM, Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.runtime import jit
from dptext_spark.runtime.display import Progress, silent
from dptext_spark.runtime.paths import extract, python_path, writable_by_others
from dptext_spark.text.names.matching import NameMatcher
from dptext_spark.text.names.name_table import NameTable, WordList
from dptext_spark.text.names.search import KEEP, MASK, PERSON
from dptext_spark.text.selection import Texts
from dptext_spark.text.tokens import list_words

FOLDER = "code"
FILE = "loops.zip"
MOST_BYTES = 20_000_000
_CHILD = "import sys; from dptext_spark.model.machine_code import record; record(*sys.argv[1:])"
_DAMAGED = (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error)


def digest_of(code: bytes) -> str:
    """Compute the digest of an archive of machine code: its sha256, hex."""
    return hashlib.sha256(code).hexdigest()


def read_code(file: Path) -> bytes:
    """Return the content of an archive of machine code; a pipe would wait for ever.

    Raises:
        OSError: it cannot be read, is no file, or is too long.
    """
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(f"{file.name} is not a file")
        content = stream.read(MOST_BYTES + 1)
    if len(content) > MOST_BYTES:
        raise OSError(f"{file.name} has more than {MOST_BYTES:,} bytes")
    return content


def trusted_code(model: str | os.PathLike[str], vouched: str | None = None) -> bytes | None:
    """Return the machine code of a model's folder that somebody vouches for; None where there is none.

    Args:
        model: the model's folder.
        vouched: the digest that `run.artifact_fingerprint` names; None: nobody but this user may have written it.

    Raises:
        DataError: there is code, which is not trusted or cannot be read. It is not used, and everything else works.
    """
    whose = f"machine code of {str(model)!r}"
    try:
        file = (Path(model) / FOLDER / FILE).resolve(strict=True)
        code = read_code(file)
        exposed = None if vouched is not None else writable_by_others(file)
    except FileNotFoundError:
        if vouched is None:
            return None
        raise DataError(f"{whose}: {FILE} is missing, but run.artifact_fingerprint names it") from None
    except OSError as error:
        raise DataError(f"{whose}: {FILE} cannot be read ({error.strerror or error})") from None
    if vouched is not None and digest_of(code) != vouched:
        raise DataError(f"{whose}: not used, because run.artifact_fingerprint names other code")
    if exposed is not None:
        raise DataError(
            f"{whose}: not used, because other users can write {str(exposed)!r}. Name it in run.artifact_fingerprint, as "
            "`prepare` prints it"
        )
    return code


def take(code: bytes) -> None:
    """Take the loops of an archive in this process; they are run, so it must be trusted.

    Raises:
        DataError: it is none, or was made for another processor, package or version of a library.
    """
    folder = Path(jit.code_cache()) / "models" / digest_of(code)
    try:
        with zipfile.ZipFile(io.BytesIO(code)) as archive:
            extract(archive, folder)
    except _DAMAGED as error:
        raise DataError(f"{FILE} cannot be unpacked ({type(error).__name__})") from None
    if not jit.attach(folder):
        made_for = sorted(part.name for part in folder.iterdir())
        needed = either(map(jit.folder_for, jit.targets()))
        raise DataError(f"{FILE} is for {', '.join(made_for) or 'nothing'}, but this node needs {needed}")


def attach_code(model: str | os.PathLike[str], vouched: str | None, say: Progress) -> bool:
    """Load a model's machine code in this process, if it is trusted and fits; else log why loops are compiled.

    Returns:
        Whether it was taken.
    """
    try:
        code = trusted_code(model, vouched)
        if code is None:
            return False
        take(code)
    except DataError as error:
        say(f"this node compiles the loops: {error}", None)
        return False
    return True


def expected_text(model: str | os.PathLike[str]) -> str:
    """Compute the `run.artifact_fingerprint` of a model and its machine code.

    Raises:
        DataError: no model there, or it was changed; its machine code cannot be read.
    """
    try:
        code = read_code(Path(model) / FOLDER / FILE)
    except FileNotFoundError:
        return expected_fingerprint(model)
    except OSError as error:
        raise DataError(
            f"machine code of {str(model)!r} cannot be read ({error.strerror or error})."
        ) from None
    return f"{expected_fingerprint(model)}+{digest_of(code)}"


def make_code(
    model: str | os.PathLike[str], progress: Progress | None = None, providers: Sequence[str] = ()
) -> str:
    """Make the machine code of a model's folder anew, in a process of its own; return its digest.

    It is for all processors of the level x86-64-v3 where this is one, else for this very processor.

    Args:
        model: the model's folder.
        progress: progress callback, called with each step.
        providers: the import paths that the settings name, where the model was made with some.

    Raises:
        DataError: it could not be made or written; the model is as it was.
    """
    environment, level = os.environ | {"PYTHONPATH": python_path()}, "this processor"
    if jit.runs_portable():
        level = jit.PORTABLE
        environment |= {"NUMBA_CPU_NAME": level, "NUMBA_CPU_FEATURES": ""}
    (progress or silent)(f"compiling the loops for {level}", None)
    try:
        with tempfile.TemporaryDirectory(dir=model, prefix=f".{FOLDER}-") as work:
            draft = Path(work) / FILE
            child = subprocess.run(
                [sys.executable, "-c", _CHILD, str(model), str(draft), *providers],
                env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
                check=False,
            )  # fmt: skip
            if child.returncode:
                last = (child.stderr.strip().splitlines() or [f"exit code {child.returncode}"])[-1]
                raise DataError(f"machine code cannot be made ({last}).")
            code = read_code(draft)
            draft.chmod(draft.stat().st_mode & 0o755)
            (Path(model) / FOLDER).mkdir(mode=0o755, exist_ok=True)
            os.replace(draft, Path(model) / FOLDER / FILE)
    except OSError as error:
        raise DataError(
            f"machine code of {str(model)!r} cannot be written ({error.strerror or error})."
        ) from None
    return digest_of(code)


def record(model: str, file: str, *providers: str) -> None:
    """Open a model, draw with it, and write an archive of the used loops; for a process of its own."""
    with tempfile.TemporaryDirectory(dir=Path(file).parent) as name:
        place = Path(name)
        with jit.recording(place):
            exercise(open_model(model, providers=providers))
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
            for part in sorted(place.rglob("*.nb?")):
                archive.write(part, part.relative_to(place))


def exercise(model: Privatizer) -> None:
    """Draw public texts as workers do: this calls every loop of a run, for its types there."""
    vocabulary = model.vocabulary.strings()
    known = vocabulary.take(pa.array(np.linspace(0, len(vocabulary) - 1, 64).astype(np.int64))).to_pylist()
    several = " ".join(known)
    texts = [
        WARM,
        None,
        "",
        several,
        *(f"{WARM} {number} The house, ÉCOLE; it's 1.50€!" for number in range(40)),
    ]
    key, numbers = RunKey.insecure(0), pa.array(np.arange(len(texts)))
    # A table's column of one word or none is contiguous, another type to the compiler. At dataset level a word is drawn once.
    small: list[list[str | None]] = [["zzzzz"], ["1.50"], [None], [], *([word] for word in known[1::8])]
    for few in small:
        _draw(model, pa.array(few, pa.string()), pa.array(np.arange(len(few))), key)
    for kind in (pa.int64(), pa.string(), pa.binary(), pa.large_binary()):
        ids = numbers.cast(kind) if kind == pa.int64() else numbers.cast(pa.string()).cast(kind)
        arrays = (pa.array(texts), pa.array(texts).cast(pa.binary()), ids)
        # Arrays of others are read-only, another type to compiled loops.
        for text, other, row_ids in (arrays, tuple(map(_read_only, arrays))):
            _draw(model, text, row_ids, key)
            _draw(model, other, row_ids, key)
    words = [WordList.of_texts(name, pa.array([name]), needed=False) for name in ("Lovelace", "Byron")]
    for use in (MASK, PERSON):  # entries that are masked, and those that have pseudonyms
        names = NameMatcher(NameTable.of(words, (use, KEEP)))
        _draw(model.with_names(names), pa.array(texts), numbers, key)
    _draw(model.of_rows(np.arange(len(texts))), pa.array(texts), numbers, key)


def _read_only(array: pa.Array) -> pa.Array:
    """Return a copy of an array in memory that cannot be written."""
    buffers = [None if buffer is None else pa.py_buffer(buffer.to_pybytes()) for buffer in array.buffers()]
    return pa.Array.from_buffers(array.type, len(array), buffers)


def _draw(model: Privatizer, texts: pa.Array, ids: pa.Array, key: RunKey) -> None:
    """Draw a batch, where words are chosen those of each row."""
    weights = None
    if isinstance(model.selector, Selector) and model.selector.reads_weights:
        listing = list_words(model.engine, texts, marks=model.selector.selection.rank_punctuation)
        counts = np.diff(listing.words.bounds).tolist()
        weights = pa.array([[1.0] * count for count in counts], pa.list_(pa.float32()))
    chosen = model.choose([Texts(texts, None, weights)])
    model.privatize(
        texts, column="", row_ids=ids, record_ids=ids, key=key, weights=weights,
        chosen=None if chosen is None else chosen[0],
    )  # fmt: skip
