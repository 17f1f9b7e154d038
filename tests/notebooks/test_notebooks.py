"""The notebooks run from top to bottom, show what they say, and keep small outputs that name no machine."""

from __future__ import annotations

import base64
import getpass
import itertools
import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("pyspark", reason="the extra [spark] is not installed")
pytest.importorskip("matplotlib", reason="the extra [audit] is not installed")
pytest.importorskip("sklearn", reason="the extra [audit] is not installed")

from nbformat import NotebookNode
from nbformat.v4 import new_code_cell, new_notebook

from dptext_spark.lexicon.lexicon import Lexicon
from tests.notebooks.kernel import CHECKOUT, METADATA, execute, files, read

NAMES = [
    "1_quickstart.ipynb",
    "2_choosing_epsilon.ipynb",
    "3_comparing_mechanisms.ipynb",
    "4_reading_an_audit.ipynb",
    "5_text_classifier.ipynb",
    "6_importance_levels.ipynb",
    "7_text_that_reads.ipynb",
]
# The others take up to a minute each, and two of them start Spark: they are run by make test-cluster.
SHORT = ("3_comparing_mechanisms.ipynb", "6_importance_levels.ipynb")
MOST_BYTES, MOST_PICTURE = 150_000, 50_000
# Outputs of cells with this tag differ from run to run: fresh draws, or measured on them.
VARIES = "varies"
# What an output must not hold: a place on a disk, an instant, a run id made of one.
WHOLE = re.compile(r"\[(PHONE|CARD|IBAN)\]")  # placeholders of what may have been several words
FORBIDDEN = re.compile(
    r"(?<![\w.<)/:-])/[A-Za-z]\w*[/\w]|file:/|[A-Z]:\\\\?\w|~/|\d{4}-\d\d-\d\d[T ]\d\d:\d\d|\d{8}T\d{6}"
)
# What stays of a notebook when the next one starts in the same kernel: the session, as on a platform.
FORGET = """
for _name in [name for name in globals() if not name.startswith("_") and name not in ("spark", "In", "Out")]:
    if _name not in ("get_ipython", "exit", "quit", "open"):
        del globals()[_name]
"""
# What a test wants to know of a notebook, as JSON; it is run behind the last cell. The outputs of the others are all kept.
PROBES = {
    "1_quickstart.ipynb": """{
        "before": before.astype(str).to_dict("list"), "after": after.astype(str).to_dict("list"),
        "rows": sanitized.count(), "levels": drawn, "totals": totals, "preview": shown.output,
    }""",
    "3_comparing_mechanisms.ipynb": """{
        "points": [asdict(point) for point in found.points], "frontiers": [one.as_dict() for one in found.frontiers],
    }""",
    "4_reading_an_audit.ipynb": """{
        "status": run.status, "app": spark.conf.get("spark.app.name"),
        "figures": {f["name"]: f["value"] for f in audit["figures"] if f["column"] is None},
        "broken": [one["requirement"] for one in audit["requirements"] if not one["holds"]],
        "certificate": facts["certificate"]["verdict"], "attacks": {a["name"]: a for a in attacks},
        "page": page.read_text(encoding="utf-8"), "statement": facts["statement"],
    }""",
    "5_text_classifier.ipynb": """{
        "accuracy": {c: {n: float(told.mean()) for n, told in f.items()} for c, f in found.items()},
        "majority": float(majority), "curve": accuracy.to_dict("index"),
    }""",
    "7_text_that_reads.ipynb": """{
        "points": [asdict(point) for point in found.points],
        "texts": {name: dp.preview(model, SENTENCE).output for name, model in models.items()},
    }""",
}


