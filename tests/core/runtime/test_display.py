"""One line in a terminal, a table in a notebook: escaped, short, and without what may be private."""

from __future__ import annotations

from dataclasses import dataclass, field

from dptext_spark.runtime.display import MOST, MOST_VALUE, brief, cut, line, marked, settings_line, table


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
