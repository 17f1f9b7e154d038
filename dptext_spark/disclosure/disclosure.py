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
    UNKNOWN_BECOME,
    names_excepted,
    names_not_protected,
    names_warned,
    provider_based,
    released,
    rule_based,
)
from dptext_spark.disclosure.statement import Statement, not_audited
from dptext_spark.guarantee import counted
from dptext_spark.lexicon.lexicon import PACKAGED
from dptext_spark.model.record import RARE, WEAK
from dptext_spark.rounding import digits_up, exact, percent_up

MANY_ALONE = 0.5  # share of words alone on their output set from which a warning is due
LARGE = 10.0  # an epsilon from which one is due: a factor of 22,026
# Measured by the exact law, with fresh draws for each row, by an adversary who holds all 6,920 texts.
LINKAGE = (
    "Which text a row is of: whoever has the text can link the released row to it. All words of a row together tell it from "
    "others, and no setting prevents that. The release is pseudonymised, not anonymous. Of the 6,920 training sentences of SST-2 "
    "an adversary who holds all of them links 99.4 % under conf/balanced.yaml, 82.6 % under conf/strict.yaml and 0.014 % by "
    "guessing."
)
_CUTS = ("limit", "vocabulary")  # what a lexicon file was cut down to

Sentences = Iterator[str]


def disclosure(facts: RunFacts) -> Statement:
    """Write the statement of a run, of a stream, or of a run that is only planned."""
    writers: tuple[tuple[str, Callable[[RunFacts], Sentences]], ...] = (
        ("Warnings", _warnings),
        ("What is protected", _protected),
        ("What is released in clear", released),
        ("What is not protected", _unprotected),
        ("What is assumed", assumed),
        ("Across runs", across_runs),
        ("In a stream", streamed),
    )
    written = ((heading, tuple(writer(facts))) for heading, writer in writers)
    return Statement(tuple((heading, sentences) for heading, sentences in written if sentences))


def _warnings(facts: RunFacts) -> Sentences:
    if facts.key_kind == "insecure":
        yield (
            "INSECURE KEY: the draws come from a seed that anybody can try. Nothing is protected; this output is for tests only."
        )
    if facts.is_refuted:
        yield "THE GUARANTEE BELOW DOES NOT HOLD: it was checked against the law that is sampled, and refuted."
    if facts.is_unbounded:
        yield (
            "THE GUARANTEE BELOW COMPARES NO TWO WORDS: each word is alone on its output set, so that no ε protects it. Another "
            "mechanism.mapping, or another mechanism, bounds something."
        )
    yield from _weak(facts)
    yield from importance.warned(facts)
    yield from names_warned(facts)
    if facts.config.hides_where:
        yield (
            "input.where reads a column that is not released as it is: that a record is in the output tells what that column "
            "held. The condition is not shown here, and may be known to others."
        )
    if facts.policy.oov == "keep":
        yield (
            "UNKNOWN WORDS ARE RELEASED IN CLEAR (policy.oov: keep). Names, account words and misspellings are the words that a "
            "lexicon lacks: the most private words of the text have no protection at all."
        )
    if facts.config.allow_unknown:
        yield (
            "MOST WORDS MAY BE UNKNOWN (policy.allow_unknown: true): no sample of the texts was looked at, and they may be in a "
            f"language that the lexicon does not hold. Nearly all words then {UNKNOWN_BECOME[facts.policy.oov]}, and the "
            "guarantee is of the few that are drawn."
        )
    if facts.policy.numbers == "keep":
        yield (
            "NUMBERS ARE RELEASED IN CLEAR (policy.numbers: keep): telephone, account and order numbers have no protection at "
            "all."
        )
    if facts.consistency == "dataset":
        yield (
            "Dataset level is a substitution cipher: a word has one replacement everywhere, so counting how often replacements "
            "occur tells frequent words apart, whatever ε is."
        )
    if facts.second_release:
        yield (
            "The records of an unfinished run were released a second time, with other draws: their ε counts twice."
        )
    if facts.corrupt_records:
        records = "RECORD DOES" if facts.corrupt_records == 1 else "RECORDS DO"
        yield (
            f"{facts.corrupt_records:,} {records} NOT FIT THE INPUT'S COLUMNS, or end inside a quote (input.options: mode "
            "PERMISSIVE accepts them), and went on as far as they do: where a line is torn, text may stand in another column "
            "than its own, and be released with it."
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
            f"The δ of a record's ε is {exact(account.delta)}, and there are {rows:,} records: about "
            f"{digits_up(account.times(rows), 2)} of them may fare worse than that ε says."
        )


