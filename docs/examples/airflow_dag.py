"""An Airflow DAG: a run of the job each day, its run id that of the day.

A task that is tried again names the same run: what was written is not written again, and the ledger counts it once. The settings
must name a key that lasts (key.file, key.env or key.secret).
"""

from datetime import datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="sanitize_reviews",
    schedule="@daily",
    start_date=datetime(2026, 1, 1),
    catchup=False,
    max_active_runs=1,
    params={"settings": "/etc/dptext/reviews.yaml"},
    default_args={"retries": 2, "retry_delay": timedelta(minutes=10)},
) as dag:
    sanitize = BashOperator(
        task_id="sanitize",
        bash_command="dptext run {{ params.settings }} --set run.id=reviews-{{ ds_nodash }}",
    )
    balance = BashOperator(
        task_id="balance",
        bash_command="dptext ledger /data/ledgers/reviews",
    )
    sanitize >> balance
