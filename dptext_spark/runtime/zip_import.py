"""The package in an archive, as `--py-files` ships it: unpacked once for each user and machine, and imported from there.

Vectors and stop words are memory-mapped or opened by path, and machine code is cached by the path of its source:
none of that works inside a zip. The folder is named by the archive's content, so that another build is another folder.
"""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
import zipfile
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

from dptext_spark.runtime.paths import user_cache

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
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with (
            tempfile.TemporaryDirectory(dir=folder.parent, prefix=".unpacking-") as work,
            zipfile.ZipFile(archive) as whole,
        ):
            built = Path(work) / "built"
            ours = [name for name in whole.namelist() if name.startswith(f"{PACKAGE}/")]
            if not ours:
                raise ImportError(f"{PACKAGE}: {str(archive)!r} must hold it at its top, as a wheel does.")
            whole.extractall(built, ours)
            try:
                built.rename(folder)
            except OSError:
                if not folder.is_dir():  # nobody else was faster
                    raise
    return folder / PACKAGE


def import_unpacked(archive: str) -> None:
    """Put the package of an archive, imported from where it is unpacked, in the place of the one that is being imported."""
    folder = unpack(archive)
    spec = spec_from_file_location(PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)])
    if spec is None or spec.loader is None:
        raise ImportError(f"{PACKAGE}: cannot be imported from {str(folder)!r}, where it was unpacked.")
    for name in [name for name in sys.modules if name.startswith(f"{PACKAGE}.")]:
        del sys.modules[name]  # those that were needed to come here
    module = module_from_spec(spec)
    sys.modules[PACKAGE] = module
    spec.loader.exec_module(module)
