"""Labelled samples: what is read of either form, and what is refused, by its line and without a word of it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from dptext_spark.audit.table import annotations
from dptext_spark.audit.table.annotations import Annotations, Mention, conll_texts
from dptext_spark.errors import DataError

CONLL = """\
I\tO
met\tO
Ada\tB-person
King Lovelace\tI-PERSON
\t
paris\tI-location
.\tO\tignored
Oslo\tB-location
Bergen\tB-location

Ada\tO
"""


def written(folder: Path, content: str | bytes) -> str:
    file = folder / "sample"
    file.write_bytes(content.encode() if isinstance(content, str) else content)
    return str(file)


def spans(*spans: tuple[int, int, str], **more: Any) -> str:
    made = [{"start": start, "end": end, "kind": kind} for start, end, kind in spans]
    return json.dumps({"row": 1, "spans": made, **more})


def mentions(given: Annotations) -> list[list[tuple[int, int, str]]]:
    return [
        [
            (int(given.starts[i]), int(given.ends[i]), given.kinds[given.labels[i]])
            for i in range(given.bounds[text], given.bounds[text + 1])
        ]
        for text in range(len(given))
    ]


def test_conll_is_read_by_what_the_texts_say(tmp_path: Path) -> None:
    for content in (CONLL, CONLL.replace("\n", "\r\n"), "\ufeff" + CONLL, "\n\n" + CONLL.rstrip("\n")):
        given = Annotations.read(written(tmp_path, content), ("body",))
        assert not given.by_row
        assert given.names == ("ImetAdaKingLovelace", "paris.OsloBergen", "Ada")
        assert given.kinds == ("location", "person")
        assert given.groups.tolist() == [1, 0]
        # Ada King Lovelace without spaces; a location that goes on from nothing; two that follow each other; none.
        assert mentions(given) == [
            [(4, 19, "person")],
            [(0, 5, "location"), (6, 10, "location"), (10, 16, "location")],
            [],
        ]
    assert given.lines.tolist() == [3, 8, 13]


def test_tokens_make_mentions() -> None:
    (text,) = conll_texts("x", "a\tB-x\nb\tI-x\nc\tI-y\nd\tO\ne\tI-y\nf\tB-y")
    assert text.mentions == [Mention(0, 2, "x"), Mention(2, 3, "y"), Mention(4, 5, "y"), Mention(5, 6, "y")]


def test_of_equal_texts_the_first_counts(tmp_path: Path) -> None:
    content = "Ada\tB-person\n\nAda\tB-person\n\nA\tB-person\nda\tO\n\nBob\tO\n"
    given = Annotations.read(written(tmp_path, content), ("body",))
    assert (given.names, given.others) == (("Ada", "Bob"), 1)
    assert mentions(given) == [[(0, 3, "person")], []]


def test_spans_are_read_by_their_rows(tmp_path: Path) -> None:
    lines = [spans((9, 12, "LOC"), (0, 3, "Person"), row="k", column="note"), "", spans(row=2, column="body")]
    given = Annotations.read(written(tmp_path, "\n".join(lines)), ("body", "note"))
    assert given.by_row
    assert (given.names, given.columns, given.lines.tolist()) == (("k", "2"), ("note", "body"), [1, 3])
    assert mentions(given) == [[(0, 3, "person"), (9, 12, "loc")], []]
    assert given.groups.tolist() == [1, 0]
    alone = Annotations.read(written(tmp_path, spans((0, 1, "product"))), ("body",))
    assert (alone.columns, alone.groups.tolist()) == (("body",), [2])


SECRET = "Zanzibar"
BAD: list[tuple[str, str | bytes, str]] = [
    ("nothing", "", "holds no text"),
    ("blank", "\n \n", "holds no text"),
    ("no UTF-8", b"a\tO\nb\tO\n\xff\tO\n", "line 3: no UTF-8"),
    ("no tab", f"a\tO\n{SECRET} O\n", "line 2: no tab; valid: a token, a tab and a label"),
    ("no token", "a\tO\n\u00a0\tO\n", "line 2: no token"),
    ("no label", f"{SECRET}\t\n", "line 1: no label"),
    ("swapped", f"O\t{SECRET}\n", "line 1: a label of another form"),
    ("no BIO", f"{SECRET}\tperson\n", "line 1: a label of another form; valid: .*O, B-KIND or I-KIND"),
    ("no kind", f"{SECRET}\tB-\n", "line 1: a label of another form"),
    ("no JSON", f'{spans()}\n{{"{SECRET}"}}', "line 2: no JSON object"),
    ("a list", f'{spans()}\n["{SECRET}"]', "line 2: no JSON object"),
    ("fields", spans(**{SECRET: 1}), "line 1: 1 other fields"),
    ("no row", json.dumps({"spans": []}), "line 1: no row"),
    ("true", spans(row=True), "line 1: no row"),
    ("fraction", spans(row=1.5), "line 1: no row"),
    ("column", spans(column=SECRET), "line 1: no column of the audit; valid: column: body"),
    ("no spans", json.dumps({"row": 1, "spans": SECRET}), "line 1: no spans"),
    ("a span", json.dumps({"row": 1, "spans": [[0, 3, SECRET]]}), "line 1: a span of another form"),
    ("empty", spans((3, 3, "person")), "line 1: a span that is empty"),
    ("negative", spans((-1, 3, "person")), "line 1: a span that is empty"),
    ("backward", spans((5, 3, "person")), "line 1: a span that is empty"),
    ("kind", spans((0, 3, f"<{SECRET}>")), "line 1: a span without a kind"),
    ("overlap", spans((0, 3, "person"), (2, 4, "location")), "line 1: spans that overlap"),
    ("twice", f"{spans()}\n\n{spans()}", "line 3: the text of line 1 again"),
    ("kinds", "\n".join(f"a{n}\tB-k{n}" for n in range(65)), "65 kinds of names; valid: at most 64"),
]  # fmt: skip


@pytest.mark.parametrize(("content", "said"), [pytest.param(*case[1:], id=case[0]) for case in BAD])
def test_what_is_wrong_is_named_by_its_line(tmp_path: Path, content: str | bytes, said: str) -> None:
    with pytest.raises(DataError, match=said) as caught:
        Annotations.read(written(tmp_path, content), ("body",))
    assert str(caught.value).startswith("annotations: ")
    assert SECRET not in str(caught.value)


def test_a_column_is_needed_where_there_are_several(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="no column of the audit; valid: column: body, note"):
        Annotations.read(written(tmp_path, spans()), ("body", "note"))


def test_a_file_that_is_no_sample_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(DataError, match="cannot be read \\(No such file"):
        Annotations.read(str(tmp_path / "none"), ("body",))
    large = tmp_path / "large"
    with large.open("wb") as file:
        file.truncate(300 << 20)  # holds nothing on the disk
    with pytest.raises(DataError, match=r"holds 314,572,800 bytes; valid: at most 67,108,864"):
        Annotations.read(str(large), ("body",))
    monkeypatch.setattr(annotations, "LARGEST", 3)
    with pytest.raises(DataError, match="holds 4 bytes"):
        Annotations.read(written(tmp_path, "a\tO\n"), ("body",))
