"""What pages say of the code, of other languages and of the benchmarks' records is what those say."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
import yaml

from docs.generate import records
from docs.generate.sets import summary
from dptext_spark.audit.table_audit import MEANING
from dptext_spark.config.load import parse_model_config
from dptext_spark.demo.tickets import tickets
from dptext_spark.disclosure.disclosure import LINKAGE
from dptext_spark.lexicon.characters import look_up_form
from dptext_spark.lexicon.lexicon import Lexicon
from dptext_spark.mechanisms import MECHANISMS
from dptext_spark.model.compile import prepare
from dptext_spark.randomness import RunKey
from dptext_spark.report.summary import RISKS, USEFUL, usefulness_beside_risk
from dptext_spark.rounding import rounded_up
from dptext_spark.runtime.display import silent
from dptext_spark.text.policy import LANGUAGES, Identifiers, Policy
from dptext_spark.text.unknown_words import LEAST_ROWS, LEAST_WORDS, UnknownWords, refusal
from tests.docs.pages import CHECKOUT, DOCS, blocks, figures, text

LISTS, RULES = "lists and a capital", "lists and how names are written"
MODEL = "lists, how names are written, and a classifier"
TAKEN = "Words of reviews that are taken for names, of the parts that no threshold comes from"
# How pages call what the records name.
ROW_OF = {
    MODEL: "lists, how names are written, and the classifier below",
    "presidio": "Presidio 2.2.366 with en_core_web_sm 3.8.0, threshold 0.4",
}


def newest(section: str) -> dict[str, object]:
    """A section of the newest full record that holds it."""
    found = records.newest()
    if section not in found:
        pytest.skip(f"no full record holds the section `{section}` yet")
    return found[section][1]


def test_the_table_of_mechanisms_names_all() -> None:
    page = text("docs/guide/mechanism.md")
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \|", page, flags=re.MULTILINE)
    named = [name for row in rows for name in re.findall(r"`(\w+)`", row)]
    assert sorted(named) == sorted(MECHANISMS)


@pytest.mark.parametrize(
    ("page", "facts"),
    [
        ("README.md", ()),
        ("docs/concepts/guarantees.md", ("6,920", "99.4 %", "82.6 %", "0.014 %")),
        ("conf/balanced.yaml", ("6,920", "99.4 %")),
        ("conf/strict.yaml", ("6,920", "82.6 %")),
    ],
)
def test_pages_and_styles_state_linkage(page: str, facts: tuple[str, ...]) -> None:
    plain = re.sub(r"\s+(# )?", " ", text(page))
    for fact in (*facts, "pseudonymised, not anonymous"):
        assert fact in LINKAGE or not facts
        assert fact in plain


@pytest.mark.long
def test_who_shares_an_output_set_is_as_computed_on_the_packaged_lexicon() -> None:
    law = summary()
    shared = f"at least {law.class_size_of_words.min - 1:.0f} others"
    assert shared in re.sub(r"\s+", " ", text("README.md"))
    alone = summary(0.0).told_bits
    bits = f"it reveals {rounded_up(alone, 2)} of the {rounded_up(law.told_bits, 2)} bits that a draw reveals (ε = 2,"
    assert bits in re.sub(r"\s+", " ", text("README.md"))
    assert 0.9 * law.told_bits < law.ruled_out_bits < law.told_bits  # nearly all that a draw tells


@pytest.mark.long
def test_the_ticket_of_the_readme_is_the_demos_and_what_balanced_releases_of_it() -> None:
    """The style decides what a reader is shown: a new lexicon or style gives another ticket."""
    ticket = next(block for block in blocks(CHECKOUT / "README.md", "text") if block.startswith("before"))
    before, after = (" ".join(part.split()) for part in ticket.removeprefix("before").split("\nafter "))
    assert tickets(1)["body"][0].as_py().startswith(before)
    model, _ = prepare(parse_model_config({"style": "balanced"}), silent)
    out, _ = model.privatize(pa.array([before]), column="text", row_ids=pa.array([0]), key=RunKey.insecure(1))
    assert out[0].as_py() == after
    assert f"ε = {model.guarantee().epsilon:g}" in text("README.md")


def test_identifiers_are_those_of_the_code() -> None:
    chosen, written = (
        Policy(**yaml.safe_load(block)["policy"]).identifiers
        for block in blocks(CHECKOUT / "docs/guide/identifiers.md", "yaml")
        if "identifiers:" in block
    )
    assert chosen.phone == "fake"
    assert written.languages == ("de", "fr")
    named = re.findall(r"`([a-z]{2})`[,.]", text("docs/guide/identifiers.md"))
    assert sorted(named) == list(LANGUAGES)
    page = text("docs/guide/identifiers.md")
    rows = re.findall(r"^\| `(\w+)` \| .*? \| (\w+) \|", page, flags=re.MULTILINE)
    assert dict(rows) == Identifiers().as_dict()


def test_figures_of_an_audit_are_those_of_the_code() -> None:
    table = text("docs/guide/audit.md").split("## What it measures")[1].split("\n\n[Metrics]")[0]
    rows = re.findall(r"^\| (`.*?) \|", table, flags=re.MULTILINE)
    named = {name for row in rows for name in re.findall(r"`(\w+)`", row)}
    assert len(named) > 10
    assert named <= set(MEANING)


def test_usefulness_and_risk_are_shown_as_the_screen_of_an_audit_shows_them() -> None:
    """tests/spark/test_docs.py runs the page's commands."""
    page = text("docs/guide/classifier.md")
    (shown,) = blocks(CHECKOUT / "docs/guide/classifier.md", "text")
    found = figures(shown)
    heading, *rows, _ = usefulness_beside_risk(found)
    lines = [line.split() for line in shown.splitlines()]
    assert [" ".join(row).split() for row in (heading, *rows)] == lines
    assert [name for name in (*USEFUL, *RISKS) if f"`{name}`" not in page] == []
    for name, balanced in re.findall(r"^\| `(\w+)` \| ([\d.]+(?: %)?) \| [\d.]+", page, flags=re.MULTILINE):
        assert f"{name} {balanced} " in " ".join(shown.split())
    value = {figure.name: 100 * (figure.value or 0) for figure in found}
    for fact in (
        f"tells the topic of {value['accuracy_private_private']:.0f} % of the tickets",
        f"Original text gives {value['accuracy_plain_plain']:.0f} %, and the commonest topic {value['accuracy_majority']:.0f} %",
        f"costs {value['accuracy_plain_plain'] - value['accuracy_private_private']:.0f} points",
        f"{value['linkage_top1']:.1f} % of the released tickets, where a guess finds {value['linkage_guess']:g} %",
    ):
        assert fact in re.sub(r"\s+", " ", page)


