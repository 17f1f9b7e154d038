"""`dptext report`: reads the account of a run, examines its model, and writes one offline file.

Records before and after are shown only in a report that is marked as holding private text.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from pyspark.sql import SparkSession

from dptext_spark.audit.options import ReportOptions, takes
from dptext_spark.config.load import parse_model_config
from dptext_spark.config.locations import is_here, normal_path
from dptext_spark.config.model import RunConfig
from dptext_spark.disclosure.facts import RunRecord
from dptext_spark.errors import DataError, DPTextError, SettingsError, require_choice, require_extra
from dptext_spark.lexicon.lexicon import with_shared_words
from dptext_spark.model.compile import for_policy, load_lexicons, prepare
from dptext_spark.report.console import write
from dptext_spark.report.deniability_section import Model
from dptext_spark.report.facts import (
    STATEMENTS,
    Example,
    ReportFacts,
    gathered,
    read_results,
    rendered,
    require_run,
)
from dptext_spark.report.page import page
from dptext_spark.runtime.display import Progress, by_default, cut, frame, in_notebook, line, show_html
from dptext_spark.runtime.paths import PRIVATE, write_atomically
from dptext_spark.runtime.validation import Json
from dptext_spark.spark.job import runs
from dptext_spark.spark.job.planned_run import place_of
from dptext_spark.spark.nested_columns import paths_of, quoted
from dptext_spark.spark.runner import of_account
from dptext_spark.spark.session import spark_session
from dptext_spark.spark.spark_errors import reported
from dptext_spark.spark.tables import Target, opened, opened_if_there, read_input

LATEST = "latest"
NEWEST = 5  # run ids that are named where one does not exist
_PROVIDERS = "The run had providers (policy.providers), and providers are code. Give the run's own settings to see its model."
_NOT_AGAIN = (
    "The model of the run cannot be compiled here. It chose words by counts of the private text, "
    "or drew at several levels of importance. Figures of another model would mislead."
)
_SEVERAL_LAWS = (
    "A budget chose the law of each record, and figures of one law would mislead. For the largest ε, "
    "run `dptext calibrate` without the budget."
)
_KEPT = "This notebook now holds private text, in the report. Clear the output before you share the notebook."
EXAMPLES = 3
LONGEST = 600  # characters of an example


@dataclass(frozen=True)
class Account:
    """Place of a run's account.

    Attributes:
        shareable: the folder with `runs`.
        restricted: the folder with `metrics`.
        config: the settings that name them; None where only the folders are known.
    """

    shareable: str
    restricted: str
    config: RunConfig | None = None

    @classmethod
    def of(cls, config: RunConfig | None, folder: str | None) -> Account:
        """Find the account by the settings of its run, or by the folder next to the target.

        Raises:
            SettingsError: neither is given, or both, or the settings name no folders.
        """
        if (config is None) == (folder is None):
            raise SettingsError(
                "report: no account is named. Give the settings of the run, or the folder <target>_audit."
            )
        if config is None:
            return cls(f"{str(folder).rstrip('/')}/shareable", f"{str(folder).rstrip('/')}/restricted")
        place = place_of(config)
        return cls(place.runs.removesuffix("/runs"), place.metrics.removesuffix("/metrics"), config)


@dataclass(frozen=True, eq=False)
class RunReport:
    """Content of a report.

    Attributes:
        facts: all facts, as values.
        folder: where a page that is not for sharing goes; None for the working directory.

    Examples:
        >>> report = dps.report("first", dp.load_config("reviews.yaml"), examine=False)
        >>> report.statement("md").startswith("### ")
        True
    """

    facts: ReportFacts
    folder: Path | None = None

    def __repr__(self) -> str:
        """Return the id of the run alone: the facts may depend on the private text."""
        return line("RunReport", cut(repr(self.facts.run.run_id), 120))

    @property
    def broken(self) -> list[str]:
        """Broken requirements of the settings. Figures without a measurement are not among them."""
        return self.facts.verdict.why if self.facts.verdict.judged else []

    def save(self, path: str | os.PathLike[str] | None = None) -> Path:
        """Write one offline HTML file, atomically, and return where.

        Args:
            path: the file; None for `report-<run id>-restricted.html` in the folder of the run's restricted tables, where that is
                on this machine, and `report-<run id>.html` in the working directory for a page that may be shared. A restricted
                file is for its owner alone (mode 600).

        Raises:
            DataError: it cannot be written there.
        """
        return write_page(self.facts, None if path is None else Path(path), self.folder)

    def show(self) -> None:
        """Show the page below the cell of a notebook; elsewhere write it, as :meth:`save` does, and print where it is.

        A notebook that is kept with its outputs holds the page. Unless it is `public` it is not for sharing, and a sentence
        above it says so.

        Raises:
            DataError: the file cannot be written.
        """
        if not in_notebook():
            write(f"This is no notebook, so the report is in {self.save().resolve()}")
            return
        warning = ""
        if self.facts.internal or self.facts.examples:
            warning = f"<p><strong>{_KEPT}</strong></p>"
        show_html(warning + frame(page(self.facts), f"Report of run {self.facts.run.run_id}"))

    def statement(self, form: str = "md") -> str:
        """Return the disclosure statement alone: `md`, `html` or `json`; it holds no figure of the private text.

        Raises:
            SettingsError: another form.
        """
        require_choice("statement", form, STATEMENTS)
        return rendered(self.facts.outside, form)

    def as_dict(self) -> dict[str, Json]:
        """Return all facts, JSON-able."""
        return self.facts.as_dict()


@takes(ReportOptions)
def report(
    run_id: str,
    config: RunConfig | None = None,
    *,
    audit: str | None = None,
    options: ReportOptions,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> RunReport:
    """Report on a run: verdict, guarantee, disclosure, attacks, deniability, utility, counters; needs the extra [audit].

    It opens with two pages for the signature; they show `require` and `approval` of the settings. Only settings have these: the
    account keeps neither.

    Args:
        run_id: of the run; `latest` is the newest that succeeded.
        config: the settings of the run, which name the folders of its account.
        audit: in their place: the folder `<target>_audit`.
        options: not this argument itself, but each field of it by its name: `public`, `with_examples` and `figures` as `dptext
            report --help` has them; `public_text`, lines for the contextual adversary; `examine`, False to leave the model alone.
        spark: a session; None takes the active one, or starts a local one.
        progress: progress callback, called with each step. None tells them on stderr in a notebook or terminal.

    Raises:
        SettingsError: no such run, neither settings nor folder, or an option needs a missing setting.
        DataError: the tables are not those of an account, or hold no such metric, or an audit is of another run.

    Examples:
        >>> config = dp.load_config("reviews.yaml")
        >>> dps.report("first", config).save("report.html").name
        'report.html'
    """
    account = Account.of(config, audit)
    here = Path(normal_path(account.restricted)) if is_here(account.restricted) else None
    return RunReport(report_facts(run_id, account, options, spark, progress), here)


def report_facts(
    run_id: str,
    account: Account,
    options: ReportOptions,
    spark: SparkSession | None = None,
    progress: Progress | None = None,
) -> ReportFacts:
    """Gather the facts of a report.

    Returns:
        Input of :func:`dptext_spark.report.page.page`.

    Raises:
        SettingsError: no such run, or an option needs a missing setting.
        DataError: the tables are not those of an account, or hold no such metric, or an audit is of another run.
    """
    say = progress or by_default()
    require_extra("audit", "jinja2", "matplotlib")
    results = read_results(map(Path, options.figures))
    if spark is None:
        say("starting Spark", None)
    session = spark or spark_session()
    say("reading the account", None)
    with reported(session):
        record = _record_of(session, account, run_id)
        require_run(results, record.run_id)
        examples = list(pairs(session, account.config, record)) if options.with_examples else []
        metrics = None
        if not options.public:
            metrics = runs.metrics_of(session, f"{account.restricted}/metrics", record.run_id)
        settings = account.config
        require = () if settings is None else settings.require
        verdict = of_account(
            session, require, record, f"{account.restricted}/metrics", internal=not options.public
        )
    if not options.public and metrics is None:
        raise DataError(
            f"audit.restricted: {account.restricted!r} holds no metrics of run {record.run_id}. Name the folder of the "
            "run, or use --public (public=True) for a page without figures of the private text."
        )
    model: Model | str = "The model was not examined."
    if options.examine:
        say("preparing the model", None)
        model = _model(record, account, say)
    return gathered(
        record,
        model=model,
        metrics=metrics,
        examples=examples,
        results=results,
        public=options.public_text,
        verdict=verdict,
        approval=None if settings is None else settings.approval,
        require=require,
        progress=say,
    )


def write_page(facts: ReportFacts, file: Path | None, restricted: Path | None = None) -> Path:
    """Write the page, atomically; return where.

    Without a `file` the run names it, in the folder `restricted` where the page is not for sharing, else in the working
    directory.

    Raises:
        DataError: it cannot be written there.
    """
    marked = "-restricted" if facts.internal or facts.examples else ""
    folder = (marked and restricted) or Path()
    place = file or folder / f"report-{facts.run.run_id}{marked}.html"
    text = page(facts)
    try:
        write_atomically(place, text, PRIVATE if marked else 0o644)
    except OSError as error:
        raise DataError(f"out: {str(place)!r} cannot be written ({error.strerror}).") from None
    return place


def _record_of(spark: SparkSession, account: Account, run_id: str) -> RunRecord:
    folder = f"{account.shareable}/runs"
    if run_id == LATEST:
        row = next(iter(runs.newest(spark, folder, 1, "succeeded")), None)
    else:
        row = runs.find(spark, folder, runs.checked(run_id))
    if row is not None:
        return row
    if opened_if_there(spark, folder) is None:
        raise SettingsError(
            f"report: there is no table {folder!r}. Give the settings of the run, or the folder <target>_audit."
        )
    listed = [f"{record.run_id} ({record.status})" for record in runs.newest(spark, folder, NEWEST)]
    what = "no run has succeeded" if run_id == LATEST else f"no run {run_id!r}"
    newest = f"the newest are {', '.join(listed)}" if listed else "the table of runs is empty"
    raise SettingsError(f"run: {what} in {folder!r}. Use latest or a run id of that table; {newest}.")


def _model(record: RunRecord, account: Account, say: Progress) -> Model | str:
    """Open or compile the run's model; return why where that gives nothing, or another model."""
    if record.settings.budget is not None:
        return _SEVERAL_LAWS
    made_from = record.settings.values
    sections = {name: made_from[name] for name in ("lexicon", "mechanism", "policy", "consistency")}
    sections["importance"] = made_from.get("importance")
    sections["lexicon"] = {name: value for name, value in sections["lexicon"].items() if name != "version"}
    artifact = account.config.run.artifact if account.config is not None else None
    named = () if account.config is None else account.config.policy.providers
    if (
        record.settings.policy.providers != named
    ):  # a row may be anybody's: only settings name code that is run
        return _PROVIDERS
    try:
        config = parse_model_config({**sections, **({"run": {"artifact": artifact}} if artifact else {})})
        if config.importance is not None and (config.importance.own_data or config.importance.levels):
            return _NOT_AGAIN
        privatizer, _ = prepare(config, say)
    except DPTextError as error:
        return f"The model of the run cannot be compiled here. {error}"
    if privatizer.fingerprint != record.artifact:
        return (
            "The settings now give another model than the run's: the package or the lexicon has changed. "
            "Figures of another model would mislead."
        )

    try:
        # An artifact holds no vectors, so that nothing else can be compiled from it.
        lexicons = () if artifact else with_shared_words(load_lexicons(config, say))
    except DPTextError:
        lexicons = ()
    lexicons = for_policy(config.mechanism, lexicons, config.policy)
    return Model(privatizer, config.mechanism.over_epsilons(*lexicons) if lexicons else None)


