"""Events that OpenLineage's client emits for two runs of a job and one of another.

usage: lineage_events.py OUT
"""

import sys
from pathlib import Path

from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import InputDataset, Job, OutputDataset, Run, RunEvent, RunState
from openlineage.client.facet_v2 import parent_run, sql_job
from openlineage.client.transport.file import FileConfig, FileTransport

out = Path(sys.argv[1])
out.unlink(missing_ok=True)
client = OpenLineageClient(
    transport=FileTransport(FileConfig(log_file_path=str(out), append=True))
)


def run(number, name, times, inputs, outputs, state=RunState.COMPLETE, parent=None):
    """Emits the begin and the end of a run."""
    facets = {}
    if parent:
        facets["parent"] = parent_run.ParentRunFacet(
            run=parent_run.Run(runId=parent), job=parent_run.Job(namespace="nightly", name="all")
        )
    query = sql_job.SQLJobFacet(query=f"INSERT INTO {name}")
    for kind, time in zip((RunState.START, state), times, strict=True):
        client.emit(
            RunEvent(
                eventType=kind,
                eventTime=f"2026-11-23T03:{time}:00.000000Z",
                run=Run(runId=f"01941a00-0000-7000-8000-00000000000{number}", facets=facets),
                job=Job(namespace="nightly", name=name, facets={"sql": query}),
                inputs=[InputDataset(*one) for one in inputs],
                outputs=[OutputDataset(*one) for one in outputs],
                producer="https://github.com/OpenLineage/OpenLineage",
            )
        )


accounts = ("postgres://bank:5432", "bank.public.accounts")
whole = "01941a00-0000-7000-8000-000000000009"
run(1, "load", ("10", "11"), [("file", "/home/ada/new.csv")], [accounts], parent=whole)
run(2, "report", ("12", "13"), [accounts], [("file", "/home/ada/report.csv")], parent=whole)
run(3, "load", ("14", "15"), [("file", "/home/ada/late.csv")], [accounts], RunState.FAIL)
