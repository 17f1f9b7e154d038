"""What stands in the place of identifiers: placeholders, and fakes of one shape that hold by scope."""

from __future__ import annotations

import re
from collections import Counter
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from dptext_spark.model.privatizer import Privatizer
from dptext_spark.randomness import RunKey
from dptext_spark.text.policy import TYPES, Policy
from dptext_spark.text.replacements import FakeSource, fakes
from tests.core.text.identifiers.test_finder import CASES, found
from tests.core.text.samples import WORDS, FirstLane, privatizer, row, run

ALL_FAKES = {name: "fake" for name in TYPES if name != "date"}


def model(identifiers: Any, level: str = "token", **more: Any) -> Privatizer:
    """The small lexicon with a choice of identifiers."""
    policy = Policy(identifiers=identifiers, **more)
    return Privatizer(privatizer().vocabulary, FirstLane(0, len(WORDS)), policy, level)  # type: ignore[arg-type]


def texts(made: Privatizer, rows: list[Any], **more: Any) -> list[str]:
    return [out.decode() for out in run(made, rows, **more)[0]]


@pytest.mark.parametrize(("name", "text"), CASES)
def test_a_placeholder_stands_for_the_whole(name: str, text: str) -> None:
    (out,) = texts(model({"date": "mask"}), [f"it, {text}; is"])
    assert out == f"it, [{name.upper()}]; is"


def test_an_identifier_is_no_word() -> None:
    plain = "it is 12 frob, not it"
    counts = row(run(model("none"), [plain])[1], 0)
    text = "it is 12 frob, jane@example.com not@example.com 0171 1234567 not it"
    _, counters = run(model({}), [text])
    held = row(counters, 0)
    assert held | {"identifiers": 0, "identifiers_email": 0, "identifiers_phone": 0} == counts
    assert (held["identifiers"], held["identifiers_email"], held["identifiers_phone"]) == (3, 2, 1)


def test_words_beside_one_are_drawn_as_without_it() -> None:
    with_one, without = (
        texts(model({}), [text])[0] for text in ("cat jane@example.com dog", "cat                  dog")
    )
    assert with_one.split()[0::2] == without.split()


@pytest.mark.parametrize("chosen", [{}, ALL_FAKES], ids=["masks", "fakes"])
def test_a_placeholder_that_stands_there_stays(chosen: Any) -> None:
    out, counters = run(model(chosen), ["it [EMAIL] is [PHONE]"])
    assert out == [b"it [EMAIL] is [PHONE]"]
    assert row(counters, 0)["identifiers"] == 2


def test_case_gaps_and_tokenizer_leave_it_alone() -> None:
    lower = model({"email": "fake"}, case="lower", gaps="normalise")
    (out,) = texts(lower, ["IT   (Jane@Example.com)\n\nIS  "])
    assert re.fullmatch(r"it \([A-Z][a-z]{3}@[A-Z][a-z]{6}\.[a-z]{3}\) is", out)
    assert texts(model({}, tokenizer="whitespace"), ["it (jane@example.com), is"]) == ["it ([EMAIL]), is"]


def test_rows_without_text_and_sliced_batches() -> None:
    rows = pa.array(["x", None, "", "it jane@example.com", "is"])
    assert run(model({}), rows.slice(1))[0] == [None, b"", b"it [EMAIL]", b"is"]
    out, counters = run(model({}), pa.array([b"jane@example.com \xff", b"it"], pa.binary()))
    assert out == [b"", b"it"]
    assert row(counters, 0)["invalid"] == 1


def shape(text: str) -> str:
    """Letters and digits by their kind."""
    return "".join("A" if c.isupper() else "a" if c.isalpha() else "0" if c.isdigit() else c for c in text)


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "text"), [case for case in CASES if case[0] != "date" and case[1].isascii()]
)
def test_a_fake_has_the_shape_and_is_of_the_type(name: str, text: str) -> None:
    outs = set()
    for seed in range(20):
        (out,) = texts(model(ALL_FAKES), [f"it {text}, is"], key=RunKey.insecure(seed))
        fake = out.removeprefix("it ").removesuffix(", is")
        outs.add(fake)
        assert shape(fake) == shape(text)
        ((kind, whole),) = found(f"it {fake}, is")
        # Figures may be a card's by chance, or a telephone number's.
        assert whole == fake
        assert kind == name or name == "digits" or text.startswith("1-800")
    if len(re.findall("[0-9A-Za-z]", text)) > 3:
        assert len(outs) > 12
        assert text not in outs


