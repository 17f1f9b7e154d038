"""The disclosure statement of a run: protection, releases in clear, limits of the protection, and assumptions.

Every sentence follows from the facts of the run; a fact that is not known is said not to be known.

For a stream it also describes the disclosure by a table that is sanitized in parts as its source grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure import importance
from dptext_spark.disclosure.facts import RunFacts
from dptext_spark.disclosure.released import (
    names_excepted,
    names_not_protected,
    names_warned,
    not_sensitive,
    provider_based,
    released,
    rule_based,
)
from dptext_spark.disclosure.statement import ASSUMED, CLEAR, PROTECTED, UNPROTECTED, Statement
from dptext_spark.guarantee import Guarantee, counted
from dptext_spark.lexicon.lexicon import PACKAGED
from dptext_spark.model.record import RARE, WEAK
from dptext_spark.rounding import digits_up, exact, percent_up
from dptext_spark.text.policy import OOV_MASK

MANY_ALONE = 0.5  # share of words alone on their output set from which a warning is due
LARGE = 10.0  # an epsilon from which one is due: a factor of 22,026
# Measured by the exact law, with fresh draws for each row, by an adversary who holds all 6,920 texts.
LINKAGE = (
    "Linkage: anyone who holds the source text of a row can link the released row to it. All words of a row together identify "
    "it, and no setting prevents that. The release is pseudonymised, not anonymous. An adversary with all 6,920 training "
    "sentences of SST-2 links 99.4 % of them under conf/balanced.yaml, 82.6 % under conf/strict.yaml, and 0.014 % by guessing."
)
_CUTS = ("limit", "vocabulary")  # how many words of a lexicon file are used, or which

Sentences = Iterator[str]


def disclosure(facts: RunFacts) -> Statement:
    """Write the statement of a run, of a stream, or of a run that is only planned."""
    writers: tuple[tuple[str, Callable[[RunFacts], Sentences]], ...] = (
        ("Warnings", _warnings),
        (PROTECTED, _protected),
        (CLEAR, released),
        (UNPROTECTED, _unprotected),
        (ASSUMED, assumed),
        ("Across runs", across_runs),
        ("Stream", streamed),
    )
    written = ((heading, tuple(writer(facts))) for heading, writer in writers)
    return Statement(tuple((heading, sentences) for heading, sentences in written if sentences))


MOSTLY_UNKNOWN = {
    "mask": f"Then {OOV_MASK} replaces nearly all words.",
    "draw": "Then uniform words of the lexicon replace nearly all words.",
    "keep": "Then nearly all words are RELEASED IN CLEAR.",
}


def _warnings(facts: RunFacts) -> Sentences:
    if facts.key_kind == "insecure":
        yield (
            "INSECURE KEY: the draws come from a seed that anyone can try. Nothing is protected. Use this output for tests only."
        )
    if facts.is_refuted:
        yield "THE GUARANTEE BELOW DOES NOT HOLD: a check against the sampled law refuted it."
    if facts.is_unbounded:
        yield (
            "THE GUARANTEE BELOW COMPARES NO TWO WORDS: each word is alone on its output set, so no ε protects it. Choose "
            "another mechanism.mapping or another mechanism."
        )
    yield from _weak(facts)
    yield from importance.warned(facts)
    yield from names_warned(facts)
    if facts.config.hides_where:
        yield (
            "input.where reads a column that is not released as it is. A record in the output therefore reveals something "
            "about this column. The condition is not shown here, but others may know it."
        )
    if facts.policy.oov == "keep":
        yield (
            "UNKNOWN WORDS ARE RELEASED IN CLEAR (policy.oov: keep). A lexicon lacks names, account words and misspellings. "
            "The most private words of the text have no protection at all."
        )
    if facts.config.allow_unknown:
        yield (
            "MOST WORDS MAY BE UNKNOWN (policy.allow_unknown: true): no sample of the texts was checked. Their language may be "
            f"missing from the lexicon. {MOSTLY_UNKNOWN[facts.policy.oov]} The guarantee covers only the few drawn words."
        )
    if facts.policy.numbers == "keep":
        yield (
            "NUMBERS ARE RELEASED IN CLEAR (policy.numbers: keep): telephone, account and order numbers have no protection at "
            "all."
        )
    if facts.consistency == "dataset":
        yield (
            "Dataset level is a substitution cipher: a word has one replacement everywhere. At any ε, the frequencies of "
            "replacements reveal frequent words."
        )
    if facts.second_release:
        yield (
            "The records of an unfinished run were released a second time, with other draws. Their ε counts twice."
        )
    if facts.corrupt_records:
        yield (
            f"RECORDS THAT DO NOT FIT THE INPUT'S COLUMNS, or end inside a quote: {facts.corrupt_records:,}. The input option "
            "mode: PERMISSIVE accepts them, and each is released as far as it goes. A torn line may put text into another "
            "column than its own, and release it there."
        )
    yield from _many(facts)
    if facts.ledger is not None:
        yield from facts.ledger.warnings


def _many(facts: RunFacts) -> Sentences:
    """Warn where the δ of a record is not small beside the number of records."""
    account, rows = facts.record, facts.rows
    if account is None or account.why or account.levels > 1 or not rows or facts.is_refuted:
        return
    if account.times(rows) > RARE:
        yield (
            f"The δ of a record's ε is {exact(account.delta)}. Of {rows:,} records, about "
            f"{digits_up(account.times(rows), 2)} may lose more than that ε."
        )


def _weak(facts: RunFacts) -> Sentences:
    """Warn where the guarantee holds but protects next to nothing."""
    guarantee, alone = facts.guarantee, facts.mapping.alone_share or 0.0
    if alone > MANY_ALONE and not facts.is_unbounded:
        yield (
            f"{percent_up(alone)} OF THE WORDS ARE ALONE ON THEIR OUTPUT SET: the guarantee compares them with no other word, "
            "and does not protect them."
        )
    if guarantee.kind != "metric_dp" and guarantee.epsilon >= LARGE:
        yield (
            f"ε = {exact(guarantee.epsilon)} is very large. The guarantee holds, but lets an output all but name the word. It "
            "protects next to nothing."
        )


def _protected(facts: RunFacts) -> Sentences:
    guarantee, law, policy = facts.guarantee, facts.mapping, facts.policy
    words = "the words of the lexicon" if law.words is None else f"the {law.words:,} words of the lexicon"
    if guarantee.compared == "sensitive words" and law.sensitive is not None:
        words = f"the {law.sensitive:,} sensitive words among {words}"
    yield f"Drawn words in {', '.join(facts.config.columns)}: {words}."
    excepted = ["stop words"] if policy.stop_words == "keep" else []
    excepted += names_excepted(facts)
    if excepted:
        yield f"Words of the lexicon that are not drawn: {', '.join(excepted)}."
    if policy.tokenizer == "words":
        yield "A compound that the lexicon lacks counts as its parts."
    yield from importance.chosen(facts)
    yield from _made_with(facts.config)
    yield f"{guarantee.sentence} [{guarantee.status}; unit: {guarantee.unit}]"
    if facts.certificate is not None:
        yield f"Certificate. {facts.certificate.sentence}"
    epsilon = guarantee.epsilon
    if guarantee.kind not in ("metric_dp", "approx_dp"):
        times = digits_up(math.exp(epsilon), 4) if epsilon < 700 else f"10^{epsilon / math.log(10):,.0f}"
        yield (
            f"In numbers: of two compared words, no output is more than e^ε = {times} times as likely for one as for the "
            "other. A smaller mechanism.epsilon protects more and changes more of the text."
        )
    yield from _composed(facts)
    yield from _remapped(facts)
    if policy.oov == "draw":
        drawn = "An unknown word becomes a uniform word of the lexicon."
        if law.remap is not None:
            drawn = "An unknown word draws a uniform word of the lexicon. The remap replaces it, so the result is not uniform."
        shown = (
            "about the unknown word except its case" if policy.case == "carry" else "about the unknown word"
        )
        yield f"{drawn} The replacement reveals nothing {shown}."
    if policy.numbers == "random":
        yield (
            "Each digit of a number becomes a uniform digit of the same script. The new digits reveal nothing about the old "
            "ones except their number."
        )


def _remapped(facts: RunFacts) -> Sentences:
    """Describe the effect of a remap on the draws."""
    remap, levels = facts.mapping.remap, importance.levels_of(facts.selection)
    if remap is None:
        return
    yield (
        f"Bayes remap: a fixed, public table replaces each draw before the release. The prior of the table is {remap.prior}. "
        f"The table replaces {remap.replaced:,} of the {remap.outputs_before:,} words that can be drawn, and {remap.outputs:,} "
        "words can be released. Draws are calibrated and bounded before the remap. The table depends on no text, so it reveals "
        "nothing more."
    )
    if levels > 1:
        yield f"One table serves all {levels} levels of importance."
    yield (
        "A word may stay unchanged more often than without the remap, but nobody learns more. The table names the word nearest "
        "to all possible sources of the draw, weighted by how common they are. An adversary would guess the same. Judge by how "
        "often words are guessed, not by how many stay. Another prior gives another table, and a release with it is a second "
        "release."
    )


def _composed(facts: RunFacts) -> Sentences:
    """Compose the draws of a record, by the guarantee's kind (concepts/mechanisms, Levels)."""
    promised, level, levels = facts.guarantee, facts.consistency, importance.levels_of(facts.selection)
    if level == "dataset":
        other = "one" if promised.adds_up else "a bound by distances"
        yield (
            "A record has no ε of its own at dataset level, because all records share the draws. With consistency: token or "
            f"record it has {other}."
        )
        return
    words = counted(level)
    if facts.budget is not None:
        yield f"Over a record ε is bounded: {promised.of_record(level, budget=str(facts.budget))}."
    elif promised.adds_up:
        epsilon = "the ε of its level" if levels > 1 else exact(promised.epsilon)
        yield f"Over a record ε adds up: {epsilon} for each of its {words}.{_added_delta(promised, levels)}"
    else:
        yield f"Over a record the bounds of its draws add up: {promised.of_record(level, levels)}. A record has no single ε."
        if facts.mapping.rounding:
            yield "The bound of a record grows by the rounding of each draw."
    yield f"The bound of a record holds against {promised.other_records}."
    if facts.selection is not None:
        yield "The same words must be chosen in both records."
    if level == "token":
        yield "With consistency: record, equal words of a record count once."
    yield from _of_a_record(facts)
    if promised.adds_up:
        yield "The number of drawn words depends on the text. Its figures are in the restricted metrics."


