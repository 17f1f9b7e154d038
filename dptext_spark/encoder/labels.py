"""What the labels of a token classifier stand for: persons, locations, organizations and other names.

A label is `O` (no name), a plain name such as `PER`, or one with the place of a word within a name: `B-PER` begins it, `I-PER`
goes on; `E`, `S`, `L` and `U` are read as well. Names are read without case and punctuation, so that `GIVEN_NAME`, `GivenName`
and `given-name` are one. What neither table below holds counts as `other`: a name too many is masked rather than one too few.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from dptext_spark.errors import SettingsError
from dptext_spark.runtime.record import Record

KINDS = PERSON, LOCATION, ORGANIZATION, OTHER = ("person", "location", "organization", "other")
OUTSIDE = "O"
MOST_LABELS = 1_000
KINDS_OF: Mapping[str, tuple[str, ...]] = {
    PERSON: (
        "per", "pers", "person", "persons", "personname", "name", "fullname", "givenname", "given", "firstname", "first",
        "middlename", "middle", "surname", "lastname", "last", "familyname", "patronymic", "nickname", "patient", "doctor",
        "staff", "hcp",
    ),
    LOCATION: (
        "loc", "location", "locations", "place", "gpe", "geo", "city", "town", "street", "streetname", "streetaddress", "address",
        "state", "county", "country", "region", "province", "district", "fac", "facility", "nearbygpscoordinate",
    ),
    ORGANIZATION: (
        "org", "organization", "organisation", "organizations", "company", "companyname", "corporation", "corp", "group",
        "hospital", "school", "university",
    ),
}  # fmt: skip
# Identifiers are found by rules (policy.identifiers), and numbers have a rule of their own (policy.numbers); the rest is no name.
LEFT_OUT = frozenset({
    "email", "emailaddress", "url", "uri", "website", "phone", "phonenumber", "telephone", "telephonenumber", "tel", "fax",
    "username", "user", "handle", "ip", "ipaddress", "ipv4", "ipv6", "mac", "macaddress", "iban", "bic", "swift", "taxid", "tax",
    "taxnumber", "bankaccount", "account", "accountnumber", "accountnum", "routingnumber", "governmentid", "passport",
    "passportnumber", "driverslicense", "driverlicense", "driverlicensenum", "licenseplate", "idcard", "idcardnum", "idnum", "id",
    "ssn", "socialnumber", "socialnum", "socialsecuritynumber", "creditcard", "creditcardnumber", "card", "cvv", "creditcardcvv",
    "pin", "password", "pass", "building", "buildingnumber", "buildingnum", "secondaryaddress", "zipcode", "zip", "postcode",
    "postalcode", "medicalrecord", "number", "num", "date", "dateofbirth", "dob", "birthdate", "bod", "time", "datetime", "age",
    "money", "amount", "percent", "quantity", "cardinal", "ordinal", "currency", "language", "sex", "gender", "title", "prefix",
})  # fmt: skip
_LABEL = re.compile(r"(?:[BIESLU]-)?([A-Za-z][A-Za-z0-9 _./-]{0,63})")


@dataclass(frozen=True)
class Labels(Record):
    """The labels of a classifier.

    Attributes:
        names: those without `B-` and `I-` that count as names, in the order of their ids, such as `GIVEN_NAME`.
        kinds: the kind of each, a position in `KINDS`.
        of_logits: the position in `names` of each logit; -1 for `O` and what is left out.
    """

    names: tuple[str, ...]
    kinds: tuple[int, ...]
    of_logits: tuple[int, ...]

    @property
    def types(self) -> tuple[str, ...]:
        """The kinds that occur, in the order of `KINDS`."""
        return tuple(kind for place, kind in enumerate(KINDS) if place in self.kinds)


def kind_of(name: str) -> str | None:
    """Return the kind of a label without `B-` and `I-`; None for what is left out."""
    plain = re.sub("[^a-z0-9]", "", name.lower())
    if plain in LEFT_OUT:
        return None
    return next((kind for kind, names in KINDS_OF.items() if plain in names), OTHER)


def labels_of(id2label: object, field: str) -> Labels:
    """Read the labels of a classifier.

    Args:
        id2label: as `config.json` has it: ids from 0 as strings, a label each.
        field: what messages call it.

    Raises:
        SettingsError: there are none, ids are missing, a label is no label, none is `O`, or none stands for a name.
    """
    if not isinstance(id2label, Mapping) or not id2label:
        raise SettingsError(f"{field}: config.json holds no id2label; valid: a label for each id from 0.")
    if len(id2label) > MOST_LABELS:
        raise SettingsError(
            f"{field}: id2label has {len(id2label):,} labels; valid: at most {MOST_LABELS:,}."
        )
    given = [id2label.get(str(place)) for place in range(len(id2label))]
    if any(label is None for label in given):
        raise SettingsError(
            f"{field}: id2label misses ids; valid: one label for each id from 0 to {len(given) - 1}."
        )
    names: list[str] = []
    of_logits = []
    for place, label in enumerate(given):
        found = _LABEL.fullmatch(label) if isinstance(label, str) else None
        if found is None:
            raise SettingsError(
                f"{field}: the label of id {place} is none; valid: O, names such as PER, or B-PER and I-PER."
            )
        name = found[1]
        if label == OUTSIDE or kind_of(name) is None:
            of_logits.append(-1)
            continue
        if name not in names:
            names.append(name)
        of_logits.append(names.index(name))
    if OUTSIDE not in given:
        raise SettingsError(
            f"{field}: none of the {len(given)} labels is O; valid: O for words that are no name."
        )
    kinds = tuple(KINDS.index(kind) for name in names if (kind := kind_of(name)) is not None)
    if all(KINDS[kind] == OTHER for kind in kinds):
        raise SettingsError(
            f"{field}: no label stands for a person, a location or an organization; valid: labels such as "
            "PER, GIVEN_NAME, LOC, CITY, ORG."
        )
    return Labels(tuple(names), kinds, tuple(of_logits))
