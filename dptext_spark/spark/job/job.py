"""One run: read, privatize, write, account. It commits once or not at all.

A run's effects outside of its process come one after the other. They are the reservation in the ledger, the row of `runs` that
binds the run, and the empty table of a target by name. The data and their commit, the settlement in the ledger, the metrics, and
the account in `runs` follow. A process that ends between two of them leaves those before:

- the reservation without the run's row: it counts, and the next attempt finds it. All refusals come first, so that a refused run
has no row. Both are written before the first data file.
- the settlement without the metrics: the run has committed but has no account, so the next attempt writes the metrics.
- both without the account. The account comes last and vouches for both: a run that has one is not made again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from dptext_spark.audit.deniability import expected_change
from dptext_spark.config.model import RunConfig
from dptext_spark.config.requirements import Verdict
from dptext_spark.disclosure.disclosure import disclosure
from dptext_spark.disclosure.facts import Figures, Metrics, RunFacts, RunRecord, UnchangedRun
from dptext_spark.errors import CountMismatchError, DPTextError, NoRowsError, RecordingError, RunError
from dptext_spark.ledger.entry import SPENT
from dptext_spark.model.record import RecordEpsilon, RecordUnits
from dptext_spark.model.target_checks import Commit, our_commits
from dptext_spark.report.summary import summary
from dptext_spark.runtime.display import Steps, cut, line
from dptext_spark.runtime.validation import Json
from dptext_spark.spark.column_function import UNKNOWN_ROWS
from dptext_spark.spark.job import ledger, runs, writing
from dptext_spark.spark.job.idempotency import (
    bind_run,
    changed_since,
    check_finished,
    check_same_part,
    check_still_there,
)
from dptext_spark.spark.job.planned_run import RunPlan
from dptext_spark.spark.job.prepare import check_language
from dptext_spark.spark.job.writing import Counts, is_of_another, record_units, recounted, write
from dptext_spark.spark.session import cores_of
from dptext_spark.spark.spark_errors import reduced, suppress_sensitive_logs
from dptext_spark.spark.tables import leftover_files, own_table, releases

WAIT = 600.0  # seconds that a process waits for the account of another one that committed the same run


@dataclass(frozen=True)
class RunResult:
    """Outcome of a run.

    Attributes:
        outcome: its facts, or that nothing was done.
        verdict: outcome of the settings' requirements; None without requirements.

    Examples:
        >>> dps.run(dp.load_config("reviews.yaml", ["run.id=first"])).status  # again: nothing is written twice
        'unchanged'
    """

    outcome: RunFacts | UnchangedRun
    verdict: Verdict | None = None

    def __repr__(self) -> str:
        """Return id and status; figures of the private text are in `facts`."""
        return line("RunResult", cut(repr(self.run_id), 120), self.status)

    def _repr_html_(self) -> str:
        """Return the shareable facts of the run as HTML, for a notebook; figures of the private text are in `facts`."""
        outcome = (
            self.outcome if isinstance(self.outcome, UnchangedRun) else replace(self.outcome, figures=None)
        )
        return summary(outcome, verdict=self.verdict).html(
            "Figures of the private text are not shown here; `facts` has them."
        )

    @property
    def run_id(self) -> str:
        """The run's id, for `report` and in the tables of the account."""
        return str(self.facts["run_id"])

    @property
    def status(self) -> str:
        """`succeeded`, `recovered` (its commit stood, its account is made now), or `unchanged` (it had committed before)."""
        return self.outcome.status

    @property
    def broken(self) -> list[str]:
        """Broken requirements of the settings. Figures without a measurement are not among them."""
        return [] if self.verdict is None else self.verdict.why

    @property
    def facts(self) -> dict[str, Json]:
        """All facts, JSON-able; `restricted` holds those that depend on the private text."""
        return self.as_dict(internal=True)

    def as_dict(self, internal: bool = False) -> dict[str, Json]:
        """Return the facts, JSON-able, without the restricted ones unless `internal`."""
        facts = self.outcome.as_dict(internal=internal)
        return facts if self.verdict is None else {**facts, "verdict": self.verdict.as_dict()}


