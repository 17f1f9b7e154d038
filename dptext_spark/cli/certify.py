"""`dptext certify`: the true worst-case loss of the law that is sampled."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from dptext_spark.cli.options import Config, Json, Override
from dptext_spark.errors import DataError
from dptext_spark.report.terminal.console import hanging, progress, width, write, write_json


def certify(
    config: Config = None,
    overrides: Override = None,
    sample: Annotated[
        int | None, typer.Option(min=2, help="Look at pairs among so many words, taken at equal steps.")
    ] = None,
    as_json: Json = False,
) -> None:
    """Compute the true worst-case loss of the law that is sampled, compare it with the guarantee, and keep the finding.

    It is kept in the compiled model, from which runs take it into their account; that of a sample only where there is none.
    """
    from dptext_spark.config.load import load_model_config
    from dptext_spark.model.artifact import certificate_of, keep_certificate
    from dptext_spark.model.certificate import certify as examine
    from dptext_spark.model.compile import prepare
    from dptext_spark.model.machine_code import expected_text
    from dptext_spark.model.record import SIZES, WEAK, record_account
    from dptext_spark.runtime.progress import counted

    settings = load_model_config(config, overrides or ())
    with progress() as say:
        privatizer, folder = prepare(settings, say)
        found = examine(privatizer, sample=sample, progress=counted("certifying", say))
    try:
        if sample is None or certificate_of(folder) is None:
            keep_certificate(folder, found)
            if settings.run.artifact is not None:
                sys.stderr.write(f"run.artifact_fingerprint: {expected_text(folder)} from now on\n")
    except DataError as error:  # the finding stands all the same
        sys.stderr.write(f"not kept: {error}\n")
    words = privatizer.vocabulary.strings()
    pair = found.loss.worst if found.loss is not None else None
    worst = None if pair is None else [words[word].as_py() for word in pair]
    record = record_account(privatizer)
    if as_json:
        sizes = [one.as_dict() for size in SIZES if (one := record.of(size)) is not None]
        return write_json({**found.as_dict(), "worst_words": worst, "record": sizes})
    write(hanging("", f"{privatizer.guarantee().sentence}", width()))
    write(hanging("", found.sentence, width()))
    if worst is not None:
        write(f"worst pair: {' / '.join(worst)}")
    write(hanging("", record.stated, width()))
    if not record.why and record.levels == 1:
        write(hanging("", f"{record.unit} {record.meaning()} {WEAK}", width()))
    write(f"{found.seconds:.1f} s")
