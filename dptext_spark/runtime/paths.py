"""The cache folder: machine code, compiled models and unpacked files, all of which can be made again. It is always writable.

The folder is its user's alone: its files are run or decide the draws, and a model may hold counts of private texts.

The jobs for spark-submit and the commented settings lie inside an installed package, and next to it in a checkout.

Atomic writes: a file is there whole or not at all.

The package in an archive, as `--py-files` ships it: unpacked once for each user and machine, and imported from there.

Vectors and stop words are memory-mapped or opened by path. Neither works inside a zip. The folder's name comes from the archive's
content: another build is another folder.
"""

from __future__ import annotations

import ast
import hashlib
import logging
import os
import stat
import sys
import tempfile
import zipfile
from collections.abc import Sequence
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from dptext_spark.errors import DataError, SettingsError, unknown

_log = logging.getLogger(__name__)


def python_path() -> str:
    """Return the PYTHONPATH that gives another process the same imports: this very package first."""
    package = str(Path(__file__).resolve().parents[2])
    return os.pathsep.join(dict.fromkeys([package, *filter(None, sys.path)]))


def writable(folder: Path) -> bool:
    """Check whether a file can be made in `folder`, which is created if it is missing."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=folder):
            return True
    except OSError:
        return False


def _is_private(folder: Path) -> bool:
    """Check whether `folder`, created if it is missing, is no link and this user's alone. Cached code runs unchecked."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        status = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(status.st_mode) and status.st_uid == os.getuid() and not status.st_mode & 0o077


def own(folder: Path, name: str) -> Path | None:
    """Return a folder that is this user's alone, mode 700, created if it is missing; None if it cannot be made or written.

    A folder that others could only read is closed with a warning. One that others can write may hold files of theirs.

    A link counts for what it leads to. Messages call the folder `name`.

    Raises:
        SettingsError: it belongs to another user, or others may write to it.
    """
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        status = folder.stat()
        mode = stat.S_IMODE(status.st_mode)
        if status.st_uid != os.getuid():
            raise SettingsError(
                f"{name}: {str(folder)!r} belongs to another user. Choose a folder of your own with mode 700. If you trust "
                f"its content, use `chown {os.getuid()} {folder} && chmod 700 {folder}` instead."
            )
        if mode & 0o022:
            raise SettingsError(
                f"{name}: other users can write to {str(folder)!r} (mode {mode:o}), and machine code runs from there. Empty "
                f"the folder, then use `chmod 700 {folder}`."
            )
        if mode & 0o077:
            folder.chmod(0o700)
            _log.warning("%s: other users could read %s (mode %o). Its mode is now 700.", name, folder, mode)
    except OSError:
        return None
    return folder if writable(folder) else None


def require_empty(field: str, folder: Path) -> None:
    """Raise :class:`SettingsError` unless a folder is empty or does not exist yet."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise SettingsError(f"{field}: {str(folder)!r} exists. Choose a new or empty folder.")


def writable_by_others(file: Path) -> Path | None:
    """Return the first part of a resolved path through which users other than root could change the file, or None.

    Below a folder that only its user may enter, a part is safe if it is that user's.

    Raises:
        OSError: a part cannot be looked at.
    """
    closed = False
    for part in (*reversed(file.parents), file):
        status = part.lstat()
        mode = stat.S_IMODE(status.st_mode)
        within = part == file or part == file.parent  # these are to be the user's own
        if status.st_uid != os.getuid() and (within or status.st_uid != 0):
            return part
        if not closed and mode & 0o022 and (within or not mode & stat.S_ISVTX):
            return part
        closed = closed or (status.st_uid == os.getuid() and not mode & 0o011 and not within)
    return None


def user_cache() -> Path:
    """Return the project's cache folder: `$DPTEXT_CACHE`, `$XDG_CACHE_HOME`, `~/.cache`, else a temporary one.

    Raises:
        SettingsError: `$DPTEXT_CACHE` belongs to another user, or others may write to the first of these folders that there is.
    """
    named = os.environ.get("DPTEXT_CACHE")
    if named:
        owned = own(Path(named), "DPTEXT_CACHE")
        if owned is not None:
            return owned
    base = os.environ.get("XDG_CACHE_HOME")
    home = Path(os.path.expanduser("~"))
    if base or home.is_absolute():  # a user without a home stays "~": a folder of that name
        folder = Path(base or home / ".cache") / "dptext_spark"
        # A home of another user (sudo, an image that was built as root) was not meant as a cache of this user.
        owned = own(folder, "cache folder") if _is_own_or_missing(folder) else None
        if owned is not None:
            return owned
    return temporary_cache()


def _is_own_or_missing(folder: Path) -> bool:
    try:
        return folder.stat().st_uid == os.getuid()
    except FileNotFoundError:
        return True
    except OSError:
        return False


def temporary_cache() -> Path:
    """Return a folder of this user's among the temporary ones."""
    # That place is everybody's: whoever came first may have made one under our name.
    shared = Path(tempfile.gettempdir()) / f"dptext_spark-{os.getuid()}"
    if _is_private(shared) and writable(shared):
        return shared
    return Path(tempfile.mkdtemp(prefix="dptext_spark-"))