def _added_delta(promised: Guarantee, levels: int) -> str:
    if promised.kind != "approx_dp":
        return ""
    return (
        " The δ of its level adds up likewise."
        if levels > 1
        else f" δ = {exact(promised.delta)} adds up likewise."
    )


def _of_a_record(facts: RunFacts) -> Sentences:
    """State a record's ε up to δ, the compared records, and the meaning of δ (concepts/mechanisms, Composition over a record)."""
    account = facts.record
    if account is None or facts.is_refuted or not facts.guarantee.adds_up:
        if account is not None and account.loss.why:
            yield account.loss.why
        return
    yield account.stated
    if account.why or (account.levels > 1 and account.budget is None):
        return
    yield account.unit
    yield f"{account.meaning(facts.rows)} {WEAK}"


def _repeated(facts: RunFacts) -> Sentences:
    """Describe a word that occurs several times in a record, where each occurrence is drawn by itself."""
    if facts.consistency != "token":
        return
    spent = {"metric_dp": "ε for each unit of distance", "approx_dp": "ε and δ"}.get(
        facts.guarantee.kind, "ε"
    )
    if importance.in_clear(facts.selection):
        yield (
            "Repeated words: importance may choose some occurrences of a word and leave others in clear. The draws of the "
            "chosen ones add up, and an occurrence in clear reveals their word. With consistency: record, all occurrences are "
            "drawn or none."
        )
    elif importance.levels_of(facts.selection) > 1:
        yield (
            "Repeated words: a word that occurs n times in a record is drawn n times, each time at the level of its place. "
            f"Together the draws spend the sum of {spent} over these levels. With consistency: record, the word is drawn once."
        )
    else:
        yield (
            "Repeated words: a word that occurs n times in a record is drawn n times. Together the draws spend n times "
            f"{spent}. With consistency: record, the word is drawn once."
        )


