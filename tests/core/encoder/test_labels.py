"""What labels stand for."""

from __future__ import annotations

import pytest

from dptext_spark.encoder.classifier_files import KINDS, KINDS_OF, LEFT_OUT, kind_of, labels_of


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("PER", "person"), ("GIVEN_NAME", "person"), ("GivenName", "person"), ("given-name", "person"), ("LASTNAME", "person"),
        ("SURNAME", "person"), ("CITY", "location"), ("STREET_NAME", "location"), ("GPE", "location"), ("COUNTY", "location"),
        ("ORG", "organization"), ("corporation", "organization"), ("MISC", "other"), ("creative-work", "other"),
        ("EMAIL", None), ("TAX_ID", None), ("ZIPCODE", None), ("DATE", None), ("BUILDINGNUM", None),
    ],
)  # fmt: skip
def test_the_kind_of_a_label(name: str, kind: str | None) -> None:
    assert kind_of(name) == kind


def test_no_name_stands_for_two_things() -> None:
    every = [name for names in KINDS_OF.values() for name in names] + sorted(LEFT_OUT)
    assert len(every) == len(set(every))
    assert all(name.isalnum() and name.islower() for name in every)


def test_places_within_a_name_are_one_label() -> None:
    labels = ("B-ORG", "I-ORG", "O", "S-PER", "E-PER", "EMAIL", "B-creative work")
    found = labels_of({str(place): label for place, label in enumerate(labels)}, "f")
    assert found.names == ("ORG", "PER", "creative work")
    assert [KINDS[kind] for kind in found.kinds] == ["organization", "person", "other"]
    assert found.of_logits == (0, 0, -1, 1, 1, -1, 2)
    assert found.types == ("person", "organization", "other")
