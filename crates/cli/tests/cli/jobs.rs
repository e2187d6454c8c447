//! Jobs of launchers of parallel work. Each rank that records is a run of one group. A run that
//! records a launcher shows its ranks.

use super::{Answer, Place};
use backstory_eventlog::job_rank::LAUNCHERS;
use backstory_testkit::need::needs;
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt::Write;
use std::path::Path;

/// Runs a line of a shell, which finds `backstory` and must print nothing.
fn launch(place: &Place, line: &str) {
    let mut shell = place.stage.command("/bin/sh");
    let bin = place.stage.path().join("bin").display().to_string();
    let path = format!("{bin}:{}", backstory_testkit::stage::PATH);
    shell
        .env("PATH", path)
        .env("BACKSTORY_STORE", place.stage.store());
    shell.args(["-c", line]).current_dir(place.work());
    let done = Answer::of(shell.output().unwrap());
    assert_eq!(
        (done.status, done.err.as_str()),
        (0, ""),
        "{line}: {done:?}"
    );
}

/// The facts about the job of each run, the newest run first.
fn jobs(place: &Place, args: &[&str]) -> Vec<Value> {
    let log = place.json(&[&["log", "--json"], args].concat());
    let runs = log.as_array().unwrap().iter();
    runs.map(|run| run["job"].clone()).collect()
}

/// Launches a line twice. Each time `size` runs are one group, of another job than the first time.
/// Returns the ranks of the second job.
pub(super) fn are_two_groups(place: &Place, line: &str, launcher: &str, size: usize) -> Vec<Value> {
    launch(place, line);
    launch(place, line);
    place.run(&["index", "--wait"]);
    let all = jobs(place, &[]);
    assert_eq!(all.len(), 2 * size, "{all:?}");
    assert!(all.iter().all(|job| job["launcher"] == launcher), "{all:?}");
    let ids: BTreeSet<&str> = all.iter().map(|job| job["id"].as_str().unwrap()).collect();
    assert_eq!(ids.len(), 2, "{all:?}");
    let last = all[0]["id"].as_str().unwrap();
    let group = jobs(place, &["--job", last]);
    assert_eq!(group.len(), size, "{group:?}");
    assert!(group.iter().all(|job| job["id"] == last), "{group:?}");
    // The list has one heading for each job.
    let listed = place.run(&["log"]).out;
    let headings = listed.lines().filter(|line| line.starts_with(launcher));
    assert_eq!(headings.count(), 2, "{listed}");
    group
}

/// The ranks of a group, which are the first numbers from `from` on.
pub(super) fn are_numbered(group: &[Value], from: u64) {
    let ranks: BTreeSet<u64> = group
        .iter()
        .map(|job| job["rank"].as_u64().unwrap())
        .collect();
    let expected: BTreeSet<u64> = (from..from + group.len() as u64).collect();
    assert_eq!(ranks, expected, "{group:?}");
}

const MPIRUN: &str = "mpirun --oversubscribe --allow-run-as-root -np 2";

#[test]
fn each_rank_of_mpirun_that_records_is_a_run_of_one_group() {
    if !needs("ranks of MPI", &["mpirun"]) {
        return;
    }
    let place = Place::new();
    let line =
        format!("{MPIRUN} backstory record -- sh -c 'echo text > out.$OMPI_COMM_WORLD_RANK'");
    let group = are_two_groups(&place, &line, "Open MPI", 2);
    are_numbered(&group, 0);
    assert!(group.iter().all(|job| job["size"] == 2), "{group:?}");
    for rank in 0..2 {
        let of = place.json(&["of", &format!("out.{rank}"), "--json"]);
        let run = of["nodes"][0]["run"].as_str().unwrap();
        let shown = place.run(&["show", run]).out;
        let expected = format!("job          rank {rank} of 2 in Open MPI job ");
        assert_eq!(shown.matches("\njob ").count(), 1, "{shown}");
        assert!(shown.contains(&expected), "{shown}");
    }
}

#[test]
fn the_ranks_of_mpirun_in_one_run_are_shown() {
    if !needs("ranks of MPI", &["mpirun"]) {
        return;
    }
    let place = Place::new();
    let run = place.record(&format!(
        "{MPIRUN} sh -c 'echo x > $OMPI_COMM_WORLD_RANK; true'"
    ));
    let shown = place.json(&["show", &run, "--json"]);
    assert_eq!(shown["job"], Value::Null, "{shown}");
    let job = &shown["jobs"][0];
    assert_eq!(
        (&job["launcher"], &job["size"]),
        (&"Open MPI".into(), &2.into())
    );
    assert_eq!(job["ranks"], serde_json::json!([0, 1]));
    let text = place.run(&["show", &run]).out;
    assert!(text.contains(": 2 ranks of 2 here (0, 1)\n"), "{text}");
    let processes = place.run(&["processes", &run, "--all"]).out;
    for rank in 0..2 {
        let expected = format!(", rank {rank} of 2 in Open MPI job ");
        assert_eq!(processes.matches(&expected).count(), 1, "{processes}");
    }
}