def _unprotected(facts: RunFacts) -> Sentences:
    policy, alone = facts.policy, facts.mapping.alone_share or 0.0
    if facts.guarantee.kind == "epsilon_dp_within_group":
        yield (
            "Words of different output sets: the guarantee promises nothing for such a pair. Larger sets (mechanism.k), or a "
            "mechanism that compares any two words (`dptext mechanisms`), change that."
        )
    if facts.guarantee.compared == "sensitive words":
        yield (
            "Words that are not sensitive: the guarantee compares sensitive words with each other alone. "
            f"{not_sensitive(facts.mapping)} A greater mechanism.p releases fewer. mechanism.p: 1 or mechanism.sensitive: none "
            "releases none."
        )
    if alone:
        yield (
            f"{percent_up(alone)} of the lexicon's words share their output set with no other word. The guarantee compares "
            "them with none. They may be more frequent in a text than in the lexicon. Another mechanism.mapping changes that."
        )
    if policy.stop_words == "keep":
        yield (
            "Stop words: no bound covers a kept word against a drawn word. A released word that is not a stop word shows that "
            "the source had no stop word there. policy.stop_words: draw avoids both."
        )
    yield from names_not_protected(facts)
    yield from importance.choice(facts)
    yield from rule_based(policy)
    yield from provider_based(facts)
    yield (
        "Sense of a text: replacements are similar to the words they replace, and topic, tone and word order remain. A fact "
        "that several words express together is protected only as far as the bounds of their draws add up. A smaller "
        "mechanism.epsilon leaves less of the sense."
    )
    yield LINKAGE
    yield (
        "Authorship: length, punctuation, kept words and their order form a style, and style can identify an author. The parts "
        "in clear reveal it. No setting protects it."
    )
    yield (
        "Presence: the table shows that a record is in it. Other columns or other data may reveal more about the same record. "
        "No setting protects this. Only a record that is left out before the run is absent."
    )
    yield from _repeated(facts)


