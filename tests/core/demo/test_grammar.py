"""The grammar that writes the tickets: what its marks mean, each in a grammar of a line or two."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.errors import DataError
from tools.ticket_grammar import NOTHING, START, Grammar, UniformNumbers

ROWS = 400


def said(grammar: Grammar, *plan: int, **texts: list[str]) -> list[str]:
    bound = {name: pa.array(one) for name, one in texts.items()}
    return grammar.texts(np.full((ROWS, len(plan)), plan), UniformNumbers(1), bound).to_pylist()


def test_a_rule_is_one_of_its_wordings_about_equally_often() -> None:
    grammar = Grammar({"x": ["a {y}.", "b {y}."], "y": ["1", "2"]})
    found = said(grammar, grammar.rule("x"))
    assert set(found) == {"a 1.", "a 2.", "b 1.", "b 2."}
    # 400 fair draws of four: each count lies within 100 ± 40 but for one draw in 10,000
    assert all(60 < found.count(one) < 140 for one in set(found))


def test_brackets_are_alternatives_and_may_be_nothing_and_nested() -> None:
    grammar = Grammar({"x": ["p[q|r[s|]|]t"]})
    assert set(said(grammar, grammar.rule("x"))) == {"pqt", "prst", "prt", "pt"}


def test_a_sentence_has_a_capital_and_an_article_its_n() -> None:
    grammar = Grammar({"x": ["a {y}; a user, a USB hub, a umbrella ^so"], "y": ["egg", "Ox", "tree"]})
    assert set(said(grammar, START, grammar.rule("x"))) == {
        "An egg; a user, a USB hub, an umbrella So", "An Ox; a user, a USB hub, an umbrella So",
        "A tree; a user, a USB hub, an umbrella So",
    }  # fmt: skip


def test_what_is_bound_is_one_text_throughout_a_row() -> None:
    grammar = Grammar({"x": ["{me} and {me}", "a {me}"]}, bound=["me", "other"])
    names = [f"egg{n}" for n in range(ROWS)]
    found = said(grammar, NOTHING, grammar.rule("x"), me=names)
    assert all(one in (f"{name} and {name}", f"an {name}") for one, name in zip(found, names, strict=True))
    with pytest.raises(DataError, match="bound: no text for 'me' is given"):
        said(grammar, grammar.rule("x"), other=names)


def test_ranked_wordings_come_the_earlier_the_more_often() -> None:
    grammar = Grammar({"x": [str(n) for n in range(4)]}, ranked=["x"])
    found = said(grammar, grammar.rule("x"))
    # u² below 1/4 for half of all u, above 9/16 for a quarter
    assert 160 < found.count("0") < 240
    assert found.count("3") < 80


def test_forms_come_as_often_as_the_habit_has_it_and_keep_capitals() -> None:
    grammar = Grammar({"x": ["Please, (please) PLEASE no."]})
    forms = grammar.forms({"please": ["pls"]})
    plan = np.full((ROWS, 1), grammar.rule("x"))
    often = np.repeat([0.0, 1.0], ROWS // 2)
    found = grammar.texts(plan, UniformNumbers(3), habits=[(forms, often)]).to_pylist()
    assert set(found[: ROWS // 2]) == {"Please, (please) PLEASE no."}
    assert set(found[ROWS // 2 :]) == {"Pls, (pls) PLS no."}


def test_lines_are_told_apart() -> None:
    grammar = Grammar({"x": ["a b", "c d"]}, apart=["x"])
    first, second = grammar.lines("x").tolist()
    assert set(said(grammar, second, grammar.piece(" "), first)) == {"c d a b"}


def test_a_name_without_wordings_is_refused() -> None:
    with pytest.raises(
        DataError, match=r"rules: 'y' is named; valid: the name of a rule that has wordings\."
    ):
        Grammar({"x": ["{y}"]})


def test_no_rows_are_no_texts() -> None:
    grammar = Grammar({"x": ["a"]})
    assert len(grammar.texts(np.empty((0, 1), np.int64), UniformNumbers(1))) == 0


def test_numbers_are_those_of_the_seed() -> None:
    found = UniformNumbers(7).numbers(2, 3)
    assert found.shape == (2, 3)
    assert ((found >= 0) & (found < 1)).all()
    assert np.array_equal(found.ravel()[:4], UniformNumbers(7).numbers(4))
    assert set(UniformNumbers(7).picks(300, 3).tolist()) == {0, 1, 2}