def code_cells(notebook: NotebookNode) -> list[NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def texts(cell: NotebookNode) -> list[str]:
    """What a cell printed or displayed, pictures left out."""
    shown = []
    for output in cell.outputs:
        data = output.get("data", {})
        shown += [str(data[kind]) for kind in sorted(data) if kind.startswith("text/")]
        shown += [output.text] if output.output_type == "stream" else []
    return shown


def shape(cell: NotebookNode) -> list[tuple[str, list[str]]]:
    return [(output.output_type, sorted(output.get("data", {}))) for output in cell.outputs]


def forbidden(cell: NotebookNode) -> list[str]:
    return [found.group() for text in texts(cell) for found in FORBIDDEN.finditer(text)]


@pytest.fixture(scope="module")
def executed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[str], tuple[NotebookNode, Any]]]:
    """Give a function that returns a notebook as it comes out now, and what its probe found. Each is run once."""
    done: dict[str, tuple[NotebookNode, Any]] = {}

    def run(*names: str) -> None:
        """Run notebooks in one kernel: the second finds a Spark session, as on a platform."""
        whole, parts = new_notebook(metadata=METADATA), {}
        for name in names:
            parts[name] = read(CHECKOUT / "notebooks" / name)
            for cell in parts[name].cells:
                cell.outputs = []
                cell.id = f"{name[0]}-{cell.id}"
            shown = f"print(json.dumps({PROBES.get(name)}))"
            probe = new_code_cell(f"import json\nfrom dataclasses import asdict\n{shown}")
            whole.cells += [*parts[name].cells, probe, new_code_cell(FORGET)]
        execute(whole, tmp_path_factory.mktemp("notebooks"))
        for name in names:
            last = len(parts[name].cells)
            found = json.loads(whole.cells[last].outputs[0].text)
            parts[name].cells = whole.cells[:last]
            del whole.cells[: last + 2]
            done[name] = parts[name], found

    def get(name: str) -> tuple[NotebookNode, Any]:
        if name not in done:
            with_spark = NAMES[0], NAMES[3]
            run(*(with_spark if name in with_spark else (name,)))
        return done[name]

    return get


def test_these_are_all() -> None:
    assert [file.name for file in files()] == NAMES


@pytest.mark.parametrize("name", NAMES)
def test_its_outputs_are_kept_and_small(name: str) -> None:
    file = CHECKOUT / "notebooks" / name
    notebook = read(file)
    assert file.stat().st_size < MOST_BYTES
    assert notebook.metadata == METADATA
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    # The first cell sets up, and may show nothing.
    assert all(cell.outputs for cell in cells[1:])
    assert {output.get("name", "stdout") for cell in cells for output in cell.outputs} == {"stdout"}
    assert all(set(cell.metadata) <= {"tags"} for cell in notebook.cells)
    for cell in cells:
        for output in cell.outputs:
            picture = output.get("data", {}).get("image/png")
            if picture is not None:
                bytes_of = base64.b64decode(picture)
                assert bytes_of.startswith(b"\x89PNG")
                assert len(bytes_of) < MOST_PICTURE


@pytest.mark.parametrize("name", NAMES)
def test_its_outputs_name_no_place_no_instant_and_nobody(name: str) -> None:
    notebook = read(CHECKOUT / "notebooks" / name)
    assert [(cell.id, found) for cell in code_cells(notebook) for found in forbidden(cell)] == []
    words = set(Lexicon.default().vocabulary.strings().to_pylist())
    owners = [one for one in (getpass.getuser(), socket.gethostname()) if len(one) > 3]
    here = {one for one in owners if one.lower() not in words}
    shown = " ".join(text for cell in code_cells(notebook) for text in texts(cell))
    assert [one for one in here if re.search(rf"\b{re.escape(one)}\b", shown)] == []


SEEN = (
    "wrote /home/ann/report.html", "'/tmp/x'", "(file:/data/x)", "in C:\\Users\\ann", "~/tables", "/Volumes/main/x",
    "2026-11-21 20:00:01", "2026-11-21T20:00", "20261121T150323-0a1b2c3d",
)  # fmt: skip
LET_BE = ("before/after", "<td>1/2</td>", "and/or 3/4", "in 2024-05-11", "dptext-notebook/x", "w/o")


def test_a_place_and_an_instant_would_be_seen_and_nothing_else() -> None:
    assert [text for text in SEEN if FORBIDDEN.search(text) is None] == []
    assert [text for text in LET_BE if FORBIDDEN.search(text)] == []