def _made_with(config: RunConfig) -> Sentences:
    """Name the mechanism with every parameter, and the lexicon."""
    mechanism = config.mechanism.as_dict()
    parameters = ", ".join(f"{name} {_value(value)}" for name, value in mechanism.items() if name != "name")
    yield f"Mechanism: {mechanism['name']} ({parameters})."
    lexicons = []
    for lexicon in (config.lexicon, *config.lexicon.more):
        cuts = [f"{name} {_value(cut)}" for name in _CUTS if (cut := getattr(lexicon, name))]
        if lexicon.source == PACKAGED and config.lexicon_version is not None:
            cuts.insert(0, f"version {config.lexicon_version}")
        lexicons.append(f"{lexicon.source} ({', '.join(cuts)})" if cuts else lexicon.source)
    yield f"Lexicon: {', '.join(lexicons)}."
    if config.lexicon.exclude is not None:
        yield f"Words that are left out of the lexicon: those of the list {config.lexicon.exclude}."


def _value(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,}"
    return "none" if value is None else exact(value) if isinstance(value, float) else str(value)


CHANGES = {
    "refuse": "Updates and deletes in the source stop the stream, so none is left out unnoticed (stream.changes: refuse).",
    "ignore": (
        "UPDATES AND DELETES IN THE SOURCE ARE NOT CARRIED OVER (stream.changes: ignore). A released row stays in the table "
        "after the source changed or deleted it. Rows that such a commit adds (a MERGE) are left out."
    ),
}
DUPLICATES = {
    "refuse": (
        "A row key that is already in the table or in the same micro-batch stops the stream (stream.duplicates: refuse)."
    ),
    "drop": (
        "A row is left out if its key is already in the table or in the same micro-batch (stream.duplicates: drop). A missing "
        "row reveals that its key came again."
    ),
    "accept": (
        "A ROW KEY MAY COME AGAIN (stream.duplicates: accept). Each time is one more release of its record. The bounds of "
        "different draws add up. With stream.duplicates: drop there is one release."
    ),
}


def streamed(facts: RunFacts) -> Iterator[str]:
    """Write the facts on a stream as a whole, beyond each micro-batch; nothing for a run that is not a stream."""
    config, level = facts.config, facts.consistency
    if not config.is_stream:
        return
    yield (
        f"The table grows by micro-batches (mode: {config.mode}). Its history and files show when each was written, and which "
        "records came together. No setting hides that. Rarer and larger micro-batches reveal less."
    )
    if level == "token":
        yield (
            "A draw belongs to its micro-batch. A row key that comes again in a later one is drawn anew. A micro-batch that is "
            "repeated after a failure draws the same again."
        )
    else:
        yield f"Equal words of a {level} have equal replacements in all micro-batches, as long as key and model stay the same."
    if config.record_key and level != "dataset":
        yield "A record may have rows in several micro-batches. The figures of a micro-batch count only its own rows."
    yield CHANGES[config.stream.changes]
    yield DUPLICATES[config.stream.duplicates]


