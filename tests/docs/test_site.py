"""The site holds together: every page has its place, every link its end, and the references name everything."""

from __future__ import annotations

import posixpath
import re
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

from docs.generate import floors, records
from docs.generate.check import problems_of
from docs.generate.fill import MARK, pages
from docs.generate.references import DOORS, commands, defaults
from dptext_spark.audit.table_audit import MEANING
from dptext_spark.cli.app import EXIT_CODES
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.mechanisms.parameters import parameters_of
from tests.docs.pages import CHECKOUT, DOCS, README, anchors, links, text

pytest.importorskip("pyspark", reason="the extra [spark] is not installed: the tables' columns are its types")
pytestmark = pytest.mark.long  # `make docs` builds it, too


@cache
def site() -> dict[str, str]:
    return dict(pages())


def test_every_page_has_its_place() -> None:
    def named(entry: Any) -> list[str]:
        values = entry if isinstance(entry, list) else entry.values() if isinstance(entry, dict) else [entry]
        return [entry] if isinstance(entry, str) else [name for value in values for name in named(value)]

    settings = yaml.safe_load(text("mkdocs.yml"))
    listed = named(settings["nav"])
    assert sorted(listed) == sorted(site())
    assert settings["strict"]
    assert settings["theme"]["font"] is False


def test_every_mark_is_filled() -> None:
    assert len(site()) > 40
    assert [name for name, page in site().items() if MARK.search(page)] == []
    marks = [mark[1] for file in DOCS.rglob("*.md") for mark in MARK.finditer(file.read_text("utf-8"))]
    assert len(marks) > 15


def test_every_link_and_anchor_leads_somewhere() -> None:
    lost = []
    for name, page in site().items():
        for link in links(page):
            path, _, anchor = link.partition("#")
            if re.match(r"https?:", link):
                continue
            target = posixpath.normpath(posixpath.join(posixpath.dirname(name), path)) if path else name
            exists = target in site() or (DOCS / target).is_file()
            if not exists or (anchor and anchor not in anchors(site()[target])):
                lost.append(f"{name}: {link}")
    assert lost == []


def test_links_alone_lead_to_every_page_in_three_clicks() -> None:
    reached = {"index.md"}
    for _ in range(3):
        targets = ((page, link.partition("#")[0]) for page in reached for link in links(site()[page]))
        paths = [posixpath.join(posixpath.dirname(page), link) for page, link in targets]
        reached |= set(map(posixpath.normpath, paths))
        reached &= site().keys()
    assert site().keys() - reached == set()


@pytest.mark.parametrize("name", ["README.md", "CONTRIBUTING.md", "SECURITY.md"])
def test_links_beside_the_site_lead_to_files(name: str) -> None:
    found = [link for link in links(text(name)) if not link.startswith("http")]
    assert found
    assert [link for link in found if not (CHECKOUT / link.partition("#")[0]).is_file()] == []


def test_the_readme_is_short_and_pictures_are_described_and_small() -> None:
    assert len(README.read_text(encoding="utf-8").splitlines()) <= 180
    assert README.stat().st_size <= 10_000
    for file in (README, *DOCS.rglob("*.md")):
        for described, picture in re.findall(r"!\[([^\]]*)\]\(([^)]+)\)", file.read_text(encoding="utf-8")):
            assert len(described) > 20
            assert (file.parent / picture).stat().st_size < 150_000


def test_no_page_names_a_machine_or_a_registry() -> None:
    told = re.compile(r"/(?:work|root|home)/|pypi\.org|maven\.org")
    assert [name for name, page in site().items() if told.search(page)] == []