@dataclass(frozen=True, eq=False)
class Attempt:
    """A bound run with its reservation.

    Attributes:
        plan: the run.
        record: its row of `runs`.
        reservation: the ε that it spends.
        commits: of the target, newest first; after its write, if the run has written.
        started: in epoch seconds.
        is_recovery: an earlier process wrote the data, and only their account is missing.
        is_first: neither the table of runs nor the ledger knows an attempt before.
        counts: counts of the run; None if unknown.
        seconds: of the write; None where it was an earlier process's.
    """

    plan: RunPlan
    record: RunRecord
    reservation: ledger.Reservation
    commits: Sequence[Commit]
    started: float
    is_recovery: bool
    is_first: bool
    counts: Counts | None = None
    seconds: float | None = None

    @property
    def commit(self) -> Commit | None:
        """The commit of the run; None where the target has none."""
        return our_commits(self.commits).get(self.plan.run_id)


def run_once(prepare: Callable[[], RunPlan], config: RunConfig, say: Steps) -> RunResult:
    """Carry out one run, or one micro-batch of a stream: bind, write and account for the plan of `prepare`."""
    started = time.time()
    with suppress_sensitive_logs(), ExitStack() as at_the_end:
        with _nothing_written(config):
            plan = prepare()
            if plan.lists is not None and plan.stream is None:
                at_the_end.callback(plan.lists.end)
            attempt = _bound(plan, started, say)
        if isinstance(attempt, Attempt):
            attempt = _written(attempt, say)
        return _accounted(attempt, say) if isinstance(attempt, Attempt) else attempt


@contextmanager
def _nothing_written(config: RunConfig) -> Iterator[None]:
    """Add to a failure in the block that nothing was written; errors of ours state it themselves."""
    try:
        yield
    except DPTextError as error:
        raise error from None
    except Exception as error:
        failure = reduced(error, list(config.columns))
        raise type(failure)(f"{failure} Nothing was written to the target.") from None


@contextmanager
def _committed(plan: RunPlan) -> Iterator[None]:
    """Add to a failure in the block, after the commit, that the data was committed."""
    try:
        yield
    except (CountMismatchError, RecordingError) as error:
        raise error from None  # they state themselves what was committed
    except Exception as error:
        raise _not_accounted(plan, _reduced(plan, error)) from None


def _reduced(plan: RunPlan, error: Exception) -> DPTextError:
    maps = [path.name for path in plan.paths if path.over == "map"]
    return reduced(error, list(plan.config.columns), maps)


def _bound(plan: RunPlan, started: float, say: Steps) -> Attempt | RunResult:
    """Bind a run to the settings of its run id, and reserve its ε; or return that it is done already."""
    earlier, record = _earlier(plan), plan.record("started", started)
    if plan.stream is not None:
        check_same_part(plan, earlier)
    if earlier is not None and earlier.status == "mismatch":
        raise _mismatched(earlier, plan)
    if earlier is not None and earlier.status in runs.FINISHED:
        return RunResult(_unchanged(plan, record, earlier))
    commits = plan.commits()
    # Committed before, but its account was lost: nothing is written again, only counted, if the key is the same.
    commit = our_commits(commits).get(plan.run_id)
    if commit is not None:
        check_still_there(plan.place.target, plan.run_id, commit.version, commits)
    record = bind_run(plan, record, earlier, commit)
    if commit is None and plan.rows == 0:
        raise _no_row(plan.config)
    if commit is None and (plan.stream is None or plan.stream.is_unseen):
        check_language(plan, say)
    say("reserving what the run spends")
    with ledger.reserved(
        plan, committed=commit is not None, second=record.second_release, commits=commits
    ) as reservation:
        record = replace(record, cumulative=reservation.cumulative)
        is_first = earlier is None and not reservation.again
        row = runs.put(plan.spark, plan.place.runs, record, new=is_first, keep_finished=True)
    if row is not record:  # another process did it meanwhile
        return _by_another(plan, reservation)
    return Attempt(plan, record, reservation, commits, started, commit is not None, is_first)


def _unchanged(plan: RunPlan, record: RunRecord, earlier: RunRecord) -> UnchangedRun:
    """Return a finished run with the changes since; refuse a run with other settings."""
    check_finished(record, earlier, of_stream=plan.stream is not None)
    assert earlier.output_version is not None
    commits = plan.commits()
    check_still_there(plan.place.target, plan.run_id, earlier.output_version, commits)
    now = None if record.input_version == earlier.input_version else record.input_version
    return UnchangedRun(earlier, now, tuple(changed_since(record, earlier, commits)))