def assumed(facts: RunFacts) -> Iterator[str]:
    """Write what must be true for the guarantee to hold."""
    if facts.key_kind == "insecure":
        yield (
            "The guarantee does not hold: the AES-256 key of the draws is not secret, so anyone can test candidate words."
        )
    else:
        yield (
            "The draws come from AES-256 under a secret key. The guarantee holds against anyone who cannot break AES-256, and "
            "only while the key is secret. A holder of the key can test candidate words."
        )
        yield key_sentence(str(facts.key_kind))
    yield (
        "The lexicon, its order, the stop-word list and all settings are public, and not made from the private text. Count any "
        "that you make from the text as a release of its own."
    )
    if facts.config.mechanism.reads_context:
        yield (
            "The counts of word pairs are public, too, and part of the model. Draws follow the previous word by these counts. "
            "The guarantee holds for any counts, but counts of the private text would be a release of their own."
        )
    if facts.config.lexicon.prior is not None:
        yield (
            f"The text {facts.config.lexicon.prior.corpus!r} is taken as public. Its words and pairs were counted for the "
            "prior. With lexicon.prior: null none is read."
        )
    yield (
        f"The guarantee compares {facts.guarantee.unit}: not a person, and not a whole record. The setting consistency decides "
        "the unit."
    )
    yield from _identified(facts)
    if facts.config.record_key:
        yield f"A record is all rows with the same {facts.config.record_key!r}."
    else:
        yield "A record is a row. With record_key it is all rows with the same key."


# The first sentence of each is also the first page's.
KEYS = {
    "os": (
        "The key is 32 bytes from the operating system, stays in memory and is gone when the run ends. With key.file, a file "
        "keeps it."
    ),
    "file": (
        "The key comes from a file and outlives the run: it is as secret as the text. Without key.file it is gone when the run "
        "ends."
    ),
    "env": (
        "The key comes from an environment variable of the driver and outlives the run wherever that is stored: it is as "
        "secret as the text. Without key.env it is gone when the run ends."
    ),
    "secret": (
        "The key comes from the platform's secrets and outlives the run: any reader of that secret can test candidate words. "
        "Without key.secret it is gone when the run ends."
    ),
    "insecure": "The key is not secret: anyone with this program can draw again, and nothing is protected.",
    "given": "The calling program gave the key: it is as secret as the text. Without it, the run makes its own.",
}


def key_sentence(kind: str) -> str:
    """Describe the place of a run's key, and when it is gone."""
    return KEYS.get(kind, "The kind of the key is not known.")


SHARED = {
    "token": "No two rows share draws.",
    "record": "Equal words share a draw within a record, which may have several rows.",
    "dataset": "Equal words share a draw in all rows.",
}


def _identified(facts: RunFacts) -> Iterator[str]:
    """Write how rows are identified, and which rows share draws."""
    identity = facts.identity or "not known before the run"
    if identity == "row_key":
        yield f"The unique column {facts.config.row_key!r} identifies a row. {SHARED[facts.consistency]}"
    elif identity == "file_row":
        yield "Its file and its place there identify a row, so a retried task draws the same noise again."
    elif identity.startswith("ordinal"):
        yield (
            "Its place in the scan identifies a row. A retried task draws the same noise again as long as the input's files "
            "and their partitioning stay the same. With a row_key they may change."
        )
    else:
        yield f"Identity of a row: {identity}."
    if facts.config.row_key is None:
        yield (
            "The table cannot be audited against its source afterwards (row_key: {none: accept}): no column joins their rows. "
            "With a unique column as row_key it can."
        )


def across_runs(facts: RunFacts) -> Iterator[str]:
    """Write what other releases of the same records add."""
    spending = facts.ledger
    if spending is None:
        yield (
            "Every further release of the same records with new draws adds its bound to this one. A run counts the releases in "
            "its ledger, and its statement has their sum."
        )
    else:
        yield spending.sentence
        yield from spending.notes
    if facts.consistency == "token":
        yield (
            "At token level a new run id gives new draws, whatever the key. With consistency: record or dataset and one "
            "key.file, replacements stay the same."
        )
    elif facts.key_kind == "os":
        yield "The key is gone when the run ends, so every further run draws anew. With key.file, replacements stay the same."
    else:
        yield (
            "The same key, lexicon, mechanism and policy give the same replacements again. For an unchanged record this "
            "reveals nothing new. For a changed record it reveals which words changed."
        )
    releases = facts.releases_in_history
    if releases is None:
        yield "The number of releases in the target's history is not known before the run."
    elif releases > 1:
        yield (
            f"The target's history holds {releases} releases of this tool. Old versions, and files that were not vacuumed, can "
            "be read. Where they hold the same records with other draws, the bounds add up. VACUUM removes old files."
        )
    else:
        yield "The target's history holds this release only."
