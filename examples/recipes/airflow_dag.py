"""Airflow: brings the store of plant A up to date each hour.

If the day's allowance is spent, the task is skipped and the next run continues. For Airflow 3; in
Airflow 2 DAG is imported from ``airflow``, and BashOperator from ``airflow.operators.bash``.
"""

from datetime import UTC, datetime, timedelta

from airflow.providers.standard.operators.bash import BashOperator
from airflow.sdk import DAG

with DAG(
    dag_id="siteline_plant_a",
    schedule="7 * * * *",
    start_date=datetime(2026, 11, 1, tzinfo=UTC),
    catchup=False,  # a sync reads all that is due, however many runs were missed
    max_active_runs=1,
):
    BashOperator(
        task_id="sync",
        bash_command=(
            "/opt/siteline/bin/siteline sync /etc/siteline/feeds.toml"
            " /var/lib/siteline/plant.siteline --profile plant-a --skip-code 99 --wait 10m"
        ),
        skip_on_exit_code=99,
        env={"SITELINE_CONFIG": "/etc/siteline/config.toml"},
        append_env=True,
        retries=2,
        retry_delay=timedelta(minutes=5),
    )
