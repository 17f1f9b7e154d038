"""Notebooks in a kernel of this interpreter: for the tests, and `python -m tests.notebooks.kernel` to keep new outputs."""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

import nbformat
import pytest
from nbclient import NotebookClient
from nbformat import NotebookNode

CHECKOUT = Path(__file__).resolve().parents[2]
FOLDER = CHECKOUT / "notebooks"
KERNEL = "here"
SECONDS = 300  # for one cell, on a machine that does other things too
# A session of a minute does not live to win back what compiling costs, nor what checking 25,000 classes of a release does.
SHORT_LIVED = (
    "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", "-Xms1g", "-Xmn600m", "-XX:MetaspaceSize=256m",
    "-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote",
    "-Dspark.sql.codegen.wholeStage=false", "-Dspark.sql.codegen.factoryMode=NO_CODEGEN",
)  # fmt: skip
FRAME = "<iframe "
OF_JAVA = "WARNING: Using incubator modules"
KERNELSPEC = {"display_name": "Python 3", "language": "python", "name": "python3"}
METADATA = {"kernelspec": KERNELSPEC, "language_info": {"name": "python"}}


def files() -> list[Path]:
    """Return the notebooks, in reading order."""
    return sorted(FOLDER.glob("*.ipynb"))


def read(file: Path) -> NotebookNode:
    """Return a notebook as it is stored."""
    return nbformat.read(file, as_version=4)


def execute(notebook: NotebookNode, folder: Path) -> NotebookNode:
    """Run all cells of a notebook in a new kernel and put their outputs in the place of the old ones.

    Args:
        notebook: changed in place.
        folder: an empty one, in which it works.

    Raises:
        nbclient.exceptions.CellExecutionError: a cell fails.
    """
    own = folder / "jupyter"
    work = folder / "work"
    place = own / "kernels" / KERNEL
    place.mkdir(parents=True)
    work.mkdir()
    # A kernel that is installed for this user may be another interpreter.
    command = [sys.executable, "-m", "ipykernel_launcher", "--log-level=ERROR", "-f", "{connection_file}"]
    spec = {"argv": command, "display_name": KERNEL, "language": "python"}
    (place / "kernel.json").write_text(json.dumps(spec))
    paths = [str(CHECKOUT), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = os.environ | {
        "PYTHONPATH": os.pathsep.join(paths),
        "IPYTHONDIR": str(own / "ipython"),
        "DPTEXT_PROGRESS": "off",  # the outputs that are kept hold results only
        "SPARK_LOCAL_DIRS": str(folder / "spark"),
        "SPARK_SUBMIT_OPTS": " ".join(filter(None, [os.environ.get("SPARK_SUBMIT_OPTS"), *SHORT_LIVED])),
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("JUPYTER_PATH", str(own))
        patch.setenv("JUPYTER_RUNTIME_DIR", str(own / "runtime"))
        patch.setenv("JUPYTER_PLATFORM_DIRS", "1")
        told = {"timeout": SECONDS, "kernel_name": KERNEL, "record_timing": False}
        client = NotebookClient(notebook, resources={"metadata": {"path": str(work)}}, **told)
        client.execute(env=environment)
    notebook.metadata = METADATA
    for cell in notebook.cells:
        # What Java says about itself depends on which one is installed.
        if outputs := cell.get("outputs"):
            cell.outputs = [out for out in outputs if not str(out.get("text", "")).startswith(OF_JAVA)]
        # A page in a frame names instants and folders; the line beside it says that it was shown.
        for output in cell.get("outputs", ()):
            if FRAME in str(output.get("data", {}).get("text/html", "")):
                del output.data["text/html"]
    return notebook


def keep(names: Sequence[str] = ()) -> None:
    """Run the notebooks (whose names begin so), each in a kernel of its own, and keep what comes out."""
    for file in files():
        if not names or file.name.startswith(tuple(names)):
            with tempfile.TemporaryDirectory() as folder:
                nbformat.write(execute(read(file), Path(folder)), file)


if __name__ == "__main__":
    keep(sys.argv[1:])
