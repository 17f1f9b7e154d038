"""Choose a mechanism and a lexicon, without a table.

`dptext mechanisms` lists the mechanisms, `certify` and `calibrate` examine one, `compare` attacks several. `dptext lexicon` shows
a lexicon, or imports one.
"""

from __future__ import annotations

import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dptext_spark.audit.options import ComparisonOptions, takes
from dptext_spark.cli import Config, Override
from dptext_spark.errors import DataError, SettingsError
from dptext_spark.report.console import JSON, Screen, progress, show, write
from dptext_spark.runtime.display import counted

if TYPE_CHECKING:
    from dptext_spark.lexicon.lexicon import Lexicon


def mechanisms(
    name: Annotated[str | None, typer.Argument(help="One mechanism. Default: all of them.")] = None,
) -> None:
    """List mechanisms: paper, guarantee, cost, certificate, parameters with defaults and ranges."""
    from dptext_spark.report.mechanism_screens import catalogue, described, overview, rows

    if name is None:
        return show(overview(), catalogue())
    mechanism = described(name)
    show(Screen(name, rows(mechanism)), mechanism)


def certify(
    config: Config = None,
    overrides: Override = None,
    sample: Annotated[
        int | None,
        typer.Option(min=2, help="Check pairs among this many words, evenly spaced. Default: all words."),
    ] = None,
) -> None:
    """Compute a mechanism's true worst-case privacy loss, and compare it with the guarantee.

    The compiled model keeps the certificate, and runs record it. One of a sample is kept only if there is none yet.
    """
    from dptext_spark.audit.attacks.linkage import told_by
    from dptext_spark.config.load import load_model_config
    from dptext_spark.model.artifact import certificate_of, keep_certificate
    from dptext_spark.model.certificate import certify as examine
    from dptext_spark.model.compile import prepare
    from dptext_spark.model.machine_code import expected_text
    from dptext_spark.model.record import SIZES, WEAK, record_account

    settings = load_model_config(config, overrides or ())
    with progress() as say:
        privatizer, folder = prepare(settings, say)
        certificate = examine(privatizer, sample=sample, progress=counted("certifying", say))
    try:
        if sample is None or certificate_of(folder) is None:
            keep_certificate(folder, certificate)
            if settings.run.artifact is not None:
                sys.stderr.write(f"run.artifact_fingerprint: {expected_text(folder)} from now on\n")
    except DataError as error:  # the finding stands all the same
        sys.stderr.write(f"Not kept in the model: {error}\n")
    words = privatizer.vocabulary.strings()
    pair = certificate.loss.worst if certificate.loss is not None else None
    worst = None if pair is None else [words[word].as_py() for word in pair]
    record = record_account(privatizer)
    sizes = [bound.as_dict() for size in SIZES if (bound := record.of(size)) is not None]
    told = told_by(privatizer)
    document = {**certificate.as_dict(), "worst_words": worst, "record": sizes}
    document |= {} if told is None else {"told": told.as_dict()}
    meaning = f"{record.unit} {record.meaning()} {WEAK}" if not record.why and record.levels == 1 else ""
    rows = [
        ("guarantee", privatizer.guarantee().sentence),
        ("certificate", certificate.sentence),
        ("worst pair", " / ".join(worst or ())),
        ("record", record.stated),
        ("", meaning),
        ("told", "" if told is None else told.sentence),
    ]
    show(Screen(f"The guarantee is {certificate.verdict}; {certificate.seconds:.1f} s.", rows), document)


def calibrate(
    require: Annotated[
        list[str],
        typer.Option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="A limit over the lexicon, such as 'N_w max <= 0.5', 'S_w[1000] p5 >= 20', 'bayes token <= 0.3', or with "
            "--public 'linkage_top1(10000) <= 0.1'; may be repeated.",
        ),
    ],
    config: Config = None,
    overrides: Override = None,
    public: Annotated[
        Path | None,
        typer.Option(
            help="A public text, a record a line: also search K, mapping and remap. linkage_top1(N) needs N records."
        ),
    ] = None,
    words: Annotated[
        Path | None, typer.Option(help="The words of 'bayes words', such as names: a file, one a line.")
    ] = None,
) -> None:
    """Find the largest ε that meets requirements for every word of the lexicon, and show the curve."""
    from dptext_spark.audit.comparison_input import read_records
    from dptext_spark.audit.find_epsilon import calibrate as search
    from dptext_spark.audit.find_setting import find_setting
    from dptext_spark.config.load import load_model_config
    from dptext_spark.config.values import read_lines
    from dptext_spark.report.mechanism_screens import calibration, settings_found

    settings = load_model_config(config, overrides or ())
    word_list = None if words is None else read_lines("--words", str(words))
    if public is not None:
        texts = read_records(public, "public")
        with progress() as say:
            best = find_setting(settings, require, texts, words=word_list, progress=say)
        show(settings_found(best), best.as_dict())
        if not JSON.get():
            write(f"\n{best.settings}")
        return
    with progress() as say:
        epsilon = search(settings, require, words=word_list, progress=say)
    show(calibration(epsilon), epsilon.as_dict())