def _weak(facts: RunFacts) -> Sentences:
    """Warn where the guarantee holds and says next to nothing."""
    guarantee, alone = facts.guarantee, facts.mapping.alone_share or 0.0
    if alone > MANY_ALONE and not facts.is_unbounded:
        yield (
            f"{percent_up(alone)} OF THE WORDS ARE ALONE ON THEIR OUTPUT SET: the guarantee compares them with no other word, "
            "and says nothing of them."
        )
    if guarantee.kind != "metric_dp" and guarantee.epsilon >= LARGE:
        yield (
            f"ε = {exact(guarantee.epsilon)} is so large that the guarantee allows an output to all but name the word: it "
            "holds, and protects next to nothing."
        )


def _protected(facts: RunFacts) -> Sentences:
    guarantee, law, policy = facts.guarantee, facts.mapping, facts.policy
    columns = ", ".join(facts.config.columns)
    words = "the words of the lexicon" if law.words is None else f"the {law.words:,} words of the lexicon"
    if guarantee.compared == "sensitive words" and law.sensitive is not None:
        words = f"the {law.sensitive:,} sensitive words among {words}"
    keeps_stop_words = policy.stop_words == "keep"
    apart = [*(["stop words"] if keeps_stop_words else []), *names_excepted(facts)]
    stop = ("" if keeps_stop_words else ", stop words included") + (
        f", {' and '.join(apart)} excepted" if apart else ""
    )
    yield f"Drawn words in {columns}: {words}{stop}."
    if policy.tokenizer == "words":
        yield "A compound that the lexicon lacks counts as the words that it is made of."
    yield from importance.chosen(facts)
    yield from _made_with(facts.config)
    yield f"{guarantee.sentence} [{guarantee.status}; unit: {guarantee.unit}]"
    if facts.certificate is not None:
        yield f"Certificate. {facts.certificate.sentence}"
    epsilon = guarantee.epsilon
    if guarantee.kind not in ("metric_dp", "approx_dp"):
        times = digits_up(math.exp(epsilon), 4) if epsilon < 700 else f"10^{epsilon / math.log(10):,.0f}"
        yield (
            f"In numbers: of two words that the guarantee compares, no output is more than e^ε = "
            f"{times} times as likely under one as under the other. A smaller mechanism.epsilon protects more "
            "and changes more of the text."
        )
    yield from _composed(facts)
    yield from _remapped(facts)
    if policy.oov == "draw":
        drawn = "become a uniform word of the lexicon"
        if law.remap is not None:
            drawn = "draw a uniform word of the lexicon, which the same table replaces, so that what comes out is not uniform"
        yield (
            f"Unknown words {drawn}: the replacement tells nothing of the word "
            f"itself{' but its case' if policy.case == 'carry' else ''}."
        )
    if policy.numbers == "random":
        yield (
            "Each digit of a number becomes a uniform digit of the same script: the new digits tell nothing of the old ones, "
            "but how many they are."
        )


def _remapped(facts: RunFacts) -> Sentences:
    """Describe the effect of a remap on the draws."""
    remap = facts.mapping.remap
    if remap is None:
        return
    levels = importance.levels_of(facts.selection)
    several = f", one for all {levels} levels" if levels > 1 else ""
    yield (
        f"What is released is not the draw but the word that a fixed, public table puts in its place (Bayes remap{several}; "
        f"chosen by the prior: {remap.prior}). Of the {remap.outputs_before:,} words that can be drawn it replaces "
        f"{remap.replaced:,}; {remap.outputs:,} words can come out. Draws are calibrated and bounded before the remap, and a "
        "table that depends on no text tells nothing more."
    )
    yield (
        "A word may stay as it is more often than without the remap, though nobody learns more: the table names the word that "
        "is nearest to all that a draw may have come from, the commoner the nearer, as who guesses would. How often words are "
        "guessed is the figure to look at, not how many stay. Another prior gives another table, and releasing by it is a second "
        "release."
    )


