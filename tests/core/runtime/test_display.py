"""One line in a terminal, a table in a notebook: escaped, short, and without what may be private."""

from __future__ import annotations

from dataclasses import dataclass, field

from dptext_spark.runtime.display import (
    MOST,
    MOST_TEXT,
    MOST_TEXTS,
    MOST_VALUE,
    brief,
    cut,
    line,
    marked,
    settings_line,
    side_by_side,
    table,
)


@dataclass(frozen=True, repr=False)
class Settings:
    needed: float
    words: tuple[str, ...] | None = None
    extra: list[int] = field(default_factory=list)
    hidden: str = field(default="", repr=False)


def test_a_line_is_cut_within_its_brackets() -> None:
    assert line("Name", "3 words", "", "cosine") == "Name(3 words, cosine)"
    long = line("Name", "x" * 500)
    assert len(long) == MOST
    assert long.startswith("Name(xxx")
    assert long.endswith("x…)")
    assert cut("abcd", 4) == "abcd"
    assert cut("abcde", 4) == "abc…"


def test_of_a_list_its_length_alone_is_shown() -> None:
    assert brief(("ada", "grace")) == "<2 entries>"
    assert brief(["ada"]) == "<1 entry>"
    assert brief("join") == "'join'"
    assert len(brief("x" * 500)) == MOST_VALUE


def test_settings_show_what_differs_from_their_defaults() -> None:
    assert settings_line(Settings(1.0)) == "Settings(needed=1.0)"
    assert settings_line(Settings(1.0), always=("words",)) == "Settings(needed=1.0, words=None)"
    given = Settings(1.0, ("ada", "grace"), [1], "secret")
    assert settings_line(given) == "Settings(needed=1.0, words=<2 entries>, extra=<1 entry>)"


def test_a_table_is_this_html_and_escaped() -> None:
    left = ' style="text-align:left"'
    assert table("A & B", [("<i>", '"q"')], note="1 < 2") == (
        f'<div><strong>A &amp; B</strong><table><tbody><tr><th scope="row"{left}>&lt;i&gt;</th><td{left}>&quot;q&quot;</td></tr>'
        "</tbody></table><p>1 &lt; 2</p></div>"
    )
    assert "<p>" not in table("A", [])
    pair = table("A", [], pair=("a cat", "a <b>"))
    assert f"<td{left}>a <mark>cat</mark></td>" in pair
    assert f"<td{left}>a <mark>&lt;b&gt;</mark></td>" in pair


def test_words_that_differ_are_marked_on_both_sides() -> None:
    assert marked("Send the parcel.", "Send the letter.") == (
        "Send the <mark>parcel</mark>.",
        "Send the <mark>letter</mark>.",
    )
    assert marked("same & same", "same & same") == ("same &amp; same", "same &amp; same")
    assert marked("a", "") == ("<mark>a</mark>", "")
    assert marked("", "") == ("", "")
    # A placeholder in the place of two words.
    assert marked("to Ada L now", "to [NAME] now") == (
        "to <mark>Ada L</mark> now",
        "to <mark>[NAME]</mark> now",
    )


def test_texts_side_by_side_are_this_html_and_escaped() -> None:
    left, text = (
        f' style="text-align:left{more}"' for more in ("", ";vertical-align:top;white-space:pre-wrap")
    )
    heads = "".join(f'<th scope="col"{left}>{head}</th>' for head in ("", "before", "after"))
    shown = [
        ("1 & 2", "a\n<script>", "a\n<b>"),
        ("null", None, None),
        ("lost", "a <i>", None),
        ("empty", "", ""),
    ]
    cells = [
        ("1 &amp; 2", "a\n&lt;<mark>script</mark>&gt;", "a\n&lt;<mark>b</mark>&gt;"),
        ("null", "<em>NULL</em>", "<em>NULL</em>"),
        ("lost", "a &lt;i&gt;", "<em>NULL</em>"),
        ("empty", "", ""),
    ]
    body = "".join(
        f'<tr><th scope="row"{left}>{a}</th><td{text}>{b}</td><td{text}>{c}</td></tr>' for a, b, c in cells
    )
    assert side_by_side("A & B", shown, note="1 < 2") == (
        f"<div><strong>A &amp; B</strong><table><thead><tr>{heads}</tr></thead><tbody>{body}</tbody></table><p>1 &lt; 2</p></div>"
    )


def test_of_many_and_long_texts_the_first_is_shown_and_said() -> None:
    whole = side_by_side("A", [(f"row {i}", "x" * MOST_TEXT, "y") for i in range(MOST_TEXTS)])
    assert "<p>" not in whole
    assert "…" not in whole
    many = side_by_side("A", [(f"row {i}", "x", "y") for i in range(MOST_TEXTS + 1)])
    assert many.count('<th scope="row"') == MOST_TEXTS
    assert f"<p>The first {MOST_TEXTS} of {MOST_TEXTS + 1} are shown.</p>" in many
    long = side_by_side("A", [("row", None, "y" * (MOST_TEXT + 1))])
    assert f">{'y' * (MOST_TEXT - 1)}…</td>" in long
    assert "<p>Texts end after 1,000 characters (…); words are marked up to there.</p>" in long