LEFT = [
    *((text, ()) for text in ("zorblax://x", "zorblax://www.zorblax/zorblax", "x.xn--zorblax", "zorblax.dé")),
    *((text, ()) for text in ("httpszorblax://x", "https.zorblax://x")),
    ("http://zorblax.zorblax", ("http",)),
    ("HTTPS://www.zorblax.com", ("https", "www")),
    ("wwwzo.zorblax.org", ("org",)),
    ("www2.zorblax.com", ("www2",)),
    ("www.zorblax", ("www",)),
    ("zorblax.co.uk/zorblax.com", ("uk",)),
    ("zorblax.com:80/x", ("com",)),
]


@pytest.mark.parametrize(("text", "left"), LEFT)
def test_of_an_address_only_what_is_registered_stays(text: str, left: tuple[str, ...]) -> None:
    """Whoever found it: a provider may take anything for an address on the web."""
    raw = np.frombuffer(text.encode() + bytes(32), np.uint8)
    zero, end = np.zeros(1, np.int64), np.array([len(text.encode())], np.int64)
    stays = np.ones(len(text), np.bool_)
    for seed in range(24):
        rng = np.random.default_rng(seed)
        draw = lambda b, rng=rng: rng.integers(0, 2**64, b.shape, np.uint64)  # noqa: E731
        keyed = FakeSource(None, (np.uint64(1), np.uint64(2)), draw, False)
        out, _ = fakes(raw, (zero, zero, zero, end), np.array([TYPES.index("url")]), keyed)
        fake = out.tobytes().decode()
        assert len(fake) == len(text)
        stays &= np.array([a == b for a, b in zip(text, fake, strict=True)])
    kept = "".join(c if stays[i] and c.isalnum() else " " for i, c in enumerate(text)).lower().split()
    assert tuple(kept) == left


def test_other_letters_become_ascii_and_what_is_not_seen_is_left_out() -> None:
    (out,) = texts(model(ALL_FAKES), ["j\u200börg@bücher.example"])
    assert re.fullmatch(r"[a-z]{4}@[a-z]{6}\.[a-z]{7}", out)


def fakes_of(level: str, rows: list[str], records: list[str], **more: Any) -> list[str]:
    return texts(model(ALL_FAKES, level), rows, record_ids=pa.array(records), **more)


def test_equal_identifiers_of_a_scope_have_equal_fakes() -> None:
    rows = ["jane@example.com Jane@example.com", "jane@example.com", "jane@example.com"]
    token, record, dataset = (
        fakes_of(level, rows, ["a", "a", "b"]) for level in ("token", "record", "dataset")
    )
    assert len({fake.lower() for text in token for fake in text.split()}) == 4
    first = record[0].split()
    assert first[0] == first[1].lower() == record[1] != record[2]
    assert {fake.lower() for text in dataset for fake in text.split()} == {dataset[1]}
    digits = fakes_of("dataset", ["4111 1111 1111 1111", "4111-1111-1111-1111"], ["a", "b"])
    assert digits[0].replace(" ", "-") == digits[1]


def test_fakes_hold_for_a_key_and_are_others_by_another() -> None:
    text = ["jane@example.com 4111111111111111"]
    first, again, other = (fakes_of("record", text, ["a"], key=RunKey.insecure(key)) for key in (1, 1, 2))
    assert first == again != other


def test_a_long_one_is_drawn_all_through() -> None:
    (out,) = texts(model(ALL_FAKES), ["https://example.com/" + "a" * 2_000])
    tail = out.removeprefix("https://").partition("/")[2]
    assert len(tail) == 2_000
    assert set(tail) == set("bcdfghjklmnpqrstvwxz")
    assert len({tail[i : i + 8] for i in range(0, 2_000, 8)}) == 250


def test_letters_and_digits_are_uniform() -> None:
    outs = texts(model(ALL_FAKES), ["12345678@abcdefgh.example"] * 4_000)
    counts = Counter("".join(out[:8] for out in outs))
    assert set(counts) == set("0123456789")
    # 32,000 digits: 3,200 each, standard deviation 54; a false alarm once in 10^6 tests.
    assert all(abs(count - 3_200) < 5.4 * 54 for count in counts.values())


def test_other_identifiers_are_another_fingerprint() -> None:
    made = {model(chosen).fingerprint for chosen in ("none", {}, {"phone": "fake"}, {"phone": "keep"})}
    assert len(made) == 4
