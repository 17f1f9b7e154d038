"""A dbt model: the reviews with their text sanitized, as a table of the project. dbt calls `model` with the session's Spark.

What it needs stands in the model's `config` (docs/guide/sql): the compiled model, where the key is, what token-level draws are
for, the ledger, and the table that the ledger counts.
"""

import dptext_spark as dp
from dptext_spark import spark as dps


def model(dbt, session):
    """Return the sanitized table; the ledger is charged for it before a row is read."""
    dbt.config(materialized="table")
    settings = dbt.config.get
    dps.register(
        session,
        "dptext",
        dp.open_model(settings("dptext_model")),
        column="body",
        run_id=settings("dptext_run_id"),
        key=dp.RunKey.from_file(settings("dptext_key"), deliver="executors"),
        ledger=settings("dptext_ledger"),
        input={"table": settings("dptext_input")},
        row_key="review_id",
        replace="dptext",
    )
    dbt.ref("reviews").createOrReplaceTempView("dptext_reviews")
    return session.sql("SELECT review_id, customer, dptext(body, review_id) AS body FROM dptext_reviews")