def test_what_finds_names_is_that_of_the_newest_record() -> None:
    grids = {grid["title"]: grid["rows"] for grid in newest("name_search")["grids"]}  # type: ignore[attr-defined]
    if TAKEN not in grids:
        pytest.skip("no full record holds what a classifier and Presidio find yet")
    names, compared = text("docs/guide/names.md"), text("docs/guide/compared.md")
    shown = {
        ROW_OF.get("presidio" if name.startswith("presidio") else name, name): shares
        for name, *shares in grids["Names of tweets that are found, shares"]
    }
    for name in (*ROW_OF.values(), LISTS, RULES):
        *parts, others = shown[name]
        cells = [*(f"{100 * share:.0f} %" for share in parts), f"{100 * others:.1f} %"]
        assert f"| {name} | {' | '.join(cells)} |" in names
    whole, others = shown[ROW_OF["presidio"]][0], shown[ROW_OF["presidio"]][-1]
    assert f"it found {100 * whole:.0f} % of the persons whole" in compared
    assert f"it took {100 * others:.1f} % of the other words" in compared
    for name, _, _, share, goal, verdict in grids[TAKEN]:
        if name in (RULES, MODEL):
            assert (verdict, goal) == ("met", 0.02)
            assert f"{100 * share:.2f} %" in names


def test_gains_are_those_of_the_newest_record() -> None:
    page, gains = text("docs/guide/epsilon.md"), newest("calibration")["facts"]["gains"]  # type: ignore[index]
    shown = re.findall(r"^\| (\w+, \w+): kept, % \| (.*) \|$", page, flags=re.MULTILINE)
    assert len(shown) >= 3
    for name, cells in shown:
        kept = [gain["kept"] for gain in gains if f"{gain['lexicon']}, {gain['mechanism']}" == name]
        assert cells == " | ".join(" → ".join(f"{100 * share:.3g}" for share in pair) for pair in kept)


def test_what_audits_find_in_the_files_of_settings_is_that_of_the_newest_record() -> None:
    for name, *values in newest("settings")["grids"][0]["rows"]:  # type: ignore[index]
        cells = " | ".join("" if value is None else f"{value:.2f}" for value in values)
        row = rf"(?m)^\| `{name}` \| .* \| (.*? \| .*? \| .*?) \|$"
        shown = re.findall(row, text("docs/guide/settings.md"))
        assert shown == [cells] or name in ("cosine", "rouge_1")  # which the page leaves out


