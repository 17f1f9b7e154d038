"""The command line, `dptext`. Figures go to stdout, progress and errors to stderr."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from dptext_spark.errors import DataError, RequirementBroken
from dptext_spark.report.console import hanging, progress, show, width, write, write_error, write_json
from dptext_spark.report.ending import EXIT_CODES, ended
from dptext_spark.report.summary import PRICE, summary
from dptext_spark.version import __version__

if TYPE_CHECKING:
    from dptext_spark.config import RunConfig
    from dptext_spark.lexicon.lexicon import Lexicon

# What a command needs is imported when it runs: `--help` stays quick, and only `demo` and `run` need Spark.
app = typer.Typer(
    name="dptext",
    help="Replace the words of private text by differentially private draws.",
    epilog="Exit codes: " + "; ".join(f"{code} {said}" for code, said in EXIT_CODES.items()) + ".",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
lexicon_app = typer.Typer(help="Show or import a lexicon, or rebuild the packaged one.", no_args_is_help=True)
app.add_typer(lexicon_app, name="lexicon")

Json = Annotated[bool, typer.Option("--json", help="Print one JSON document on stdout.")]
_SET = typer.Option("--set", "-s", metavar="A.B=VALUE", help="Override a setting; never the key.")
Override = Annotated[list[str] | None, _SET]


def _version(wanted: bool) -> None:
    if wanted:
        write(__version__)
        raise typer.Exit


@app.callback()
def _options(
    debug: Annotated[bool, typer.Option("--debug", help="Tracebacks, which may show private text.")] = False,
    version: Annotated[
        bool, typer.Option("--version", help="Print the version.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Declare what stands before a command; `main` takes --debug wherever it stands."""


@app.command()
def demo(
    folder: Annotated[
        Path | None, typer.Argument(help="Where to write; a new or empty folder. Default: dptext-demo.")
    ] = None,
    rows: Annotated[int, typer.Option(min=1, help="Records of the sample table.")] = 20_000,
    as_json: Json = False,
) -> None:
    """Write a sample table of support tickets, sanitize it on local Spark, and show what came out."""
    from dptext_spark.spark.demo import demo as run_demo

    run_demo(folder, rows, as_json)


@app.command()
def run(
    config: Annotated[Path, typer.Argument(help="The settings, a YAML file; conf/ holds examples.")],
    overrides: Override = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show plan, guarantee and disclosure; read no data.")
    ] = False,
    as_json: Json = False,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also show figures that depend on the private text.")
    ] = False,
    price: Annotated[float, typer.Option(min=0.0, help="Of a core-hour, for what 5 TB would cost.")] = PRICE,
) -> None:
    """Run the job: read a table, sanitize its text columns, write a Delta table and the account."""
    from dptext_spark.config import RunConfig

    settings = RunConfig.load(config, overrides or ())
    if dry_run:
        return _plan(settings, as_json)
    from dptext_spark.spark import run as run_job

    with progress() as say:
        report = run_job(settings, progress=lambda step: say(step, None))
    facts = report.as_dict(internal=internal)
    if as_json:
        write_json(facts)
    else:
        write(summary(facts, internal=internal, price=price, columns=width()))


def _plan(settings: RunConfig, as_json: bool) -> None:
    from dptext_spark.models import prepare
    from dptext_spark.report.plan import plan, plan_text

    with progress() as say:
        privatizer, folder = prepare(settings, say)
    planned = plan(settings, privatizer, folder)
    if as_json:
        write_json(planned)
    else:
        write(plan_text(planned, width()))