@pytest.mark.parametrize("name", NAMES)
def test_its_charts_are_explained_and_its_links_lead_somewhere(name: str) -> None:
    cells = read(CHECKOUT / "notebooks" / name).cells
    for cell, below in itertools.pairwise(cells):
        if "plt.show()" in cell.source:
            assert below.cell_type == "markdown", cell.id
            assert below.source.startswith("**What it shows.**"), cell.id
            assert "**How to read it.**" in below.source, cell.id
    written = " ".join(cell.source for cell in cells if cell.cell_type == "markdown")
    links = re.findall(r"\]\(([^)]+)\)", written)
    assert [link for link in links if not (CHECKOUT / "notebooks" / link).is_file()] == []


def test_readme_and_tutorials_name_all() -> None:
    readme = (CHECKOUT / "README.md").read_text(encoding="utf-8")
    tutorials = (CHECKOUT / "docs" / "tutorials" / "index.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"](notebooks/{name})" not in readme] == []
    assert [name for name in NAMES if f"]({Path(name).stem}.md)" not in tutorials] == []


@pytest.mark.long
@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[] if name in SHORT else [pytest.mark.cluster]) for name in NAMES]
)
def test_it_runs_and_its_outputs_are_those_that_are_kept(name: str, executed: Callable[[str], Any]) -> None:
    notebook, _ = executed(name)
    stored = code_cells(read(CHECKOUT / "notebooks" / name))
    fresh = code_cells(notebook)
    cure = f"{name}: python -m tests.notebooks.kernel {name[0]}"
    assert [shape(cell) for cell in fresh] == [shape(cell) for cell in stored], cure
    for now, kept in zip(fresh, stored, strict=True):
        assert forbidden(now) == []
        assert str(Path.home()) not in " ".join(texts(now))
        if VARIES not in kept.metadata.get("tags", []):
            assert texts(now) == texts(kept), cure


@pytest.mark.cluster
def test_the_quickstart_sanitizes(executed: Callable[[str], Any]) -> None:
    _, found = executed("1_quickstart.ipynb")
    before, after = found["before"], found["after"]
    assert found["rows"] == 120
    assert list(after) == list(before)
    assert all(after[name] == before[name] for name in ("ticket_id", "customer_id", "priority"))
    for name in ("subject", "body"):
        # An identifier of several parts, such as a telephone number, becomes one placeholder.
        pairs = [(a, b) for a, b in zip(after[name], before[name], strict=True) if not WHOLE.search(a)]
        assert [len(a.split()) for a, _ in pairs] == [len(b.split()) for _, b in pairs]
        assert 2 * len(pairs) >= len(after[name])
        assert all(one != other for one, other in zip(before["body"], after["body"], strict=True))
    assert "Please send the" not in found["preview"] or " the " in found["preview"]
    totals = found["totals"]
    assert totals["words"] == sum(totals[part] for part in ("drawn", "stop_kept", "oov", "numbers"))
    assert 0.3 < totals["drawn"] / totals["words"] < 0.6
    names = {
        level: [re.findall(r"^(\S+) \S+ (\S+) \S+ and (\S+) is", text)[0] for text in texts]
        for level, texts in found["levels"].items()
    }
    # Six draws of one word of 20 outputs, none above 13 %, are all equal with a probability below 1e-5.
    assert len({one for record in names["token"] for one in record}) > 1
    assert all(len(set(record)) == 1 for level in ("record", "dataset") for record in names[level])
    assert len(set(found["levels"]["dataset"])) == 1