def _written(attempt: Attempt, say: Steps) -> Attempt | RunResult:
    """Write the data, or count an earlier process's data again; or return the result of a simultaneous process."""
    plan, record = attempt.plan, attempt.record
    if attempt.is_recovery:  # the process that wrote began before; it may have ended
        with _committed(plan):
            counts = recounted(plan, record.key_commitment, say)
            row = runs.find(plan.spark, plan.place.runs, plan.run_id)
        if row is not None and row.status in (*runs.FINISHED, "mismatch"):
            return _by_another(plan, attempt.reservation)
        return replace(attempt, counts=counts)
    try:
        counts, seconds, commits = write(plan, record, say, new=not attempt.commits)
    except Exception as error:
        return _failed(attempt, _reduced(plan, error))
    written = replace(attempt, counts=counts, seconds=seconds, commits=commits)
    if is_of_another(plan, written.commit):
        return _by_another(plan, attempt.reservation)
    if written.commit is None:
        raise RunError(
            f"the target's history has no commit of run {plan.run_id}: the table holds nothing of this run."
        )
    return written


def _accounted(attempt: Attempt, say: Steps) -> RunResult:
    """Settle and account for a committed run."""
    plan, reservation = attempt.plan, attempt.reservation
    with _committed(plan):
        units = record_units(plan, attempt.counts)
        bound = ledger.ledger_bound(plan, units)
        ledger.settle(reservation, SPENT, bound=bound)  # it is spent, whatever the account comes to
        record = replace(attempt.record, cumulative=reservation.cumulative_with(bound))
        return RunResult(reconcile(replace(attempt, record=record), units, say))


def _earlier(plan: RunPlan) -> RunRecord | None:
    """Return the row of an earlier attempt; the table is read only where there can be one."""
    is_new = plan.config.run.id is None if plan.stream is None else not plan.stream.is_begun
    if is_new:
        own_table(plan.spark, plan.place.runs)
        return None
    return runs.find(plan.spark, plan.place.runs, plan.run_id)


def _no_row(config: RunConfig) -> NoRowsError:
    """Refuse to release nothing: it would cost an ε, and under mode `overwrite` empty the target."""
    if config.input.where is None:
        what = "input: the table has no row. Use a table with rows."
    else:
        what = "input.where: no row of the input meets the condition. Use a condition that a row meets."
    return NoRowsError(f"{what} Nothing was written to the target, and nothing spent.")


def _by_another(plan: RunPlan, reservation: ledger.Reservation) -> RunResult:
    """Return the run as unchanged, once the process that committed it has accounted for it."""
    with _committed(plan):
        ledger.settle(reservation, SPENT)  # for the same draws, which count once
        until = time.monotonic() + WAIT
        while time.monotonic() < until:
            row = runs.find(plan.spark, plan.place.runs, plan.run_id)
            if row is not None and row.status == "mismatch":
                raise _mismatched(row, plan)
            if row is not None and row.status in runs.FINISHED:
                runs.put(
                    plan.spark, plan.place.runs, row
                )  # replaces a row that this process may have appended
                return RunResult(UnchangedRun(row, None))
            time.sleep(1.0)
        raise RunError("Another process began the same command at the same moment.")


def _mismatched(row: RunRecord, plan: RunPlan) -> CountMismatchError:
    # Not "unchanged": whoever tries again must not take it for sound.
    return CountMismatchError(
        f"run {plan.run_id} committed version {row.output_version} of {plan.place.target} earlier, but its counts or its "
        "consistency did not agree. Nothing was written again. Do not share that version."
    )


def _failed(attempt: Attempt, failure: DPTextError) -> RunResult:
    """Note a failed write, and raise an error that states whether it committed: the failure alone does not show it.

    Where another process committed the same run, that is no failure: the run is unchanged.
    """
    plan = attempt.plan
    try:
        commit = our_commits(plan.commits()).get(plan.run_id)
    except Exception:
        raise RunError(
            f"{failure} The target's history cannot be read, so the run may have committed. Run again "
            f"with run.id={plan.run_id} and the same key: nothing is written twice."
        ) from None
    if is_of_another(plan, commit):
        return _by_another(plan, attempt.reservation)
    if commit is not None:
        raise _not_accounted(plan, failure) from None
    note = " The run failed before its commit."
    try:
        left = leftover_files(plan.spark, plan.place.target, attempt.started)
        note += f" It left files behind, in no version of the table: {', '.join(left)}." if left else ""
        ledger.failed(attempt.reservation, plan, left, attempt.started)
        row = replace(attempt.record, status="failed")
        runs.put(plan.spark, plan.place.runs, row, keep_finished=True)
    except Exception:
        note += " Files that it left behind could not be listed or recorded."
    raise type(failure)(f"{failure}{note}") from None