def test_goals_of_the_lexicon_are_judged_by_the_newest_records_that_have_them() -> None:
    gains: dict[tuple[str, ...], str] = {}
    for file in sorted(records.RECORDS.glob("*-utility_gain-full.json")):
        for grid in json.loads(file.read_text(encoding="utf-8"))["sections"]["utility_gain"]["grids"]:
            gains |= {(grid["title"], *row[:2]): row[-1] for row in grid["rows"]}
    words, vectors = "accuracy, bag of words", "accuracy, sentence embeddings"
    for shown, kind, figure, goal in (
        ("accuracy of a bag of words, sentences", "sentences", words, 0.03),
        ("accuracy on sentence embeddings, sentences", "sentences", vectors, 0.03),
        ("accuracy of a bag of words, texts of ten", "longer texts", words, 0.02),
        ("accuracy on sentence embeddings, texts of ten", "longer texts", vectors, 0.02),
        ("word order, sentences", "sentences", "order", 0.03),
    ):
        found = [gains[f"{kind}: at equal success", figure, level] for level in (0.45, 0.5, 0.4)]
        missed = [round(goal - float(gain.split()[0]), 3) for gain in found]
        told = ", ".join("met" if less <= 0 else str(less) for less in missed)
        assert f"| {shown} | +{goal} | {', '.join(found)} | {told} |" in text("docs/guide/lexicon.md")
    released = gains["Style `balanced`", "longer texts", vectors]
    assert f"texts of ten, less that of plain text | -0.05 | {released}: " in text("docs/guide/lexicon.md")


def test_the_page_on_scale_is_worked_out_from_the_newest_record() -> None:
    page, rows = text("docs/scale.md"), newest("scale")["grids"][0]["rows"]  # type: ignore[index]
    found = {f"| {row[0]} | {row[1]:,} | {row[3]:.0f} | {row[4]:.1f} | {row[6]:.0f} MB |" for row in rows}
    shown = re.findall(r"^\| (?:local|standalone).*$", page, flags=re.MULTILINE)
    assert len(found.intersection(shown)) == len(shown) == 5
    cost, words = rows[-1][3], 1e13 / 5.86
    seconds = words * cost * 1e-9
    assert f"words \N{MULTIPLICATION SIGN} {cost:.0f} core-ns | {seconds / 3600:.0f} core-hours |" in page
    assert f"core-hours / 1,600 cores | {seconds / 1600 / 60:.1f} minutes |" in page
    assert f"58,600, of {seconds / 58_600:.0f} s each" in page


def test_what_the_referee_concludes_is_in_the_newest_record() -> None:
    section, page = newest("referee"), text("docs/guide/referee.md")
    (grid,) = section["grids"]  # type: ignore[index]
    sentences = {row[1].split(",")[0]: row[3:] for row in grid["rows"] if row[0].endswith("sentences")}
    hashes, strict = sentences["keyed hashes of words"], sentences["style `strict`"]
    for name, (source, *_, guessed, learnt, _, _, _) in list(sentences.items())[1:]:
        assert (source > 0.6) == (name != "words dealt anew over all texts")  # that alone hides rows
        assert guessed < 0.5 or not name.startswith("style")
        assert learnt < 0.7 or not name.startswith("style")
    assert (hashes[4] > strict[4], hashes[5] > 0.75, hashes[7] < 0.55, strict[2] < 0.1) == (True,) * 4
    assert all(row[3] == 1.0 for row in grid["rows"] if row[0].endswith("of ten") and "strict" in row[1])
    _, version, *_, model, of_model = section["facts"]["names"].split()  # type: ignore[index]
    assert {f"Presidio {version}" in page, f"{model}`" in page, f"=={of_model}" in page} == {True}


def test_a_cluster_gets_the_package_by_the_commands_that_are_tried() -> None:
    page = text("docs/guide/cluster.md")
    for part in (
        "$(dptext jobs privatize) reviews.yaml",
        "$(dptext jobs doctor) reviews.yaml",
        "--py-files dptext_spark.zip",
        "--archives environment.tar.gz#environment",
        "spark.executorEnv.PYTHONPATH=./environment",
    ):
        assert part in page


