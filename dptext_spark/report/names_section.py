"""The names section of a report: the search for names, their replacement, and their number where that may be shown.

How many names stood in a text depends on it, and is restricted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from dptext_spark.config.requirements import audited
from dptext_spark.disclosure.facts import Figures, ShownSettings
from dptext_spark.report.blocks import Block, Points, Section, Table, Text, Tile, pairs
from dptext_spark.report.facts import ReportFacts
from dptext_spark.rounding import percent_up
from dptext_spark.text.names.search import KEEP, LIST_TYPES, LOCATION, MASK, PERSON, PSEUDONYM
from dptext_spark.text.policy import Policy, placeholder

LISTED = ("names_masked", "names_kept")
FOUND = ("persons_found", "locations_found")
# The words that a run counts, as their metrics begin, and what they are.
COUNTED = {
    "person_words": "names of persons",
    "location_words": "names of places",
    "listed_words": "entries of lists",
}
NOT_LOOKED_FOR = "no search for names, so names that stayed were not counted"
# Figures of an audit that the section shows, and what they are of.
OF_AUDIT = {
    "names_kept": "words of names that public lists find",
    "persons_kept_whole": "whole names of persons",
    "locations_kept_whole": "whole names of places",
    "listed_kept": "entries of your own lists",
}
_BECAME = {MASK: "replaced by {mark}", PSEUDONYM: "replaced by pseudonyms", KEEP: "not looked for"}
NAMED = "names of kind {kind}, replaced by pseudonyms of the public lists (version {version})"
NO_SEARCH = (
    "The run did not look for names. Names in the lexicon are treated like its other words, and other names are unknown words. "
    "policy.names looks for names, and policy.mask for the names of a list."
)
_RESTRICTED = (
    "The numbers of found and unchanged names depend on the private text. The restricted page has them."
)


def tile(facts: ReportFacts) -> Iterator[Tile]:
    """Yield the figure of the summary: who looked for names; inside, how many of their words stayed."""
    settings = facts.run.settings
    searched = looked(settings.policy, bool(settings.lists))
    if not searched:
        yield Tile("Names", "not looked for", NOT_LOOKED_FOR)
        return
    by = f"searched by {searched}; no guarantee"
    whole = facts.metrics or {}
    words, stayed = (sum(whole.get(f"{name}{what}") or 0 for name in COUNTED) for what in ("", "_kept"))
    if words:
        yield Tile("Names", f"{stayed:,.0f} of {words:,.0f} words", f"of found names stayed; {by}")
    else:
        yield Tile("Names", "looked for", by)


def looked(policy: Policy, lists: bool) -> str:
    """Return who looked for names, as a part of a sentence; empty where nobody did."""
    search = policy.names
    return ", ".join(
        [
            *([f"public lists (version {search.version})"] if search and search.lists else []),
            *(["a classifier"] if search.classifies else []),
            *(["own lists"] if lists else []),
            *(["providers"] if policy.providers else []),
        ]
    )


def names(facts: ReportFacts) -> Section:
    """Write how names were looked for, and the findings that may be shown."""
    rows = searches(facts.run.settings)
    blocks: list[Block] = [pairs(rows)] if rows else [Text(NO_SEARCH)]
    if facts.metrics is None:
        blocks.append(Text(_RESTRICTED, quiet=True))
    else:
        settings = facts.run.settings
        named_lists = any("replace" in source for source in settings.lists.get("mask", []))
        looked_by = looked(settings.policy, bool(settings.lists))
        blocks += _counted(facts.metrics, settings.policy.names.finders, looked_by, named_lists)
    return Section("names", "Names", tuple(blocks), restricted=facts.metrics is not None)


def searches(settings: ShownSettings) -> list[tuple[str, str]]:
    """Return the searches and lists for names, and the treatment of names found; nothing without any."""
    search = settings.policy.names
    rows = []
    if search and search.lists:
        how = "given names and surnames, towns, countries and states, and how names are written"
        rows.append(("public lists and rules", f"version {search.version}: {how}"))
    if search.classifies:
        rows.append(("classifier", f"{search.model}, from a score of {search.threshold:g} on"))
    if search:
        for kind, names in ((PERSON, "names of persons"), (LOCATION, "names of places")):
            rows.append((names, _BECAME[getattr(search, kind)].format(mark=placeholder(kind))))
    for field, became in (("mask", f"replaced by {placeholder(LIST_TYPES[0])}"), ("keep", "stay in clear")):
        for source in settings.lists.get(field, []):
            what = became if source.get("replace") is None else NAMED.format(**source)
            rows.append((f"list (policy.{field})", f"{_source(source)}; {what}"))
    return rows


def _source(names: Mapping[str, object]) -> str:
    """Return the origin of a list, and its number of entries."""
    entries = names.get("entries")
    size = "" if entries is None else f", {int(str(entries)):,} entries"
    if names.get("file") is not None:
        return f"file {names['file']}{size}"
    if names.get("table") is not None:
        return f"column {names.get('column')} of {names['table']}{size}"
    return f"column {names.get('column')} of the input, of each row"


def stayed_words(whole: Figures) -> list[tuple[str, str]]:
    """Return, for each kind of words that a run found, its description and the numbers found, replaced and unchanged."""
    rows = []
    for name, what in COUNTED.items():
        words, share = whole.get(name), whole.get(f"{name}_kept_share")
        replaced, stayed = (whole.get(f"{name}{part}") or 0 for part in ("_replaced", "_kept"))
        if words and share is not None:
            became = f"{replaced:,.0f} replaced, {stayed:,.0f} stayed ({percent_up(share)})"
            rows.append((what, f"{words:,.0f} words, {became}"))
    return rows


def _counted(whole: Figures, finders: str, looked: str, named_lists: bool) -> Iterator[Block]:
    words = stayed_words(whole)
    if words:
        missed = f"Found by {looked}. Names that they missed are not counted."
        yield Points("What stayed, as the run counted it", (missed,))
        yield pairs(words)
    if any(whole.get(name) for name in LISTED):
        masked = listed_names(whole, named=named_lists)
        sentence = f"{masked}. Found by lists, without a guarantee. They do not count as words."
        yield Points("Names of lists", (sentence,))
    if any(whole.get(name) for name in FOUND):
        sentence = (
            f"{found_names(whole)}. Found by {finders}, without a guarantee. Missed names are not counted. Found names do not "
            "count as words."
        )
        yield Points("Names found", (sentence,))
    stayed = [
        (of_what, percent_up(share))
        for name, of_what in OF_AUDIT.items()
        if (share := audited(whole, name).value) is not None
    ]
    if stayed:
        yield Points("Names that stayed", ("By the newest audit of the table (dptext audit).",))
        yield Table(("", "share unchanged in the table"), tuple(stayed))


def listed_names(counts: Figures, *, named: bool = False) -> str:
    """Count the words and phrases of lists of names that were masked, and those kept; metrics leave out zeros.

    `named` lists have pseudonyms, whose words are counted with what is masked.
    """
    masked, clear = (counts.get(name) or 0 for name in LISTED)
    return f"{masked:,.0f} masked{' or replaced by pseudonyms' if named else ''}, {clear:,.0f} kept in clear"


def found_names(counts: Figures) -> str:
    """Count the names of persons and places that the policy's search found; metrics leave out zeros."""
    persons, places = (counts.get(name) or 0 for name in FOUND)
    return f"{persons:,.0f} of persons, {places:,.0f} of places replaced"