@takes(ComparisonOptions, is_command=True)
def compare(
    *,
    mechanisms: Annotated[
        str,
        typer.Option(
            help="Mechanisms with commas between them, parameters behind colons: custext,diffractor:form=tem."
        ),
    ],
    epsilons: Annotated[
        list[str],
        typer.Option(
            help="Ascending ε with commas between them, or NAME=NUMBERS for one mechanism; may be repeated."
        ),
    ],
    public: Annotated[Path, typer.Option(help="The adversary's public text, a record a line.")],
    private: Annotated[Path, typer.Option(help="The private text to protect, a record a line.")],
    language: Annotated[
        Path | None,
        typer.Option(
            help="A third, public text, a record a line, whose word pairs judge the word order of the result."
        ),
    ] = None,
    config: Config = None,
    overrides: Override = None,
    labels: Annotated[
        str,
        typer.Option(
            metavar="PLACE",
            help="Place of the label in a tab-separated line: first, last or none; PRIVATE,PUBLIC if the texts differ.",
        ),
    ] = "none",
    options: ComparisonOptions,
    out: Annotated[Path | None, typer.Option(help="Folder for compare.html.")] = None,
) -> None:
    """Compare how much of a text mechanisms keep where attacks succeed equally."""
    from dptext_spark.audit.comparison import compare as run_comparison
    from dptext_spark.audit.comparison_input import ComparisonSpec, read_records
    from dptext_spark.config.load import load_model_config
    from dptext_spark.errors import require_extra
    from dptext_spark.report.comparison_page import comparison, comparison_page, write_private

    if out is not None:
        require_extra("audit", "jinja2", "matplotlib")
    settings = load_model_config(config, overrides or ())
    asked = ComparisonSpec.of(settings, mechanisms, epsilons, options=options)
    of_private, _, of_public = labels.partition(",")
    known = read_records(public, "public", of_public or of_private)
    secret = read_records(private, "private", of_private)
    third = None if language is None else read_records(language, "language")
    with progress() as say:
        result = run_comparison(settings, asked, known, secret, language=third, progress=say)
    if out is not None:
        write_private(out / "compare.html", comparison_page(result))
    show(comparison(result), result.as_dict())


lexicon_app = typer.Typer(help="Show or import a lexicon.", no_args_is_help=True)


@lexicon_app.command("info")
def lexicon_info(
    source: Annotated[str, typer.Argument(help="`default`, or the folder of a saved lexicon.")] = "default",
) -> None:
    """Show a lexicon: words, dimensions, metric, fingerprint, and the entries dropped while reading it."""
    from dptext_spark.lexicon.lexicon import PACKAGED, Lexicon

    if Path(source).is_file():
        raise DataError(f"source: {source!r} is a file, not a saved lexicon. Use `dptext lexicon import`.")
    packaged = source == PACKAGED
    _describe(Lexicon.default() if packaged else Lexicon.open(source), version=packaged)


@lexicon_app.command("import")
def lexicon_import(
    file: Annotated[Path, typer.Argument(help="Word vectors: GloVe, word2vec or fastText .vec; .gz too.")],
    folder: Annotated[Path, typer.Argument(help="A new folder for the lexicon.")],
    limit: Annotated[int | None, typer.Option(help="Number of words to read. Default: all.")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="File of the words to keep, one a line. Default: all.")
    ] = None,
    tokenizer: Annotated[str, typer.Option(help="Tokenizer of the texts: words or whitespace.")] = "words",
    metric: Annotated[str, typer.Option(help="Distance of vectors: cosine or euclidean.")] = "cosine",
) -> None:
    """Save a file of word vectors as a lexicon, for the setting lexicon.source."""
    from dptext_spark.lexicon.lexicon import Lexicon

    with progress() as say:
        lexicon = Lexicon.read(
            file,
            limit=limit,
            vocabulary=vocabulary,
            tokenizer=tokenizer,  # type: ignore[arg-type]  # read() refuses what it does not know
            metric=metric,  # type: ignore[arg-type]  # likewise
            progress=counted("reading", say),
        )
        lexicon.save(folder)
    _describe(lexicon, folder)


@lexicon_app.command(
    "build-default", hidden=True, context_settings={"allow_extra_args": True, "ignore_unknown_options": True}
)
def lexicon_build_default() -> None:
    """Refuse what a checkout does."""
    raise SettingsError("lexicon build-default: no command of the package; run `make lexicon` in a checkout.")


def _describe(lexicon: Lexicon, folder: Path | None = None, version: bool = False) -> None:
    from dptext_spark.lexicon.lexicon import PACKAGED_VERSION

    facts: dict[str, Any] = {
        "name": lexicon.name,
        "words": len(lexicon),
        "dimensions": lexicon.dimensions,
        "metric": lexicon.metric,
        "fingerprint": lexicon.fingerprint,
        "prior": lexicon.prior.name,
        "counts": None if lexicon.counts is None else asdict(lexicon.counts),
    }
    if version:
        facts["version"] = PACKAGED_VERSION
    if folder is not None:
        facts["folder"] = str(folder)
    flat = {**facts, **(facts["counts"] or {}), "counts": None}
    rows = [
        (name.replace("_", " "), f"{value:,}" if type(value) is int else str(value))
        for name, value in flat.items()
        if value is not None and not isinstance(value, dict)
    ]
    show(Screen(f"The lexicon {lexicon.name}", rows), facts)