@pytest.mark.long
def test_mechanisms_are_compared_at_equal_risk(executed: Callable[[str], Any]) -> None:
    _, found = executed("3_comparing_mechanisms.ipynb")
    points = {(one["mechanism"], one["epsilon"]): one for one in found["points"]}
    assert len(points) == 12
    context = {key: one["risks"]["word in context"]["value"] for key, one in points.items()}
    assert all(context[key] > 0.43 for key in points if key[0] != "tem")
    assert context["tem", 6.0] < 0.4 < 0.95 < context["tem", 20.0]
    # "In rows of about equal risk ε differs by a factor of ten."
    alone = {key: one["risks"]["one word alone"]["value"] for key, one in points.items()}
    assert abs(alone["diffractor", 1.0] - alone["tem", 14.0]) < 0.12
    assert abs(alone["diffractor", 0.2] - alone["custext", 1.0]) < 0.1
    asked = ("word in context", "accuracy of a classifier")
    (frontier,) = [one for one in found["frontiers"] if (one["risk"], one["utility"]) == asked]
    levels = {best["level"]: best for best in frontier["levels"]}
    assert {levels[risk]["verdict"] for risk in (0.1, 0.3)} == {"tem (no other reaches it)"}
    assert levels[0.6]["verdict"].startswith("undecided")


@pytest.mark.cluster
def test_the_audit_is_a_gate_and_the_report_stands(executed: Callable[[str], Any]) -> None:
    _, found = executed("4_reading_an_audit.ipynb")
    assert found["status"] == "succeeded"
    assert found["app"] == "quickstart", "the session that was there was not taken"
    figures = found["figures"]
    assert figures["rows"] == 300
    assert figures["missing_in_table"] == figures["missing_in_source"] == 0
    assert figures["aligned_share"] > 0.95
    assert figures["oov_kept_share"] == 0
    assert 0.05 < figures["original_share"] < 0.2
    assert figures["original_share_all"] > 0.4
    assert found["broken"] == ["context_success <= 0.2"]
    assert found["certificate"] == "confirmed"
    alone, context = (found["attacks"][name] for name in ("Bayes-optimal adversary", "contextual adversary"))
    assert alone["most_frequent"] < alone["success"] < context["success"] < 1
    assert found["page"].startswith("<!doctype html>")
    assert "first-release" in found["page"]
    assert len(found["statement"]["sections"]) >= 4


@pytest.mark.cluster
def test_private_text_teaches_what_private_text_means(executed: Callable[[str], Any]) -> None:
    _, found = executed("5_text_classifier.ipynb")
    for column, plain, least in (("subject", 0.95, 0.7), ("body", 0.85, 0.45)):
        accuracy = found["accuracy"][column]
        assert accuracy["plain/plain"] > plain
        assert accuracy["plain/private"] == min(accuracy.values())
        assert least < accuracy["private/private"] < accuracy["plain/plain"]
        assert least < accuracy["private/plain"]
    # "It does for subject lines", and "bodies lose more than subject lines".
    subject, body = (found["accuracy"][column] for column in ("subject", "body"))
    assert subject["private/private"] > subject["plain/private"] + 0.05
    assert body["plain/plain"] - body["private/private"] > subject["plain/plain"] - subject["private/private"]
    assert 0.15 < found["majority"] < 0.25
    assert 0.7 < found["curve"]["0.5"]["private/private"] < 0.78  # "seven of ten subject lines"
    assert found["curve"]["12.0"]["plain/private"] > found["curve"]["0.5"]["plain/private"] + 0.1


@pytest.mark.cluster
def test_text_reads_and_attacks_find_less(executed: Callable[[str], Any]) -> None:
    _, found = executed("7_text_that_reads.ipynb")
    kept, guessed = (
        {
            (one["mechanism"].removeprefix("custext:"), one["epsilon"]): one[kind][name]["value"]
            for one in found["points"]
        }
        for kind, name in (("utilities", "words kept"), ("risks", "word in context"))
    )
    plain, remap, fluent = "calibration=exact", "calibration=exact:remap=bayes", "fluent=true"
    assert kept[remap, 1.0] > kept[plain, 1.0]
    assert abs(kept[remap, 4.0] - kept[plain, 4.0]) < 0.02
    for epsilon in (1.0, 4.0):
        assert guessed[plain, epsilon] > max(guessed[remap, epsilon], guessed[fluent, epsilon])
    assert kept[fluent, 4.0] < kept[plain, 4.0]
    assert guessed[fluent, 4.0] < guessed[remap, 4.0]
    assert len(set(found["texts"].values())) == 3