/// `srun -n TASKS COMMAND…`, with the variables of Slurm's, and the job of the caller.
const SRUN: &str = "#!/bin/sh
tasks=$2; shift 2
rank=0
while [ $rank -lt $tasks ]; do
    SLURM_JOB_ID=71 SLURM_STEP_ID=$STEP SLURM_PROCID=$rank SLURM_STEP_NUM_TASKS=$tasks \"$@\" &
    rank=$((rank + 1))
done
wait
";

#[test]
fn each_rank_of_srun_that_records_is_a_run_of_one_group() {
    let place = Place::new();
    place.write_program("srun", SRUN);
    let line = "export STEP=$(ls | wc -l); mktemp file.XXXXXX >/dev/null; \
                ./srun -n 3 backstory record -- true";
    are_numbered(&are_two_groups(&place, line, "Slurm", 3), 0);
}

/// `mpiexec -n TASKS COMMAND…` of MPICH, whose variables tell no job. A shell stands between it and
/// each command.
const MPIEXEC: &str = "#!/bin/sh
echo $$ > launcher
tasks=$2; shift 2
rank=0
while [ $rank -lt $tasks ]; do
    PMI_RANK=$rank PMI_SIZE=$tasks sh -c '\"$@\"; true' task \"$@\" &
    rank=$((rank + 1))
done
wait
";

#[test]
fn the_ranks_of_a_launcher_that_names_no_job_are_a_job_named_by_its_process() {
    let place = Place::new();
    place.write_program("mpiexec", MPIEXEC);
    let line = "./mpiexec -n 3 backstory record -- true";
    let group = are_two_groups(&place, line, "PMI", 3);
    are_numbered(&group, 0);
    assert!(group.iter().all(|job| job["size"] == 3), "{group:?}");
    let launcher = std::fs::read_to_string(place.work().join("launcher")).unwrap();
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
    let id = group[0]["id"].as_str().unwrap();
    let tick = id
        .strip_prefix(&format!("{}.", launcher.trim()))
        .and_then(|rest| rest.strip_suffix(&format!("@{}", host.trim())));
    // Another process may get the number later, but not with the same start.
    assert!(tick.is_some_and(|tick| tick.parse::<u64>().is_ok()), "{id}");
}

#[test]
fn each_job_of_parallel_that_records_is_a_run_of_one_group() {
    if !needs("jobs of parallel", &["parallel"]) {
        return;
    }
    let place = Place::new();
    let line = "parallel --will-cite -j2 backstory record -- touch ::: a b c";
    are_numbered(&are_two_groups(&place, line, "GNU parallel", 3), 1);
}

#[test]
fn each_job_of_xargs_that_records_is_a_run_of_one_group() {
    let place = Place::new();
    let line = "printf '%s\\n' a b c | xargs -P3 -I@ sh -c 'backstory record -- touch @; true'";
    let group = are_two_groups(&place, line, "xargs", 3);
    assert!(group.iter().all(|job| job["rank"].is_null()), "{group:?}");
}

#[test]
fn a_run_without_a_launcher_has_no_job() {
    let place = Place::new();
    place.record("true");
    assert_eq!(jobs(&place, &[]), [Value::Null]);
}

/// The table of the page: launcher, commands, variables.
fn table() -> String {
    let mut out = String::from(
        "| launcher | started by | the rank's variable | the job's variables |\n| --- | --- | --- | --- |\n",
    );
    for row in LAUNCHERS {
        let job: Vec<String> = row.job.iter().map(|name| format!("`{name}`")).collect();
        let job = match job.is_empty() {
            true => "the process of the launcher".to_owned(),
            false => job.join(", "),
        };
        let (launcher, commands, rank) = (row.launcher, row.commands, row.rank);
        writeln!(out, "| {launcher} | {commands} | `{rank}` | {job} |").unwrap();
    }
    out
}

#[test]
fn the_page_of_jobs_lists_the_variables_of_all_launchers() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/howto/jobs.md");
    let page = std::fs::read_to_string(page).unwrap();
    assert!(
        page.contains(&table()),
        "docs/howto/jobs.md needs this table:\n{}",
        table()
    );
}