def folder_of(name: str) -> Path:
    """Return the folder `jobs` or `conf`.

    Raises:
        DataError: it is not there: the package was neither installed from its wheel nor checked out.
    """
    package = Path(__file__).resolve().parents[1]
    for folder in (package / name, package.parent / name):
        if folder.is_dir():
            return folder
    raise DataError(f"{name}: not installed beside the package in {str(package)!r}. Install its wheel.")


def jobs_by_name() -> dict[str, Path]:
    """Return the files to hand to spark-submit, by their names."""
    return {file.stem: file for file in sorted(folder_of("jobs").glob("[!_]*.py"))}


def job_file(name: str) -> Path:
    """Return the file of a job.

    Raises:
        SettingsError: there is none of that name.
    """
    jobs = jobs_by_name()
    if name not in jobs:
        raise unknown("name", name, [*jobs, "conf"])
    return jobs[name]


def first_line(file: Path) -> str:
    """Return the first line of a Python file's docstring, without the example that follows."""
    docstring = ast.get_docstring(ast.parse(file.read_text(encoding="utf-8"))) or ""
    return docstring.partition("\n")[0].partition(": `")[0]


PRIVATE = 0o600  # the mode of a file that nobody but its owner may read


def write_atomically(file: Path, text: str, mode: int = 0o666) -> None:
    """Write a text in place of the file that is there; its folder must exist.

    `mode` is that of the file, before the process's umask.

    Raises:
        OSError: it cannot be written; then nothing has changed.
    """
    with tempfile.TemporaryDirectory(dir=file.parent, prefix=f".{file.name}-") as work:
        draft = Path(work) / file.name
        with open(draft, "w", encoding="utf-8", opener=lambda path, flags: os.open(path, flags, mode)) as out:
            out.write(text)
        os.replace(draft, file)


PACKAGE = "dptext_spark"


def unpack(archive: str | os.PathLike[str]) -> Path:
    """Unpack this package of a zip archive (a wheel is one) into the user's cache, atomically.

    Two processes may do so at once.

    Returns:
        The package's folder.

    Raises:
        OSError: the archive cannot be read, or the folder cannot be written.
        ImportError: the package does not lie at the archive's top.
    """
    digest = hashlib.sha256(Path(archive).read_bytes()).hexdigest()[:32]
    folder = user_cache() / "unpacked" / digest
    with zipfile.ZipFile(archive) as whole:
        ours = [name for name in whole.namelist() if name.startswith(f"{PACKAGE}/")]
        if not ours:
            raise ImportError(f"{PACKAGE}: {str(archive)!r} lacks it at its top level. Use a wheel.")
        extract(whole, folder, ours)
    return folder / PACKAGE


def extract(archive: zipfile.ZipFile, folder: Path, names: Sequence[str] | None = None) -> None:
    """Unpack an archive to a folder that is named by its content, atomically, unless it is there.

    Two processes may do so at once. Without `names` all files are unpacked.

    Raises:
        OSError, zipfile.BadZipFile: the archive cannot be read, or the folder cannot be written.
    """
    if folder.is_dir():
        return
    folder.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpacking-") as work:
        built = Path(work) / "built"
        built.mkdir()
        archive.extractall(built, names)
        try:
            built.rename(folder)
        except OSError:
            if not folder.is_dir():  # nobody else was faster
                raise


def import_unpacked(archive: str) -> None:
    """Put the package of an archive, imported from where it is unpacked, in the place of the one that is being imported."""
    folder = unpack(archive)
    spec = spec_from_file_location(PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{PACKAGE}: cannot be imported from {str(folder)!r}, its unpacked folder.")
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]  # those that were needed to come here
    module = module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