@app.command()
def preview(
    text: Annotated[str, typer.Argument(help="A sentence, in quotes.")],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file of settings.")] = None,
    overrides: Override = None,
    top: Annotated[int, typer.Option(min=1, help="Candidates listed for each word.")] = 4,
    as_json: Json = False,
) -> None:
    """Draw one sentence without Spark, with a fresh key: what becomes of each word, and why."""
    from dptext_spark.config import load_model
    from dptext_spark.models import prepare
    from dptext_spark.preview import preview as draw
    from dptext_spark.preview import shown

    settings = load_model(config, overrides or ())
    with progress() as say:
        privatizer, _ = prepare(settings, say)
    result = draw(privatizer, text, top=top)
    if as_json:
        write_json(result.as_dict())
    else:
        show(shown(result))


@app.command()
def certify(
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file of settings.")] = None,
    overrides: Override = None,
    sample: Annotated[
        int | None, typer.Option(min=2, help="Look at pairs among so many words, taken at equal steps.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the true worst-case loss of the law that is sampled, compare it with the guarantee, and keep the finding.

    It is kept in the compiled model, from which runs take it into their account; that of a sample only where there is none.
    """
    from dptext_spark.artifact import certificate_of, keep_certificate
    from dptext_spark.audit.certificate import certify as examine
    from dptext_spark.config import load_model
    from dptext_spark.models import prepare

    settings = load_model(config, overrides or ())
    with progress() as say:
        privatizer, folder = prepare(settings, say)
        found = examine(privatizer, lambda done, whole: say("certifying", done / whole), sample)
    try:
        if sample is None or certificate_of(folder) is None:
            keep_certificate(folder, found.kept())
    except DataError as error:  # the finding stands all the same
        sys.stderr.write(f"not kept: {error}\n")
    words = privatizer.vocabulary.strings()
    pair = found.loss.worst if found.loss is not None else None
    worst = None if pair is None else [words[word].as_py() for word in pair]
    if as_json:
        return write_json({**found.as_dict(), "worst_words": worst})
    write(hanging("", f"{privatizer.guarantee().sentence}", width()))
    write(hanging("", found.sentence, width()))
    if worst is not None:
        write(f"worst pair: {' / '.join(worst)}")
    write(f"{found.seconds:.1f} s")


@app.command()
def audit(
    table: Annotated[
        str, typer.Argument(help="A written table, ours or anyone's: Delta or Parquet folder, or name.")
    ],
    against: Annotated[str, typer.Option("--against", help="The table that it was made from.")],
    columns: Annotated[
        list[str] | None,
        typer.Option("--columns", help="A text column; may be repeated. Default: the settings'."),
    ] = None,
    row_key: Annotated[
        str | None, typer.Option(help="What identifies a row in both. Default: the settings'.")
    ] = None,
    record_key: Annotated[str | None, typer.Option(help="The source's column of records.")] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="How it was made; without, attacks are left out.")
    ] = None,
    overrides: Override = None,
    require: Annotated[
        list[str] | None,
        typer.Option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="Such as 'original_share <= 0.6'; may be repeated. Broken: exit code 7.",
        ),
    ] = None,
    sample: Annotated[int, typer.Option(min=1, help="Rows, about, for consistency and attacks.")] = 2_000,
    partial: Annotated[
        bool, typer.Option("--partial", help="Allow rows that only one of the tables has.")
    ] = False,
    out: Annotated[
        str | None, typer.Option(help="Folder of the metrics. Default: <TABLE>_audit/restricted.")
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Show what would be compared; read no data.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Audit a written table against its source on Spark: what it keeps, whether it is consistent, how well it is attacked."""
    from dptext_spark.audit_plan import AuditPlan
    from dptext_spark.report.table_audit import audit_plan_text, table_audit_text

    plan = AuditPlan.of(
        table, against, columns=columns or (), row_key=row_key, record_key=record_key, config=config,
        overrides=overrides or (), require=require or (), sample=sample, partial=partial, out=out,
    )  # fmt: skip
    if dry_run:
        planned = plan.as_dict()
        return write_json(planned) if as_json else write(audit_plan_text(planned, width()))
    from dptext_spark.spark.table_audit import audit_table

    with progress() as say:
        found = audit_table(plan, progress=lambda step: say(step, None))
    if as_json:
        write_json(found.as_dict())
    else:
        write(table_audit_text(found.as_dict(), width()))
    if found.broken:
        write_error(f"requirement broken: {'; '.join(found.broken)}. Do not publish {found.table}.")
        raise typer.Exit(RequirementBroken.exit_code)


@app.command()
def report(
    run_id: Annotated[
        str, typer.Argument(metavar="RUN", help="A run id, or latest: the newest that succeeded.")
    ],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="The settings of the run.")] = None,
    overrides: Override = None,
    audit: Annotated[
        str | None, typer.Option(help="In place of --config: the folder <target>_audit.")
    ] = None,
    out: Annotated[Path | None, typer.Option(help="The file. Default: report-RUN.html.")] = None,
    internal: Annotated[
        bool, typer.Option("--internal", help="Also figures that depend on the private text.")
    ] = False,
    with_examples: Annotated[
        bool, typer.Option("--with-examples", help="Also private text: some records before and after.")
    ] = False,
    publish: Annotated[
        list[str] | None,
        typer.Option(
            metavar="METRIC=EPSILON", help="Publish a restricted count with noise; spends its ε each time."
        ),
    ] = None,
    most_words: Annotated[
        int, typer.Option(min=1, help="Words of a record up to which the ε of --publish holds.")
    ] = 200,
    figures: Annotated[
        list[Path] | None, typer.Option(help="A JSON file with results of audits, to be shown too.")
    ] = None,
    public_text: Annotated[
        Path | None, typer.Option(help="A public text, a record a line, for the contextual adversary.")
    ] = None,
    statement: Annotated[
        str | None,
        typer.Option(help="Print only the disclosure statement: md, html or json. Writes no file."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Write one offline HTML file about a run: guarantee, disclosure, attacks, deniability, utility, counters."""
    from dptext_spark.config import RunConfig
    from dptext_spark.errors import require_choice
    from dptext_spark.report.model_attacks import read_lines
    from dptext_spark.report.statements import STATEMENTS, rendered
    from dptext_spark.spark.session import require_pyspark

    if statement is not None:
        require_choice("statement", statement, STATEMENTS)
    require_pyspark()
    from dptext_spark.spark.reporting import Account, Wanted, write_page
    from dptext_spark.spark.reporting import report as gather

    account = Account.of(None if config is None else RunConfig.load(config, overrides or ()), audit)
    asked = Wanted(
        internal,
        with_examples,
        tuple(publish or ()),
        most_words,
        tuple(figures or ()),
        read_lines(public_text),
    )
    with progress() as say:
        facts = gather(run_id, account, asked, examine=statement is None, progress=say)
    if statement is not None:
        return write(rendered(facts["statement"], statement))
    file = write_page(facts, out)
    if as_json:
        write_json({"file": str(file), **facts})
    else:
        write(f"{file}")


@app.command()
def calibrate(
    require: Annotated[
        list[str],
        typer.Option(
            "--require",
            "-r",
            metavar="REQUIREMENT",
            help="What must hold over the words of the lexicon, such as 'N_w max <= 0.5', 'S_w min >= 10' or "
            "'S_w[1000] p5 >= 20'; may be repeated.",
        ),
    ],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file of settings.")] = None,
    overrides: Override = None,
    low: Annotated[float, typer.Option(help="The smallest ε to look at.")] = 0.01,
    high: Annotated[float, typer.Option(help="The largest ε to look at.")] = 100.0,
    steps: Annotated[
        int | None, typer.Option(help="How many ε to look at. Default: 24, or 12 where compiling takes long.")
    ] = None,
    sample: Annotated[
        int, typer.Option("--words", help="Words to draw from, where the mechanism has no law.")
    ] = 50,
    as_json: Json = False,
) -> None:
    """Find the largest ε whose figures meet what is required, for the worst word of the lexicon, and show the curve."""
    from dptext_spark.config import load_model
    from dptext_spark.find_epsilon import find_epsilon
    from dptext_spark.report.calibration import calibration_text

    settings = load_model(config, overrides or ())
    with progress() as say:
        found = find_epsilon(settings, require, low=low, high=high, steps=steps, sample=sample, progress=say)
    if as_json:
        write_json(found.as_dict())
    else:
        write(calibration_text(found, width()))


@app.command()
def compare(
    mechanisms: Annotated[
        str,
        typer.Option(
            help="Names with commas between them, each with settings behind colons: custext,diffractor:form=tem."
        ),
    ],
    epsilons: Annotated[
        list[str],
        typer.Option(
            help="Numbers with commas between them, ascending; NAME=NUMBERS for one mechanism. May be repeated."
        ),
    ],
    public: Annotated[
        Path, typer.Option(help="What the adversary knows of the language: a text, a record a line.")
    ],
    private: Annotated[Path, typer.Option(help="What is to be protected: a text, a record a line.")],
    config: Annotated[Path | None, typer.Option("--config", "-c", help="A YAML file of settings.")] = None,
    overrides: Override = None,
    lexicon: Annotated[
        str | None, typer.Option(help="`default`, a saved lexicon, or a file of word vectors.")
    ] = None,
    labels: Annotated[
        str, typer.Option(help="Where the label of a tab-separated line stands: first, last or none.")
    ] = "none",
    public_labels: Annotated[
        str | None, typer.Option(help="The same of the public text, where it differs from --labels.")
    ] = None,
    levels: Annotated[
        str | None,
        typer.Option(help="Levels of risk to compare at, such as 0.1,0.2,0.5. Default: round ones."),
    ] = None,
    records: Annotated[
        int, typer.Option(help="Records of the private text that are replaced, evenly spaced.")
    ] = 4_000,
    attacked: Annotated[int, typer.Option(help="Records of those that are attacked in context.")] = 1_000,
    words: Annotated[
        int,
        typer.Option(help="Words the adversary considers, for SanText+ and truncated Gumbel."),
    ] = 500,
    draws: Annotated[int, typer.Option(help="Draws of each of them, where there is no law.")] = 100,
    out: Annotated[
        Path | None,
        typer.Option(help="A folder for compare.html and for the points, from which a later call goes on."),
    ] = None,
    as_json: Json = False,
) -> None:
    """Compare mechanisms where attacks succeed equally, because ε means another thing for each: which keeps most of the text?"""
    from dptext_spark.asked import Asked
    from dptext_spark.compare import compare as run_comparison
    from dptext_spark.config import load_model
    from dptext_spark.errors import require_extra
    from dptext_spark.measured_points import write_private
    from dptext_spark.report.comparison import comparison_page, comparison_text
    from dptext_spark.text.records import read_records

    if out is not None:
        require_extra("audit", "jinja2", "matplotlib")
    chosen = [] if lexicon is None else [f"lexicon.source={lexicon}"]
    settings = load_model(config, [*(overrides or ()), *chosen])
    asked = Asked.of(
        settings, mechanisms, epsilons, levels, few=words, draws=draws, attacked=attacked, records=records
    )
    known = read_records(public, "public", labels if public_labels is None else public_labels)
    secret = read_records(private, "private", labels)
    with progress() as say:
        found = run_comparison(settings, asked, known, secret, folder=out, progress=say)
    if out is not None:
        write_private(out / "compare.html", comparison_page(found))
    if as_json:
        write_json(found.as_dict())
    else:
        write(comparison_text(found, width()))


@app.command()
def mechanisms(
    name: Annotated[str | None, typer.Argument(help="One mechanism. Default: all of them.")] = None,
    as_json: Json = False,
) -> None:
    """List the mechanisms: paper, guarantee, cost, certificate, parameters with defaults and ranges."""
    from dptext_spark.report.catalogue import catalogue, catalogue_text, described

    if as_json:
        return write_json(catalogue() if name is None else described(name))
    write(catalogue_text(catalogue() if name is None else [described(name)], width()))


@lexicon_app.command("info")
def lexicon_info(
    source: Annotated[str, typer.Argument(help="`default`, or a saved lexicon's folder.")] = "default",
    as_json: Json = False,
) -> None:
    """Show a lexicon: words, dimensions, metric, fingerprint, and what reading it dropped."""
    from dptext_spark.lexicon.lexicon import Lexicon

    if Path(source).is_file():
        raise DataError(f"source: {source!r} is a file, no saved lexicon; `dptext lexicon import` saves one.")
    _describe(Lexicon.default() if source == "default" else Lexicon.open(source), as_json)


@lexicon_app.command("import")
def lexicon_import(
    file: Annotated[Path, typer.Argument(help="GloVe, word2vec, fastText .vec, .npz or Parquet; .gz too")],
    folder: Annotated[Path, typer.Argument(help="Where to save it: a new folder.")],
    format: Annotated[str, typer.Option(help="The file's format; auto: by its first bytes.")] = "auto",
    limit: Annotated[int | None, typer.Option(help="Stop after this many words.")] = None,
    vocabulary: Annotated[
        Path | None, typer.Option(help="Keep only the words of this text file, one a line.")
    ] = None,
    tokenizer: Annotated[str, typer.Option(help="words or whitespace.")] = "words",
    metric: Annotated[str, typer.Option(help="cosine or euclidean.")] = "cosine",
    as_json: Json = False,
) -> None:
    """Read word vectors from a file and save them as a lexicon, to be named as lexicon.source."""
    from dptext_spark.lexicon.lexicon import Lexicon

    with progress() as say:
        found = Lexicon.read(
            file,
            format=format,
            limit=limit,
            vocabulary=vocabulary,
            tokenizer=tokenizer,  # type: ignore[arg-type]  # read() refuses what it does not know
            metric=metric,  # type: ignore[arg-type]
            progress=lambda done, whole: say("reading", done / whole if whole else None),
        )
        found.save(folder)
    _describe(found, as_json, folder)


@lexicon_app.command("build-default")
def lexicon_build_default(
    folder: Annotated[Path, typer.Argument(help="Where to write it; a new or empty folder.")],
    source: Annotated[
        Path | None, typer.Option(help="The source package's wheel or folder. Default: the installed one.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Rebuild the packaged lexicon from the model that its vectors come from."""
    from dptext_spark.lexicon.build_default import build_default

    _describe(build_default(source, folder), as_json, folder)


def _describe(lexicon: Lexicon, as_json: bool, folder: Path | None = None) -> None:
    facts: dict[str, Any] = {
        "name": lexicon.name,
        "words": len(lexicon),
        "dimensions": lexicon.dimensions,
        "metric": lexicon.metric,
        "fingerprint": lexicon.fingerprint,
        "counts": None if lexicon.counts is None else asdict(lexicon.counts),
    }
    if folder is not None:
        facts["folder"] = str(folder)
    if as_json:
        return write_json(facts)
    for name, value in {**facts, **(facts.pop("counts") or {})}.items():
        if value is not None and not isinstance(value, dict):
            write(f"{name.replace('_', ' '):<18}{f'{value:,}' if type(value) is int else value}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; return its exit code (see `dptext --help`).

    Args:
        arguments: what follows the program's name; None takes them from the process.
    """
    given = list(sys.argv[1:] if arguments is None else arguments)
    debug = "--debug" in given

    def command() -> int:
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="replace")
        try:
            app([item for item in given if item != "--debug"], prog_name="dptext")
        except SystemExit as end:
            return end.code if isinstance(end.code, int) else 0
        return 0

    return ended(command, debug=debug, as_json="--json" in given)


if __name__ == "__main__":
    sys.exit(main())
