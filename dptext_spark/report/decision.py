"""The first two pages of a report, for the person who signs: verdict, meaning, evidence, a block to sign.

Nothing here weakens what the annex says: figures that depend on the private text are compared, and not shown.

The three questions that European guidance asks of anonymised data, each with a number and a sentence.

Singling out, linkability and inference: Article 29 Working Party, Opinion 05/2014. A page that may be shared has no figure of the
table: there singling out is answered by the law and public text alone.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from dptext_spark.config.requirements import BROKEN, HOLDS, NOT_MEASURED, UNDECIDED, audited
from dptext_spark.disclosure.disclosure import key_sentence
from dptext_spark.disclosure.facts import Figures
from dptext_spark.disclosure.released import columns_named
from dptext_spark.disclosure.statement import not_audited
from dptext_spark.guarantee import counted
from dptext_spark.model.certificate import NO_BOUND
from dptext_spark.report import names_section
from dptext_spark.report.blocks import Points, capital
from dptext_spark.report.facts import ReportFacts
from dptext_spark.report.requirements_section import LOOKS, Row, depending, first_rows
from dptext_spark.report.run_section import in_words, parts_in_clear
from dptext_spark.rounding import digits_up, exact, percent_up
from dptext_spark.runtime.display import differences
from dptext_spark.runtime.validation import Json
from dptext_spark.text.policy import OOV_MASK

# Who finds a row, by the figure of the audit; the greatest of them answers.
LINKS = {
    "linkage_top1": "somebody who holds all source texts and knows the settings",
    "linkage_source_top1": "somebody who holds the row's text and knows the settings",
    "linkage_tfidf_top1": "somebody who holds all source texts",
    "linkage_tfidf_source_top1": "somebody who holds the row's text",
    "linkage_10_words_top1": "somebody who knows ten of its original words",
    "linkage_5_words_top1": "somebody who knows five of its original words",
    "linkage_3_words_top1": "somebody who knows three of its original words",
    "linkage_author_top1": "somebody who holds another text of the same author",
}
AMONG = 10_000  # rows
MEASURED = "`dptext audit FILE` measures it."
RESTRICTED = "This figure depends on the private text. The restricted page shows it."


class Answer(NamedTuple):
    """A question with the number that answers it, and what that number is."""

    question: str
    figure: str
    sentence: str


def answers(facts: ReportFacts) -> tuple[Answer, ...]:
    """Answer the three questions."""
    return (
        Answer("Singling out", *_singled_out(facts)),
        Answer("Linkability", *_linked(facts)),
        Answer("Inference", *_inferred(facts.metrics)),
    )


def _singled_out(facts: ReportFacts) -> tuple[str, str]:
    told, words = "", None if facts.told is None else facts.told.words(AMONG)
    if words is not None:
        many = "one replacement distinguishes" if words == 1 else f"about {words:,} replacements distinguish"
        told = f"By the probabilities of the draws, {many} one row from {AMONG:,} others."
    if facts.metrics is None:
        return ("by the draws" if told else "restricted"), f"{told} {RESTRICTED}".strip()
    share = audited(facts.metrics, "singled_out").at_most
    if share is None:
        return "not measured", f"{MEASURED} {told}".strip()
    fit = f"of the released rows come down to fewer than ten of {_candidates(facts.metrics)} source rows, for a holder of these."
    return percent_up(share), f"{fit} {told}".strip()


def _linked(facts: ReportFacts) -> tuple[str, str]:
    key = facts.run.settings.row_key
    joined = f"Anyone with {key} of the source needs no guess. " if key else ""
    personal = f"{joined}The table stays personal data for anyone who holds the source."
    figures = facts.metrics
    if figures is None:
        return "restricted", f"{RESTRICTED} {personal}"
    shares = {name: share for name in LINKS if (share := audited(figures, name).at_most) is not None}
    if not shares:
        return "not measured", f"{MEASURED} {personal}"
    most = max(shares, key=lambda name: shares[name])
    guess, few = audited(figures, "linkage_guess").value, shares.get("linkage_3_words_top1")
    chance = "" if guess is None else f" A random guess finds {percent_up(guess)}."
    three = "" if few is None else f" Three known original words find {percent_up(few)}."
    rows = f"of the rows are found among {_candidates(figures)} by {LINKS[most]}.{three}{chance}"
    return percent_up(shares[most]), f"{rows} {personal}"


def _inferred(figures: Figures | None) -> tuple[str, str]:
    if figures is None:
        return "restricted", RESTRICTED
    share, gain = audited(figures, "guess_success").at_most, audited(figures, "attribute_gain").at_most
    attribute = "No attribute was tested (`dptext audit FILE --attribute COLUMN`)."
    if gain is not None:
        points = percent_up(max(0.0, gain)).removesuffix(" %")
        attribute = f"The tested attribute is read {points} points more often than by always naming its commonest value."
    if share is None:
        return "not measured", f"{MEASURED} {attribute}"
    return percent_up(share), (
        f"of the replaced words are guessed right by somebody who reads the table alone and knows the settings. {attribute}"
    )


def _candidates(figures: Figures) -> str:
    return f"{audited(figures, 'linkage_candidates').value or 0:,.0f}"


_BLANK = "to be filled in"
_NO_PERMISSION = "This is no permission to release: a requirement limits only its own figure."
_KEY = (
    "Anyone with the key can draw again and compare. Destroy a stored key once no further release has to repeat these "
    "replacements."
)
_NO_EXAMPLE = "There is no example: {}"
_ELSEWHERE = "Releases in another ledger (ledger.path, ledger.table) and releases of a copy of the input are not counted here."
_UNREAD = "the program's sentence is English, and this lexicon holds few of its words."
_TENS = 10.0  # an ε of a record from which on it protects little
_FACTOR = 1e6  # a factor that is larger is written as a power
_NAMES = 3  # of requirements that one thing helps
_COLUMNS = 8
_WARNINGS = 3  # the others are counted
EXAMPLE = (
    "A sentence of the program, and one draw of it by this run's model under a fresh key that nobody keeps. "
    "It is not a row of the table."
)
# What helps where a requirement is broken, by what the figure's name begins with; a setting that is so already does not.
_HELPS: tuple[tuple[tuple[str, ...], tuple[str, ...]], ...] = (
    (
        ("names_", "persons_", "locations_", "listed_"),
        (
            "policy.names finds more names (made for English; for other languages read listed_kept, not names_kept), and your "
            "own lists (policy.mask) mask known names",
        ),
    ),
    (
        ("bayes_",),
        (
            "a smaller ε (`dptext calibrate` finds the largest that keeps to a limit)",
            "policy.stop_words: draw",
        ),
    ),
    (
        ("context_", "frequency_", "masked_", "attribute_", "membership_"),
        (
            "policy.stop_words: draw",
            "a smaller ε, which helps little if texts repeat one another: the other texts then reveal this one",
        ),
    ),
    (("record_epsilon",), ("a smaller ε", "without a record_key, a budget for each record (budget.record)")),
    (("ledger_epsilon",), ("fewer releases: the sum spent on this input never falls",)),
    (
        ("original_share", "unchanged_", "changed_share"),
        ("a smaller ε", "policy.stop_words: draw", "policy.oov: mask"),
    ),
    (("oov_", "numbers_"), ("policy.oov: mask", "policy.numbers: mask", "a lexicon of the text's language")),
)
_VERDICTS = {
    HOLDS: (LOOKS[HOLDS], "Every requirement holds"),
    BROKEN: (LOOKS[BROKEN], "Broken: do not publish this table"),
    UNDECIDED: (LOOKS[NOT_MEASURED], "Not decided"),
}
_SET = re.compile(r"policy\.(\w+): (\w+)")


@dataclass(frozen=True)
class Decision:
    """The contents of the first two pages.

    Attributes:
        about: purpose, owner and what was released.
        look: how the verdict is coloured; `mark` and `words` say the same.
        mark: a sign.
        words: the verdict.
        why: a sentence.
        answers: to the three questions: whether a row can be singled out or linked, and what can be inferred.
        rows: the first of the requirements: the annex has each.
        warnings: the first of the statement; `more_warnings` says how many more there are, and where.
        more_warnings: as that; empty where there are none.
        released: what the answers themselves release; empty where that is nothing.
        meaning: three sentences.
        before: a public text, and `after` the result of one draw, in stretches (differs, text).
        after: as that.
        no_example: why there is none.
        rests: what is in clear, names, spent and left, what would change it.
        sign: (what, value) of the block to sign; an empty value is a line to write on.
    """

    about: tuple[tuple[str, str], ...]
    look: str
    mark: str
    words: str
    why: str
    answers: tuple[Answer, ...]
    rows: tuple[Row, ...]
    warnings: tuple[str, ...]
    more_warnings: str
    released: str
    meaning: tuple[str, ...]
    before: tuple[tuple[bool, str], ...]
    after: tuple[tuple[bool, str], ...]
    no_example: str
    rests: tuple[Points, ...]
    sign: tuple[tuple[str, str], ...]


def decision(facts: ReportFacts) -> Decision:
    """Write the first two pages."""
    before, after = facts.example or ("", "")
    # Of another language such an example would say that everything is masked.
    unread = 2 * after.count(OOV_MASK) > len(before.split())
    pieces = [] if facts.example is None or unread else list(differences(*facts.example))
    (look, words), (rows, beyond) = _VERDICTS[facts.verdict.standing], first_rows(facts.verdict.judged)
    warnings = facts.statement.under("Warnings")
    more, more_warnings = len(warnings) - _WARNINGS, ""
    if more > 0:
        more_warnings = (
            f"{more:,} more of the {len(warnings):,} warnings {'is' if more == 1 else 'are'} in the annex"
        )
    why_none = _UNREAD if unread else "which words are drawn depends on a run's texts or weights."
    return Decision(
        about=tuple(_about(facts)),
        look=look.style,
        mark=look.mark,
        words=words,
        why=_why(facts, beyond),
        answers=answers(facts),
        rows=rows,
        warnings=tuple(warnings[:_WARNINGS]),
        more_warnings=more_warnings,
        released=_released(facts),
        meaning=tuple(meaning(facts)),
        before=tuple((not same, text) for same, text, _ in pieces if text),
        after=tuple((not same, text) for same, _, text in pieces if text),
        no_example="" if pieces else _NO_EXAMPLE.format(facts.model_missing or why_none),
        rests=(
            Points("In clear", tuple(_clear(facts))),
            Points("Names and identifiers", tuple(_names(facts))),
            Points("Spent, and what is left", tuple(_spent(facts))),
            Points("Key", tuple(_key(str(facts.run.key_kind)))),
            Points("What would change it", tuple(_changes(facts))),
        ),
        sign=tuple(_sign(facts)),
    )


def joined(facts: ReportFacts) -> str:
    """Return the sentence that joins what the certificate says with what attacks find; empty where there are no attacks."""
    attacks = facts.word_attacks
    verdict = None if facts.certificate is None else facts.certificate.verdict
    about = "ε limits how much one output reveals, not how often a word is guessed."
    if verdict is not None:
        about = f"The certificate ({verdict}) covers how much one output reveals, not how often a word is guessed."
    if not attacks:
        return "" if verdict is None else f"{about} No attack was run here."
    strongest, worst = attacks[0], max(attack.worst_at_most for attack in attacks)
    share = f"{percent_up(strongest.at_most)} of the drawn words"
    guessed = f"{share} (a better one may guess more)" if strongest.open else f"at most {share}"
    if worst > strongest.at_most:
        guessed += f", and {percent_up(worst)} of the 1 % that are easiest to guess"
    if strongest.restricted:
        return f"{about} The strongest attack on this table that is shown here guesses {guessed}."
    return (
        f"{about} The strongest attack shown uses public counts or text, not this table. It guesses {guessed}. "
        f"{_context(facts)}"
    )


def _context(facts: ReportFacts) -> str:
    """Describe the success of an adversary who reads the words around a replacement: that depends on the table."""
    value = None if facts.metrics is None else audited(facts.metrics, "context_success").value
    if value is not None:
        return f"On this table, an adversary who reads the surrounding words guesses {percent_up(value)}."
    return (
        "On this table, an adversary who reads the surrounding words may guess many more (`dptext audit`: context_success, "
        "restricted)."
    )


def meaning(facts: ReportFacts) -> Iterator[str]:
    """Yield three sentences: what one word has, how often it is guessed all the same, and what has no guarantee."""
    promised, settings = facts.run.promised, facts.run.settings
    refuted = "refuted" in (promised.status, "" if facts.certificate is None else facts.certificate.verdict)
    if refuted or facts.run.key_kind == "insecure":
        yield "The guarantee does not hold: it was refuted, or the key was not secret. Nothing here is protected."
    elif facts.certificate is not None and facts.certificate.verdict == NO_BOUND:
        yield "The guarantee compares no two words. Each is alone on its output set, so no ε protects it."
    else:
        factor = math.exp(min(promised.epsilon, 700.0))
        times = (
            digits_up(factor, 3) if factor < _FACTOR else f"10^{math.ceil(promised.epsilon / math.log(10)):,}"
        )
        between = {
            "metric_dp": ", for each unit of distance between them",
            "epsilon_dp_within_group": ". No bound covers other pairs of words",
            "approx_dp": f", up to a probability δ = {exact(promised.delta)}",
        }.get(promised.kind, ", for any two words")
        sets = " (the words that a word can become)" if "set" in promised.compared else ""
        yield (
            f"The replacement of one drawn word shifts the odds between two {promised.compared}{sets} by a factor of at most "
            f"{times} (ε = {exact(promised.epsilon)}; {promised.status}){between}."
        )
    if facts.internal:
        yield "ε limits how much one output reveals about its word, not how often a row is found or a word is guessed."
    else:
        yield (
            joined(facts) or "How often a word is guessed was not measured here, because no attack was run."
        )
    record = (
        f"A record has ε = {exact(settings.budget.record)} at most (δ = {exact(settings.budget.delta)})."
        if settings.budget is not None
        else "Records have no ε, because all share the draws."
        if settings.consistency == "dataset"
        else f"The ε of a record{'' if settings.record_key else ' (here: a row)'} grows with the number of its "
        f"{counted(settings.consistency)}."
    )
    yield (
        f"No guarantee covers the parts in clear, or promises that every name and identifier was found. {record}"
    )


def _about(facts: ReportFacts) -> Iterator[tuple[str, str]]:
    run, approval = facts.run, facts.approval
    yield "purpose", approval.purpose or f"{_BLANK} (approval.purpose)"
    yield "owner", approval.owner or f"{_BLANK} (approval.owner)"
    yield "table", facts.target
    columns = run.settings.columns
    more = f" and {len(columns) - _COLUMNS:,} more columns" if len(columns) > _COLUMNS else ""
    yield (
        "made from",
        f"{run.input}: {', '.join(columns[:_COLUMNS])}{more}, by run {run.run_id} of {run.began}",
    )


def _why(facts: ReportFacts, beyond: int) -> str:
    """Give the reasons; `beyond`: how many broken requirements are named in the annex alone."""
    verdict = facts.verdict
    if verdict.standing == BROKEN:
        count = len(verdict.broken)
        why = [*verdict.against]
        if count:
            why.append("a requirement is not met" if count == 1 else f"{count:,} requirements are not met")
        also = ""
        if beyond:
            also = f" The annex alone names {beyond:,} of them (What was required)."
        return f"{capital('; '.join(why))}.{also}"
    if verdict.standing == HOLDS:
        return (
            f"All {len(verdict.judged):,} requirements of the settings are met. {_NO_PERMISSION}"
            if len(verdict.judged) > 1
            else f"The one requirement of the settings is met. {_NO_PERMISSION}"
        )
    if verdict.unfinished:
        return "The run has not written its account."
    if not verdict.judged:
        return "The settings have no requirement (require), so nothing judges this table."
    missing = len(verdict.not_measured)
    return (
        f"{missing:,} of {len(verdict.judged):,} requirements {'was' if missing == 1 else 'were'} not measured. Such a "
        "requirement neither holds nor is broken."
    )


def _released(facts: ReportFacts) -> str:
    bits = facts.verdict.bits
    if not bits or facts.internal:  # a restricted page is for those who have the figures
        return ""
    return (
        f"{capital(depending(bits))}. {'It' if bits == 1 else 'Each'} releases one bit of this text, and no guarantee covers "
        "that. A report with another limit releases another bit."
    )


def _clear(facts: ReportFacts) -> Iterator[str]:
    parts = parts_in_clear(facts)
    others = facts.run.settings.other_columns
    columns = "names these columns, and " if facts.run.settings.releases_other_columns else ""
    if others:
        more = f" and {len(others) - _COLUMNS:,} more" if len(others) > _COLUMNS else ""
        parts = [*parts[:-1], f"{columns_named(others[:_COLUMNS])}{more}"]
        columns = ""
    yield f"Unchanged from the source: {', '.join(parts)}. The annex (What is disclosed) {columns}says what each reveals."


def _names(facts: ReportFacts) -> Iterator[str]:
    settings = facts.run.settings
    looked = names_section.looked(settings.policy, bool(settings.lists))
    if looked:
        yield (
            f"The run looked for names by {looked}. No guarantee covers names: a missed name is treated like other words."
        )
    else:
        yield names_section.NO_SEARCH
    if facts.metrics is None:
        yield "The numbers of found and of unchanged names are restricted."
        return
    share = audited(facts.metrics, "names_kept").at_most
    if share is not None:
        yield f"Public lists find names in the source. The table has {percent_up(share)} of the words of these names unchanged."
    replaced = in_words(facts.metrics)
    if replaced:
        yield f"Rules found and replaced these identifiers: {replaced}. Missed ones are not counted."


def _key(kind: str) -> Iterator[str]:
    yield f"{key_sentence(kind).partition('. ')[0].removesuffix('.')}."
    if kind not in ("os", "insecure"):
        yield _KEY


def _spent(facts: ReportFacts) -> Iterator[str]:
    spent = facts.run.spent
    if spent is None:
        yield "The account of the run lacks this sum. A run of this version enters it in a ledger."
        return
    yield spent.sentence or "Nothing was spent."
    worst = max((column.total for column in spent.columns), default=0.0)
    if spent.limit is None:
        yield (
            f"There is no limit (ledger.limit), so nothing stops further releases of this input. {_ELSEWHERE}"
        )
    elif spent.left is not None:
        yield f"The limit is ε = {exact(spent.limit)}, and ε = {exact(spent.left)} is left. {_ELSEWHERE}"
    if math.isinf(worst):
        yield "The sum has no ε: a guarantee was refuted, or a key was not secret."
    if spent.record is not None and spent.record.without and not spent.record.times:
        yield f"On one record: {spent.record}."
    elif spent.record is not None and spent.record.times:
        is_required = any(entry.requirement.startswith("record_epsilon") for entry in facts.verdict.judged)
        sums = " record_epsilon is the plain sum." if is_required else ""
        weak = " An ε in the tens protects little by itself." if spent.record.epsilon >= _TENS else ""
        yield f"On one record: {spent.record}. The number of its words is rounded up, so this page may show it.{sums}{weak}"


def _changes(facts: ReportFacts) -> Iterator[str]:
    verdict, expires = facts.verdict, facts.approval.expires
    policy = facts.run.settings.values.get("policy") or {}
    helped: dict[str, list[str]] = {}
    for requirement in verdict.broken:
        helped.setdefault(_help(requirement, policy), []).append(requirement)
    for cure, requirements in helped.items():
        yield f"{_some(requirements)} (broken): {cure}. Then run again."
    audits = verdict.to_audit
    unaudited = not_audited(facts.run.settings.row_key)
    if audits and unaudited:
        yield f"Not measured: {_some(audits)}. No audit can measure it: {unaudited}. Then run again."
    elif audits:
        yield (
            f"Not measured: {_some(audits)}. Run `dptext audit FILE` with the settings, then make this report again. Some "
            "figures need its options for labels, lists of names or models."
        )
    others = [name for name in verdict.not_measured if name not in audits]
    if others:
        yield f"Not measured: {_some(others)}. This run has no such figure."
    if not verdict.judged:
        yield "Set requirements (require), and make this report again."
    yield "A further release of the same input adds its ε to the sum, and needs a report of its own."
    if expires is not None:
        yield f"The approval ends with {expires}."


def _some(requirements: Sequence[str]) -> str:
    """Return the first names, and how many more there are: the first page or the annex has them."""
    more = len(requirements) - _NAMES
    return "; ".join(requirements[:_NAMES]) + (f" and {more:,} more" if more > 0 else "")


def _help(requirement: str, policy: Mapping[str, Json]) -> str:
    """Return the cures, without those that the settings have applied already."""
    name = requirement.split()[0]
    known = next((cures for starts, cures in _HELPS if name.startswith(starts)), ())
    left = [
        cure for cure in known if not ((match := _SET.fullmatch(cure)) and policy.get(match[1]) == match[2])
    ]
    if not left:
        return "other settings, or another limit with a reason"
    return ", or ".join([", ".join(left[:-1]), left[-1]] if left[1:] else left)


def _sign(facts: ReportFacts) -> Iterator[tuple[str, str]]:
    yield "approver", ""
    yield "date", ""
    yield "valid until", str(facts.approval.expires or "")
    yield "decision", "☐ release   ☐ do not release"
    yield "conditions", ""
    yield "signature", ""