def test_the_reference_of_settings_names_all() -> None:
    page = site()["reference/settings.md"]
    given = [name for name in defaults() if not name.startswith("mechanism.")]
    assert len(given) > 60
    for name in given:
        (row,) = re.findall(rf"^\| `{re.escape(name)}` \|.*$", page, flags=re.MULTILINE)
        *_, may_be, said, _ = row.split(" |")
        assert may_be.strip() not in ("", "section") or name in ("importance", "input.options"), name
        assert said.strip(), name
    for name in ("provider", "levels", "corpus", "levels[].share"):
        assert f"| `importance.{name}` |" in page
    for name, kind in MECHANISMS.items():
        part = page.split(f"\n### {name}\n")[1].split("\n### ")[0]
        assert kind.paper in part
        for parameter in parameters_of(kind):
            assert f"| `{parameter}` |" in part, (name, parameter)


def test_the_reference_of_commands_names_all() -> None:
    page = site()["reference/command-line.md"]
    found = commands()
    assert len(found) > 12
    for name, command in found:
        part = page.split(f"\n## dptext {name}\n")[1].split("\n## ")[0]
        for one in command.params:
            for option in one.opts if one.opts[0].startswith("-") else [(one.metavar or one.name).upper()]:
                assert re.search(rf"`\[?{option}[`\] .]", part), (name, option)


def test_the_references_of_tables_metrics_and_exit_codes_name_all() -> None:
    from dptext_spark.spark.schemas import LEDGER, METRICS, RUNS

    def rows(name: str, heading: str) -> list[str]:
        part = site()[f"reference/{name}.md"].split(f"\n## {heading}\n")[1].split("\n## ")[0]
        return re.findall(r"^\| `(\w+)` \|", part, flags=re.MULTILINE)

    for heading, schema in {"runs": RUNS, "ledger": LEDGER, "metrics": METRICS}.items():
        assert rows("tables", heading) == schema.fieldNames()
    assert rows("metrics", "Of an audit") == list(MEANING)
    codes = re.findall(r"^\| (\d+) \| (.*?) \|", site()["reference/exit-codes.md"], flags=re.MULTILINE)
    listed = {int(code): meaning for code, meaning in codes}
    assert listed == EXIT_CODES | {130: "interrupted from the keyboard"}


def test_the_reference_of_python_names_the_public_surface() -> None:
    named = set(re.findall(r"^      heading: (\S+)$", site()["reference/api.md"], flags=re.MULTILINE))
    public = {f"{short}.{name}" for short, module in DOORS.items() for name in module.__all__}
    assert named == public - {"dp.__version__", "dp.errors"}


def test_the_benchmarks_are_those_of_the_records() -> None:
    page = site()["benchmarks.md"]
    for name, (record, section) in records.newest().items():
        part = page.split(f"\n### {name}\n")[1].split("\n### ")[0]
        assert record["file"] in part
        assert all(figure["unit"] in part for figure in section["figures"])


def test_the_picture_of_the_floors_is_the_contract() -> None:
    page = site()["development/architecture.md"]
    for room in (room for floor in floors.layers() for room in floor):
        assert f">{room}</text>" in page
        (said,) = re.findall(rf"^\| `{room}` \| (.+) \|$", page, flags=re.MULTILINE)
        assert said.endswith(".")


PAGE = """<html><head><link rel="stylesheet" href="style.css"><link rel="canonical" href="https://example.net/"></head>
<body><a href="https://example.net">elsewhere</a><img src="data:image/png;base64,AAAA">{}</body></html>"""


@pytest.mark.parametrize(
    "loads",
    [
        '<script src="https://cdn.example.net/x.js"></script>',
        '<img src="//cdn.example.net/x.png">',
        '<link rel="preconnect" href="https://fonts.example.net">',
        '<p style="background: url(https://cdn.example.net/x.png)">',
        "<style>@import 'https://cdn.example.net/x.css'</style>",
        '<div class="mermaid">',
        '<span class="arithmatex">',
    ],
)
def test_a_site_that_loads_from_elsewhere_is_told(loads: str, tmp_path: Path) -> None:
    (tmp_path / "index.html").write_text(PAGE.format(""), encoding="utf-8")
    assert problems_of(tmp_path) == []
    (tmp_path / "index.html").write_text(PAGE.format(loads), encoding="utf-8")
    assert len(problems_of(tmp_path)) == 1