def _composed(facts: RunFacts) -> Sentences:
    """Compose the draws of a record, by the guarantee's kind (concepts/mechanisms, Levels)."""
    promised, level, levels = facts.guarantee, facts.consistency, importance.levels_of(facts.selection)
    if level == "dataset":
        other = "one" if promised.adds_up else "a bound by distances"
        yield (
            "A record has no ε of its own at dataset level: all records share the draws. With consistency: token or record "
            f"it has {other}."
        )
        return
    against = promised.other_records
    if facts.selection is not None:
        against = f"{against}, in which the same words are chosen"
    if facts.budget is not None:
        bound = promised.of_record(level, budget=str(facts.budget))
        yield f"Over a record ε is bounded: {bound}; against {against}."
    elif promised.adds_up:
        added = "the ε of its level" if levels > 1 else exact(promised.epsilon)
        if promised.kind == "approx_dp":
            added += ", and the δ of its level," if levels > 1 else f", and δ = {exact(promised.delta)},"
        yield f"Over a record ε adds up: {added} for each of its {counted(level)}, against {against}."
    else:
        rounding = " (and the rounding of each draw)" if facts.mapping.rounding else ""
        yield (
            f"Over a record the bounds of its draws add up: {promised.of_record(level, levels)}{rounding}, against {against}; no "
            "single number stands for a record."
        )
    if level == "token":
        yield "With consistency: record, equal words of a record would count once."
    yield from _of_a_record(facts)
    if promised.adds_up:
        yield "How many words were drawn in this run depends on the text: the figures are in the restricted metrics."


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
            "A word that occurs several times in a record: where importance chooses it, it is drawn each time, and these draws "
            "add up; where it does not, it stands in clear, and that tells what the drawn ones were. With consistency: record, "
            "a word is drawn wherever it stands in the record, or nowhere."
        )
    elif importance.levels_of(facts.selection) > 1:
        yield (
            "A word that occurs n times in a record is drawn n times, each time at the level of its place: together the draws "
            f"tell it with the sum of {spent} over these levels. Once with consistency: record."
        )
    else:
        yield (
            f"A word that occurs n times in a record is drawn n times: together the draws tell it with n times {spent}. Once "
            "with consistency: record."
        )


def _unprotected(facts: RunFacts) -> Sentences:
    policy, alone = facts.policy, facts.mapping.alone_share or 0.0
    if facts.guarantee.kind == "epsilon_dp_within_group":
        yield (
            "Words against words of another output set: nothing is promised for such a pair. Larger sets (mechanism.k), or a "
            "mechanism that compares any two words (`dptext mechanisms`), would change that."
        )
    if facts.guarantee.compared == "sensitive words":
        law = facts.mapping
        stood = "An output that is not sensitive is the word that stood there."
        if law.remap is not None and law.remap.telling is not None:
            stood = f"For {law.remap.telling:,} of them an output that is not sensitive is the word that stood there."
        yield (
            f"Words that are not sensitive: the guarantee compares sensitive words with each other alone. {stood} "
            "Less with a greater mechanism.p, gone with mechanism.p: 1, or with mechanism.sensitive: none."
        )
    if alone:
        yield (
            f"{percent_up(alone)} of the lexicon's words share their output set with no other word, so that the guarantee "
            "compares them with none. In a text they may be more frequent. Another mechanism.mapping changes that."
        )
    if policy.stop_words == "keep":
        yield (
            "That a word is no stop word: between a kept word and a drawn word there is no bound, and where a word of the output "
            "is no stop word, none stood in its place. Gone with policy.stop_words: draw."
        )
    yield from names_not_protected(facts)
    yield from importance.choice(facts)
    yield from rule_based(policy)
    yield from provider_based(facts)
    yield (
        "The sense of a text: replacements are near to what they replace, and topic, tone and order of words "
        "remain. Facts that several words tell together are protected only as far as the bounds of their draws add up. "
        "A smaller mechanism.epsilon leaves less of it."
    )
    yield LINKAGE
    yield (
        "Who wrote it: length, punctuation, kept words and their order are a style, and authorship can be told by "
        "style. No setting protects it; what is released in clear is what gives it away."
    )
    yield (
        "That a record is in the table at all, and what other columns or other data tell about the same "
        "record. No setting protects it: only a record that is left out before the run is not there."
    )
    yield from _repeated(facts)


