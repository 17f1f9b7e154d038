"""The benchmarks at their smallest: that each measures every figure, in a process of its own as `make bench` does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from benchmarks.__main__ import SECTIONS

pytestmark = pytest.mark.cluster
CHECKOUT = Path(__file__).resolve().parent.parent.parent
CONLL = "Ada\tB-person\nLovelace\tI-person\nmet\tO\nRobert\tB-person\n"
# What a section lacks without real data, and where a machine has one address only.
LACKS = {
    "utility_gain": ("fluent", "word order", "accuracy on sentence embeddings"),
    "referee": ("word order",),
    "scale": ("standalone",),
}
SMALL = """
import sys
from pathlib import Path
from rich.console import Console
from benchmarks.__main__ import measured
from benchmarks.sizes import TOY
measured(sys.argv[2:], TOY, "", Path(sys.argv[1]), Console())
"""


def test_every_section_measures_its_figures(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    (tmp_path / "sample.conll").write_text(CONLL, encoding="utf-8")
    monkeypatch.setenv("DPTEXT_LABELLED", str(tmp_path / "sample.conll"))
    monkeypatch.setenv("DPTEXT_SHARED_DATA", str(tmp_path / "nowhere"))
    record = tmp_path / "record.json"
    command = [sys.executable, "-c", SMALL, str(record), *SECTIONS]
    done = subprocess.run(command, cwd=CHECKOUT, capture_output=True, text=True, timeout=1_800, check=False)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-4000:]
    sections = json.loads(record.read_text(encoding="utf-8"))["sections"]
    assert list(sections) == list(SECTIONS)
    for name, section in sections.items():
        known = ("glove", "sst2", "1-Diffractor, Table 2", *LACKS.get(name, ()))
        assert all(reason.startswith(known) for reason in section["skipped"]), name
        assert section["figures"] or section["grids"] or name in LACKS, name
        assert all(figure["value"]["median"] == figure["value"]["median"] for figure in section["figures"])
