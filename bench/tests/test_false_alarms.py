"""The command `hunt`: what counts as a run with a finding."""

from backstory_bench import false_alarms

RULES = [{"rule": "storm", "level": "high"}, {"rule": "quiet", "level": "low"}]
NAMES = {"r1": "build", "r2": "build", "r3": "tar", "r4": "tar"}


def test_a_run_counts_once_for_a_rule_however_often_it_matches() -> None:
    findings = [{"rule": "storm", "run": run} for run in ("r1", "r1", "r2", "r3")]
    assert false_alarms.counted(RULES, findings, NAMES) == [
        ["storm", "high", "3", "75.0 %", "4", "build (2), tar (1)"],
        ["quiet", "low", "0", "0.0 %", "0", ""],
    ]


def test_a_row_names_few_workloads_and_counts_the_others() -> None:
    names = {f"r{i}": f"w{i}" for i in range(6)}
    row = false_alarms.counted(RULES[:1], [{"rule": "storm", "run": run} for run in names], names)[0]
    assert row[-1] == "w0 (1), w1 (1), w2 (1), 3 more"


def test_the_name_of_a_workload_is_the_name_of_a_run() -> None:
    instance = next(iter(false_alarms.INSTANCES.values()))
    assert " " not in false_alarms.name_of(instance) and "/" not in false_alarms.name_of(instance)