def _made_with(config: RunConfig) -> Sentences:
    """Name the mechanism with every parameter, and the lexicon."""
    mechanism = config.mechanism.as_dict()
    parameters = ", ".join(f"{name} {_said(value)}" for name, value in mechanism.items() if name != "name")
    version = f" (version {config.lexicon_version})" if config.lexicon_version is not None else ""
    words = " and ".join(
        " ".join(
            [
                lexicon.source + (version if lexicon.source == PACKAGED else ""),
                *(f"({name} {_said(cut)})" for name in _CUTS if (cut := getattr(lexicon, name))),
            ]
        )
        for lexicon in (config.lexicon, *config.lexicon.more)
    )
    less = "" if config.lexicon.exclude is None else f", without those of the list {config.lexicon.exclude}"
    yield f"The mechanism is {mechanism['name']} ({parameters}); the words are those of the lexicon {words}{less}."


def _said(value: object) -> str:
    if isinstance(value, list | tuple):
        return f"a list of {len(value):,}"
    return "none" if value is None else exact(value) if isinstance(value, float) else str(value)


def streamed(facts: RunFacts) -> Iterator[str]:
    """Write the facts on a stream as a whole, beyond each micro-batch; nothing for a run that is not a stream."""
    config, level = facts.config, facts.consistency
    if not config.is_stream:
        return
    yield (
        f"The table grows by micro-batches (mode: {config.mode}). When each was written, and which records came together, can "
        "be read off the table's history and files. No setting hides that; rarer and larger micro-batches tell less."
    )
    if level == "token":
        yield (
            "A draw belongs to its micro-batch: a row key that comes again in a later one is drawn anew, and one that is "
            "repeated after a failure draws the same again."
        )
    else:
        scope = "record" if level == "record" else "dataset"
        yield f"Equal words of a {scope} have equal replacements in all micro-batches, as long as the key and the model stay."
    if config.record_key and level != "dataset":
        yield "A record may have rows in several micro-batches: figures of a micro-batch count only what it held of the record."
    yield {
        "refuse": "Updates and deletes in the source stop the stream: nothing is left out unseen (stream.changes: refuse).",
        "ignore": (
            "UPDATES AND DELETES IN THE SOURCE ARE NOT CARRIED OVER (stream.changes: ignore): what was released of a row stays "
            "in the table after the source changed or deleted it, and rows that such a commit adds (a MERGE) are left out."
        ),
    }[config.stream.changes]
    yield from _repeats(facts)


def _repeats(facts: RunFacts) -> Iterator[str]:
    """Write what happens to a row key that comes again."""
    config = facts.config
    place = "in the table or in the same micro-batch"
    yield {
        "refuse": f"A row key that is found again {place} stops the stream (stream.duplicates: refuse).",
        "drop": (
            f"A row whose key is found again {place} is left out (stream.duplicates: drop). That a row is missing tells that its "
            "key came again."
        ),
        "accept": (
            "A ROW KEY MAY COME AGAIN (stream.duplicates: accept): each time is one more release of its record, and where the "
            "draws differ their bounds add up. Once with stream.duplicates: drop."
        ),
    }[config.stream.duplicates]


