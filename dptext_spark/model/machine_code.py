"""The machine code of the loops that a compiled model needs, beside its arrays, so that no node compiles them.

The folder `code` of a model holds a file for each level of processor, and a manifest: which loops, what they were made with, and
each file's digest. It is no part of the model's fingerprint, on which draws depend, and may be made again at any time.

It is run as it is found. So it is taken only where its manifest's digest is vouched for: by `run.artifact_fingerprint`, or
because nobody but the user can have written it. The digest goes to the workers in the function's closure. A file is read once,
and the bytes that were compared with their digest are those that are used.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import platform
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal

import numpy as np
import pyarrow as pa

from dptext_spark.errors import DataError
from dptext_spark.importance.selector import Selector
from dptext_spark.model.artifact import expected_fingerprint, open_model
from dptext_spark.model.privatizer import WARM, Privatizer
from dptext_spark.randomness.draws import RunKey
from dptext_spark.runtime.loop_cache import LoopKey, Target, attach, instructions, recording
from dptext_spark.runtime.paths import python_path, writable_by_others
from dptext_spark.runtime.progress import Progress, silent
from dptext_spark.runtime.record import Record
from dptext_spark.text.names.name_table import compile_names, name_key
from dptext_spark.text.names.names import Names
from dptext_spark.text.names.search import PERSON
from dptext_spark.text.names.word_list import WordList
from dptext_spark.text.selection import Texts
from dptext_spark.text.tokens import list_words

FOLDER = "code"
MANIFEST = "manifest.json"
FORMAT = 1
MOST_BYTES = 20_000_000  # of a level
MOST_MANIFEST = 1 << 22
OWN = "own"
PORTABLE = "x86-64-v3"
LISTS, NO_LISTS = "lists", "no lists"
# What the level x86-64-v3 of the psABI has beyond the first 64-bit processors, as LLVM names it.
V3 = frozenset(
    ("avx", "avx2", "bmi", "bmi2", "cx16", "f16c", "fma", "lzcnt", "movbe", "popcnt", "sahf", "sse3", "sse4.1", "sse4.2", "ssse3")
)  # fmt: skip
_log = logging.getLogger(__name__)
_CHILD = "import sys; from dptext_spark.model.machine_code import record; record(*sys.argv[1:])"


@dataclass(frozen=True)
class Loop(Record):
    """A loop of a file of machine code.

    Attributes:
        name: module and name of its function.
        digest: sha256 of its bytecode and of all that it uses, hex.
        signature: the types of its arguments.
        size: bytes that its code takes.
    """

    name: str
    digest: str
    signature: str
    size: int

    @property
    def key(self) -> LoopKey:
        """What it is known by."""
        return LoopKey(self.name, self.digest, self.signature)


@dataclass(frozen=True)
class Level(Record):
    """The machine code for one level of processor.

    Attributes:
        name: `own`, for the very processor that it was made on, or `x86-64-v3`.
        size: of its file, in bytes.
        sha256: of its file, hex.
        made_with: what it was made with.
        needs: the instructions of a processor that may run it; None: only the very one that `made_with` names.
        loops: which loops, in the order of the file.
    """

    name: Literal["own", "x86-64-v3"]
    size: int
    sha256: str
    made_with: Target
    needs: tuple[str, ...] | None
    loops: tuple[Loop, ...]

    def __post_init__(self) -> None:
        """Refuse sizes that do not agree.

        Raises:
            DataError: they do not.
        """
        sizes = [loop.size for loop in self.loops]
        if min(sizes, default=0) < 0 or sum(sizes) != self.size or self.size > MOST_BYTES:
            raise DataError(f"{self.name}: sizes that do not agree")

    @property
    def file(self) -> str:
        """The name of its file."""
        return f"{self.name}.code"

    def check(self, content: bytes) -> None:
        """Compare the content of its file with the manifest.

        Raises:
            DataError: it is something else.
        """
        if len(content) != self.size or hashlib.sha256(content).hexdigest() != self.sha256:
            raise DataError(f"{self.file} is not what its manifest says")

    def attach(self, content: bytes) -> None:
        """Take its loops from the content of its file.

        Raises:
            DataError: the content is not what the manifest says.
        """
        self.check(content)
        view, start, loops = memoryview(content), 0, {}
        for loop in self.loops:
            loops[loop.key] = view[start : start + loop.size]
            start += loop.size
        attach(loops)


@dataclass(frozen=True)
class Manifest(Record):
    """What the manifest of machine code holds.

    Attributes:
        format: its version.
        levels: the code, that for one very processor first.
    """

    format: int
    levels: tuple[Level, ...]


@dataclass(frozen=True)
class MachineCode:
    """A model's machine code, as its manifest describes it.

    Attributes:
        levels: the code, that for one very processor first.
        digest: sha256 of the manifest's bytes, hex: what vouches for all of it.
    """

    levels: tuple[Level, ...]
    digest: str

    @classmethod
    def of(cls, content: bytes) -> MachineCode:
        """Read a manifest.

        Raises:
            DataError: it is none, or of another format.
        """
        try:
            written = Manifest.from_dict(json.loads(content), MANIFEST)
        except (ValueError, RecursionError) as error:
            raise DataError(f"{MANIFEST} describes no machine code ({type(error).__name__})") from None
        except DataError as error:
            raise DataError(f"{MANIFEST} describes no machine code ({error})") from None
        if written.format != FORMAT:
            raise DataError(
                f"{MANIFEST} describes no machine code (format {written.format}; valid: {FORMAT})"
            )
        return cls(written.levels, hashlib.sha256(content).hexdigest())

    @property
    def files(self) -> tuple[str, ...]:
        """The names of its files."""
        return (MANIFEST, *(level.file for level in self.levels))

    def check(self, name: str, content: bytes) -> None:
        """Compare the content of one of its files with what it was when it was made.

        Raises:
            DataError: it is something else.
        """
        for level in self.levels:
            if level.file == name:
                level.check(content)
        if name == MANIFEST and hashlib.sha256(content).hexdigest() != self.digest:
            raise DataError(f"{MANIFEST} was changed meanwhile")

    def attach(self, read: Callable[[str], bytes]) -> Level:
        """Take the loops of the first level that fits this process.

        Args:
            read: returns the content of a file, by its name.

        Raises:
            DataError: none fits, or its file is missing or not what the manifest says; the message tells why of each.
        """
        why = []
        for level in self.levels:
            needed = None if level.needs is None else frozenset(level.needs)
            differences = level.made_with.differences(needed)
            if not differences:
                try:
                    level.attach(read(level.file))
                    return level
                except DataError as error:
                    differences = (str(error),)
                except OSError as error:
                    differences = (f"{level.file} cannot be read ({error.strerror or type(error).__name__})",)
            why.append(f"{level.name}: {', '.join(differences)}")
        raise DataError("; ".join(why) or "it is empty")


def read_file(file: Path, most: int = MOST_BYTES) -> bytes:
    """Return the content of a file of machine code, or of its manifest; a pipe would wait for ever.

    Raises:
        OSError: it cannot be read, is no file, or is too long.
    """
    with open(file, "rb", opener=lambda path, flags: os.open(path, flags | os.O_NONBLOCK)) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(f"{file.name} is no file")
        content = stream.read(most + 1)
    if len(content) > most:
        raise OSError(f"{file.name} holds more than {most:,} bytes")
    return content


def trusted_code(model: str | os.PathLike[str], vouched: str | None = None) -> MachineCode | None:
    """Return the machine code of a model's folder that somebody vouches for; None where there is none.

    Args:
        model: the model's folder.
        vouched: the digest that `run.artifact_fingerprint` names; None: nobody but this user may have written it.

    Raises:
        DataError: there is code, which is not trusted or cannot be read. It is not used, and everything else works.
    """
    file = Path(model) / FOLDER / MANIFEST
    if not file.exists():
        return None
    try:
        file = file.resolve(strict=True)
        content = read_file(file, MOST_MANIFEST)
        if vouched is not None and hashlib.sha256(content).hexdigest() != vouched:
            raise DataError(
                f"machine code of {str(model)!r}: not what run.artifact_fingerprint names, so it is not used"
            )
        exposed = None if vouched is not None else writable_by_others(file)
    except OSError as error:
        raise DataError(
            f"machine code of {str(model)!r}: {MANIFEST} cannot be read ({error.strerror or type(error).__name__})"
        ) from None
    if exposed is not None:
        raise DataError(
            f"machine code of {str(model)!r}: others may write {str(exposed)!r}, so it is not used; name it in "
            "run.artifact_fingerprint, as `prepare` prints it"
        )
    try:
        return MachineCode.of(content)
    except DataError as error:
        raise DataError(f"machine code of {str(model)!r}: {error}") from None


def attach_code(model: str | os.PathLike[str], vouched: str | None, say: Progress) -> bool:
    """Take the machine code of a model in this process, where it is trusted and fits; else say why loops are compiled.

    Returns:
        Whether it was taken.
    """
    try:
        code = trusted_code(model, vouched)
        if code is None:
            return False
        code.attach(lambda name: read_file(Path(model) / FOLDER / name))
    except DataError as error:
        say(f"loops are compiled here: {error}", None)
        return False
    return True


def expected_text(model: str | os.PathLike[str]) -> str:
    """Return what `run.artifact_fingerprint` vouches for a model and its machine code by.

    Raises:
        DataError: no model there, or it was changed; its machine code cannot be read.
    """
    file = Path(model) / FOLDER / MANIFEST
    try:
        digest = hashlib.sha256(read_file(file, MOST_MANIFEST)).hexdigest()
    except FileNotFoundError:
        return expected_fingerprint(model)
    except OSError as error:
        raise DataError(f"machine code of {str(model)!r} cannot be read ({error.strerror}).") from None
    return f"{expected_fingerprint(model)}+{digest}"


def make_code(
    model: str | os.PathLike[str],
    levels: Iterable[str] | None = None,
    progress: Progress | None = None,
    providers: Sequence[str] = (),
    *,
    lists: bool = True,
    into: Path | None = None,
) -> MachineCode:
    """Make the machine code of a model's folder, in place of what is there: each level in a process of its own, side by side.

    Args:
        model: the model's folder.
        levels: `own` and `x86-64-v3`; None for both, where this processor can run both.
        progress: progress callback, called with each step.
        providers: the import paths that the settings name, where the model was made with some.
        lists: whether the model is used with lists of names.
        into: the folder beside whose files the code goes; None: the model's.

    Raises:
        DataError: it could not be made or written; the model is as it was.
    """
    folder = Path(model) if into is None else into
    names = tuple(_possible() if levels is None else levels)
    (progress or silent)(f"compiling the loops for {' and '.join(names)}", None)
    try:
        with tempfile.TemporaryDirectory(dir=folder, prefix=f".{FOLDER}-") as work:
            made = Path(work) / FOLDER
            made.mkdir(mode=0o755)
            found = _recorded(Path(model), made, names, [LISTS if lists else NO_LISTS, *providers])
            manifest = Manifest(FORMAT, tuple(found))
            _write(made / MANIFEST, json.dumps(manifest.as_dict(), indent=1, sort_keys=True).encode())
            with suppress(FileNotFoundError):
                os.replace(folder / FOLDER, Path(work) / "before")
            os.replace(made, folder / FOLDER)
    except OSError as error:
        raise DataError(f"machine code of {str(folder)!r} cannot be written ({error.strerror}).") from None
    return MachineCode.of(read_file(folder / FOLDER / MANIFEST, MOST_MANIFEST))


def _possible() -> tuple[str, ...]:
    """Return the levels whose code this processor can run."""
    portable = platform.machine().lower() in ("x86_64", "amd64") and instructions() >= V3
    return (OWN, PORTABLE) if portable else (OWN,)


def _recorded(model: Path, made: Path, names: tuple[str, ...], given: Sequence[str]) -> list[Level]:
    """Let a process for each level record its loops into a file; return what a manifest says of them.

    Raises:
        DataError: a process failed, or its code is too large.
    """
    children = [(name, _child(name, model, made / f"{name}.draft", given)) for name in names]
    try:
        ended = [(name, child.communicate()[1], child.returncode) for name, child in children]
    finally:
        for _, child in children:
            if child.poll() is None:
                child.kill()
                child.wait()
    found = []
    for name, printed, code in ended:
        if code:
            last = (printed.strip().splitlines() or [f"exit code {code}"])[-1]
            raise DataError(f"machine code for {name} could not be made ({last}).")
        draft = made / f"{name}.draft"
        written = json.loads(draft.with_suffix(".json").read_bytes())
        content = draft.read_bytes()
        if len(content) > MOST_BYTES:
            raise DataError(
                f"machine code for {name} takes {len(content):,} bytes; valid: at most {MOST_BYTES:,}."
            )
        sealed = {"name": name, "size": len(content), "sha256": hashlib.sha256(content).hexdigest()}
        level = Level.from_dict(written | sealed)
        _write(made / level.file, content)
        draft.unlink()
        draft.with_suffix(".json").unlink()
        found.append(replace(level, needs=tuple(sorted(V3)) if name == PORTABLE else None))
    return found


def _child(level: str, model: Path, draft: Path, given: Sequence[str]) -> subprocess.Popen[str]:
    """Start a process that compiles and records for one level."""
    environment = os.environ | {"PYTHONPATH": python_path()}
    if level == PORTABLE:
        environment |= {"NUMBA_CPU_NAME": PORTABLE, "NUMBA_CPU_FEATURES": ""}
    return subprocess.Popen(
        [sys.executable, "-c", _CHILD, str(model), str(draft), *given],
        env=environment, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True,
    )  # fmt: skip


def _write(file: Path, content: bytes) -> None:
    """Write a file that nobody else may write, whatever the umask allows."""
    file.write_bytes(content)
    file.chmod(file.stat().st_mode & 0o755)


def record(model: str, draft: str, lists: str, *providers: str) -> None:
    """Open a model, draw with it, and write the machine code of the loops that this took; for a process of its own.

    Args:
        model: the model's folder.
        draft: where the code goes; what it is goes into a file beside it, of suffix `.json`.
        lists: `lists` where the model is used with lists of names, else `no lists`.
        *providers: the import paths that the settings name.
    """
    with recording() as found:
        exercise(open_model(model, providers=providers), lists=lists == LISTS)
    loops = [Loop(key.name, key.digest, key.signature, len(one.code)).as_dict() for key, one in found.items()]
    Path(draft).write_bytes(b"".join(one.code for one in found.values()))
    written = {"made_with": Target.here().as_dict(), "needs": None, "loops": loops}
    Path(draft).with_suffix(".json").write_text(json.dumps(written), encoding="utf-8")


def exercise(model: Privatizer, *, lists: bool = True) -> None:
    """Draw public texts as workers do, so that every loop that a run needs is called, for the types that it has there.

    Args:
        model: the model.
        lists: whether it is used with lists of names.
    """
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
    # Of one word, or none, a column of a table is contiguous, which is another type. At dataset level a word is drawn once.
    small: list[list[str | None]] = [["zzzzz"], ["1.50"], [None], [], *([word] for word in known[1::8])]
    for few in small:
        _draw(model, pa.array(few, pa.string()), pa.array(np.arange(len(few))), key)
    for kind in (pa.int64(), pa.string(), pa.binary(), pa.large_binary()):
        ids = numbers.cast(kind) if kind == pa.int64() else numbers.cast(pa.string()).cast(kind)
        arrays = (pa.array(texts), pa.array(texts).cast(pa.binary()), ids)
        # What others own may not be written, which is another type to compiled loops.
        for text, other, row_ids in (arrays, tuple(map(_read_only, arrays))):
            _draw(model, text, row_ids, key)
            _draw(model, other, row_ids, key)
    if lists:
        words = [WordList.of_texts(name, pa.array([name]), needed=False) for name in ("Lovelace", "Byron")]
        names = Names(compile_names(words, name_key(key, "")), 1)
        for kind in (None, PERSON):  # entries that are masked, and those that have pseudonyms
            _draw(model.with_names(replace(names, kinds=(kind,))), pa.array(texts), numbers, key)
    _draw(model.of_rows(np.arange(len(texts))), pa.array(texts), numbers, key)


def _read_only(array: pa.Array) -> pa.Array:
    """Return a copy of an array in memory that cannot be written."""
    buffers = [None if one is None else pa.py_buffer(one.to_pybytes()) for one in array.buffers()]
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