def test_the_comparison_has_a_source_for_each_tool_and_says_something_of_each() -> None:
    page = text("docs/guide/compared.md")
    tables = [line for line in page.splitlines() if line.startswith("| ")]
    tools = [cell.strip() for cell in tables[0].strip("|").split("|")][2:]
    sources = page.split("\n## Sources\n")[1].splitlines()
    sourced = [line.split("|")[1].strip() for line in sources if "| " in line]
    assert tools == sourced[1:] == ["Presidio", "`ai_mask`", "NeMo Anonymizer", "DP-MLM"]
    assert all(f"\n## {tool.strip('`')}\n" in page for tool in tools)
    table = page.split("## In one table")[1].split("\n## ")[0].splitlines()
    rows = [line.strip("|").split("|") for line in table if "| " in line]
    assert {len(row) for row in rows} == {len(tools) + 2}
    assert all(cell.strip() for row in rows[1:] for cell in row)
    names = text("docs/guide/names.md")
    presidio = re.findall(r"^\| (Presidio (\S+) with [^|]*) \|", names, flags=re.MULTILINE)
    assert {f"presidio-analyzer {version}" in page for _, version in presidio} == {True}
    (spacy,) = re.findall(r"^spacy==(\S+)$", text("constraints.txt"), flags=re.MULTILINE)
    assert f"spaCy {spacy}" in page


PAGE = DOCS / "guide" / "another-language.md"
VECTORS = DOCS / "examples" / "word_vectors.py"


def test_vectors_are_written_in_lower_case(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    lower_case = runpy.run_path(str(VECTORS))["lower_case"]
    cased = "Haus 1 0\nhaus 0 1\nSTRAẞE 2 1\nund 1 2\nTür 3 1\n"
    (tmp_path / "de.vec").write_text(f"5 2\n{cased}", encoding="utf-8")
    lower_case(str(tmp_path / "de.vec"), str(tmp_path / "lower.vec"))
    read = Lexicon.read(tmp_path / "de.vec").vocabulary.strings().to_pylist()
    assert read == ["haus", "und"]  # the others are dropped
    lexicon = Lexicon.read(tmp_path / "lower.vec")
    assert lexicon.vocabulary.strings().to_pylist() == ["haus", "straße", "und", "tür"]
    assert lexicon.vectors[0].tolist() == [1.0, 0.0]


def test_vectors_of_a_small_text_put_together_what_stands_together(tmp_path: Path) -> None:
    pytest.importorskip("sklearn", reason="the extra [audit] is not installed")
    vectors_of_text = runpy.run_path(str(VECTORS))["vectors_of_text"]
    lines = ("zug bahnhof gleis", "konto zinsen überweisung", "paket lieferung zusteller")
    fields = [tuple(line.split()) for line in lines]
    lines = [f"Der {a} und {b} heute" for three in fields for a in three for b in three if a != b]
    (tmp_path / "public.txt").write_text("\n".join(lines * 2) + "\n", encoding="utf-8")
    vectors_of_text(str(tmp_path / "public.txt"), str(tmp_path / "de.vec"), dimensions=6, least=3)
    lexicon = Lexicon.read(tmp_path / "de.vec")
    words = lexicon.vocabulary.strings().to_pylist()
    assert set(words[:3]) == {"der", "und", "heute"}  # commonest first
    assert set(words[3:]) == {word for three in fields for word in three}
    lengths = np.linalg.norm(lexicon.vectors, axis=1, keepdims=True)
    unit = lexicon.vectors / np.maximum(lengths, 1e-9)  # a word of all documents is beside all alike
    for three in fields:
        at = [words.index(word) for word in three]
        others = [i for i in range(3, len(words)) if i not in at]
        assert (unit[at] @ unit[at].T).min() > (unit[at] @ unit[others].T).max()


def test_case_is_folded_as_the_page_says() -> None:
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    for written, form in {"STRAẞE": "straße", "STRASSE": "strasse", "İ": "i", "ΛΟΓΟΣ": "λογοσ"}.items():
        assert f"`{written}`" in page
        assert f"`{form}`" in page
        assert look_up_form(written) == form


def test_the_message_is_the_one_that_runs_end_with() -> None:
    (said,) = blocks(PAGE, "text")
    found = UnknownWords(1000, 1000, 900, 10_000, 7_500)
    assert " ".join(said.split()) == str(refusal(found, "German", can_tell=True))
    page = " ".join(PAGE.read_text(encoding="utf-8").split())
    assert f"Fewer than {LEAST_WORDS} words, or than {LEAST_ROWS} rows" in page