def assumed(facts: RunFacts) -> Iterator[str]:
    """Write what must be true for the guarantee to hold."""
    if facts.key_kind == "insecure":
        yield (
            "Nothing that makes it hold: the draws come from AES-256 under a key that is no secret, and whoever tries it can "
            "test candidates word by word."
        )
    else:
        yield (
            "The draws come from AES-256 under a secret key, so the guarantee holds against whoever cannot break it, and only "
            "while the key is secret: its holder can test candidates word by word."
        )
        yield key_sentence(str(facts.key_kind))
    yield (
        "The lexicon, its order, the stop-word list and all settings are public, and not made from the "
        "private text. Whoever makes one of them from the text must count that as a release of its own."
    )
    if facts.config.mechanism.reads_context:
        yield (
            "The counts of word pairs by which draws follow the word before them are public, too, and part of the model. The "
            "guarantee holds whatever they are; counts of the private text would be a release of their own."
        )
    if facts.config.lexicon.prior is not None:
        yield (
            f"The text {facts.config.lexicon.prior.corpus!r}, in which words and pairs were counted, is taken to be public. "
            "With lexicon.prior: null none is read."
        )
    yield (
        f"What is compared is {facts.guarantee.unit}: not a person, and not a whole record. The setting consistency "
        "decides which it is."
    )
    yield from _identified(facts)
    if facts.config.record_key:
        yield f"A record is all rows with the same {facts.config.record_key!r}."
    else:
        yield "A record is a row. With record_key it is all rows with the same key."


def key_sentence(kind: str) -> str:
    """Return the place of a run's key, and the time of its loss."""
    return {
        "os": (
            "The key is 32 bytes of the operating system, held in memory only, and gone when the run ends. With key.file it "
            "is a file's."
        ),
        "file": (
            "The key comes from a file and outlives the run: it is as secret as the text. Without key.file it would be gone "
            "when the run ends."
        ),
        "env": (
            "The key comes from an environment variable of the driver and outlives the run wherever that is kept: it is as "
            "secret as the text. Without key.env it would be gone when the run ends."
        ),
        "secret": (
            "The key comes from the platform's secrets and outlives the run: whoever may read that secret can test "
            "candidates. Without key.secret it would be gone when the run ends."
        ),
        "insecure": "The key is no secret: whoever has this program can draw again, and nothing is protected.",
        "given": (
            "The key was given by the calling program: it is as secret as the text. Without it the run would make its own."
        ),
    }.get(kind, "The kind of the key is not known.")


def _identified(facts: RunFacts) -> Iterator[str]:
    """Write how rows are identified, and which rows share draws."""
    identity = facts.identity or "not known before the run"
    if identity == "row_key":
        shared = {
            "record": "equal words share a draw within a record, which may have several rows",
            "dataset": "equal words share a draw in all rows",
        }.get(facts.consistency, "no two rows share draws")
        yield f"A row is identified by {facts.config.row_key!r}, which is unique: {shared}."
    elif identity == "file_row":
        yield (
            "A row is identified by its file and its place in it, so a retried task draws the same noise again."
        )
    elif identity.startswith("ordinal"):
        yield (
            "A row is identified by its place in the scan; a retried task draws the same noise again as long as the input's "
            "files and their partitioning stay as they are. A row_key would do without that."
        )
    else:
        yield f"What identifies a row: {identity}."
    if facts.config.row_key is None:
        yield f"{not_audited(None).replace('the', 'The', 1)} (row_key: {{none: accept}})."


def across_runs(facts: RunFacts) -> Iterator[str]:
    """Write what other releases of the same records add."""
    counted = facts.ledger
    if counted is None:
        yield (
            "Every further release of the same records with new draws adds its bound to this one. A run counts them in its "
            "ledger, and its own statement says what they come to."
        )
    else:
        yield counted.sentence
        yield from counted.notes
    if facts.consistency == "token":
        yield (
            "At token level a new run id gives new draws, whatever the key. With consistency: record or dataset and one "
            "key.file, replacements stay."
        )
    elif facts.key_kind == "os":
        yield "The key is gone when the run ends: every further run draws anew. With key.file, replacements stay."
    else:
        yield (
            "The same key, lexicon, mechanism and policy give the same replacements again: of a record that did "
            "not change that tells nothing new, of one that did, which of its words did."
        )
    releases = facts.releases_in_history
    if releases is None:
        yield "How many releases the target's history holds is not known before the run."
    elif releases > 1:
        yield (
            f"The target's history holds {releases} releases of this tool: old versions and files that were "
            "not vacuumed "
            "can be read, and where they hold the same records with other draws their bounds add up. VACUUM removes old files."
        )
    else:
        yield "The target's history holds this release only."
    if facts.config.output.overwrite_raw:
        yield (
            "The target may have held raw text before (output.overwrite_raw): it stays readable in old versions, and in the "
            "statistics of the transaction log even after VACUUM."
        )