def first_pair(config: RunConfig, run_id: str) -> Example | None:
    """Return the first text of the first row by row key, as a run read and wrote it: private text. None where there is no row.

    Raises:
        SettingsError: no such run, no row key, or settings of another run.
        DataError: the input has changed since.
    """
    session = spark_session()
    with reported(session):
        record = _record_of(session, Account.of(config, None), run_id)
        return next(iter(pairs(session, config, record)), None)


def pairs(spark: SparkSession, config: RunConfig | None, record: RunRecord) -> Iterator[Example]:
    """Yield texts of the first records by row key, as the run read and wrote them.

    Raises:
        SettingsError: no settings, none with a row key, or those of another run.
        DataError: the input has changed since.
    """
    if config is None or not config.row_key:
        raise SettingsError(
            "with_examples: source and target are joined by row_key. Give the run's settings with one."
        )
    made_from, named = record.settings.values, config.as_dict()
    differ = [name for name in ("columns", "row_key", "output") if named[name] != made_from.get(name)]
    if differ:
        raise SettingsError(
            f"{differ[0]}: the settings differ from those of run {record.run_id}. Give the run's own."
        )
    source, version = read_input(spark, config.input, list(config.columns))
    if version != record.input_version:
        raise DataError(
            f"with_examples: the input is now {version}, not {record.input_version} of the run. Leave the examples out."
        )
    target = Target(path=config.output.path or "", name=config.output.table or "")
    written = opened(spark, target, record.output_version)
    sides = {"before": source, "after": written}
    texts = {
        side: [p.joined.alias(f"{side}_{i}") for i, p in enumerate(paths_of(frame.schema, config.columns))]
        for side, frame in sides.items()
    }
    key = quoted(config.row_key).alias("key")
    first = source.select(key, *texts["before"]).orderBy("key").limit(EXAMPLES)
    for pair in first.join(written.select(key, *texts["after"]), "key").orderBy("key").collect():
        for place, name in enumerate(config.columns):
            yield Example(name, *(_short(pair[f"{side}_{place}"]) for side in sides))


def _short(text: str | None) -> str:
    if text is None:
        return "NULL"
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} …"