def _not_accounted(plan: RunPlan, failure: DPTextError) -> RecordingError:
    return RecordingError(
        f"{failure} The data was committed, but not accounted for. Run again with "
        f"run.id={plan.run_id} to account for it. Do not share the table before."
    )


def reconcile(attempt: Attempt, units: RecordUnits | None, say: Steps) -> RunFacts:
    """Compare the counts with the commit, audit consistency, write the tables, and report.

    `units` are those of the records, where one has several rows. The account comes last, after the settlement and the metrics: a
    run that says that it has ended is not made again.
    """
    plan, record, counts, commit = attempt.plan, attempt.record, attempt.counts, attempt.commit
    assert commit is not None
    spark, recovered = plan.spark, attempt.is_recovery
    problems = []
    if counts is None:
        if not recovered:
            problems.append("its counts did not arrive")
    elif commit.rows not in (None, counts.rows):
        problems.append(f"{counts.rows:,} rows were counted and {commit.rows:,} written")
    audited = writing.audit(plan, commit.version, commit.rows, say)
    problems += audited.problems
    metrics, figures, epsilon = _metrics(attempt, audited, units)
    facts = replace(
        plan.facts,
        status="mismatch" if problems else "recovered" if recovered else "succeeded",
        problems=tuple(problems),
        rows=commit.rows,
        seconds=round(time.time() - attempt.started, 3),
        write_seconds=None if attempt.seconds is None else round(attempt.seconds, 3),
        tokens_per_second=None if figures is None else figures["tokens_per_second"],
        text_bytes=None if counts is None else counts.text_bytes,
        counted=None if counts is None else "again" if recovered else "while writing",
        cores=cores_of(spark),
        record_epsilon=epsilon,
        other_columns=tuple(plan.others),
        input_version=plan.input_version,
        corrupt_records=plan.corrupt,
        output_version=commit.version,
        releases_in_history=len(releases(attempt.commits)),
        audited=audited.said,
        passed=audited.passed,
        key_kind=record.key_kind,
        second_release=record.second_release,
        ledger=record.spent,
        expected_change=None if plan.stream is not None else expected_change(plan.privatizer),
        figures=figures,
    )
    facts = replace(facts, disclosure=disclosure(facts))
    say("writing the account")
    try:
        # Neither the target nor the table of runs need know of an earlier attempt any more: they may have been deleted.
        new = attempt.is_first and not recovered
        runs.put_metrics(spark, plan.place.metrics, plan.run_id, runs.rows_of(metrics), new=new)
        # A row that another process writes meanwhile is better news: it succeeded, and this one came after its commit.
        keep = recovered or bool(problems)
        runs.put(spark, plan.place.runs, record.ended(facts), keep_finished=keep)
    except Exception:
        if not problems:
            raise
        problems.append("its account could not be written")  # lesser news, which must not hide the other
    if problems:
        raise CountMismatchError(
            f"run {plan.run_id} committed version {commit.version} of {plan.place.target}, but "
            f"{'; '.join(problems)}. Nothing was rolled back. Do not share this version."
        )
    return facts


def _metrics(
    attempt: Attempt, audited: writing.Audit, units: RecordUnits | None
) -> tuple[Metrics, Figures | None, RecordEpsilon | None]:
    """Return the metrics, those of them that the facts of the run hold, and the ε of its records."""
    plan, counts, seconds = attempt.plan, attempt.counts, attempt.seconds
    whole = {"write_seconds": seconds}
    if plan.stream is not None and plan.stream.dropped is not None:
        whole["duplicates_dropped"] = float(plan.stream.dropped)
    whole |= {f"consistency_{name}": float(value) for name, value in audited.figures.items()}
    if counts is None:
        return {None: whole}, None, None
    figures = {**writing.shares(counts.whole), UNKNOWN_ROWS: float(counts.unknown_rows)}
    speed = None if seconds is None else (figures["words"] or 0.0) / seconds if seconds else 0.0
    figures["tokens_per_second"] = speed
    # Words are chosen over all texts of a row, and a word in several texts is counted once.
    chosen = plan.config.importance is not None or plan.config.budget is not None
    several = len(plan.columns) > 1 or writing.several_rows(plan) or any(path.over for path in plan.paths)
    assert plan.facts.record is not None
    epsilon = plan.facts.record.over(counts.units if units is None else units, summed=several and not chosen)
    columns = zip(plan.columns, map(writing.shares, counts.columns), strict=True)
    return {**dict(columns), None: {**whole, **figures, **epsilon.figures}}, figures, epsilon
