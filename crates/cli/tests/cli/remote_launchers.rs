//! Launchers of parallel work: on other machines each job is a run of its own, started by one run
//! here. On one machine each rank is an activity of one run.

use super::Place;
use super::remote::TwoMachines;
use backstory_testkit::need::needs;
use serde_json::Value;
use std::collections::BTreeSet;

/// The runs on the other machine that the run here started, which must all be in the store.
fn started(both: &TwoMachines) -> BTreeSet<String> {
    let shown = both.run_here();
    assert_eq!(shown["complete"], true, "{shown}");
    let ends = shown["remote"].as_array().unwrap();
    let run = |end: &Value| end["run"].as_str().unwrap().to_owned();
    ends.iter().map(run).collect()
}

/// Each of the jobs made its file on the other machine, in a run that the run here started.
fn each_job_is_a_run(both: &TwoMachines, jobs: &[&str]) {
    let runs = started(both);
    let mut makers = BTreeSet::new();
    for job in jobs {
        let of = both
            .here
            .json(&["of", &both.far(&format!("{job}.n")), "--json"]);
        let nodes = of["nodes"].as_array().unwrap().iter();
        let found: BTreeSet<&str> = nodes.map(|node| node["run"].as_str().unwrap()).collect();
        let found = found.into_iter();
        makers.extend(found.filter(|run| runs.contains(*run)).map(str::to_owned));
    }
    assert_eq!(makers.len(), jobs.len(), "{makers:?} of {runs:?}");
}

#[test]
fn each_job_of_xargs_on_another_machine_is_a_run_of_one_group() {
    let Some(both) = TwoMachines::new("xargs with ssh") else {
        return;
    };
    let jobs = ["a", "b", "c"];
    for job in jobs {
        both.write_far(job, &format!("text of {job}\n"));
    }
    let ssh = both.words("ssh");
    let at = both.there.path().join("work").display().to_string();
    both.keep(&format!(
        "printf '%s\\n' a b c | xargs -P3 -I@ {ssh} -n box 'wc -c < {at}/@ > {at}/@.n'"
    ));
    each_job_is_a_run(&both, &jobs);
}

#[test]
fn each_job_of_parallel_on_another_machine_is_a_run_of_one_group() {
    let what = "parallel with ssh";
    if !needs(what, &["parallel"]) {
        return;
    }
    let Some(both) = TwoMachines::installed(what) else {
        return;
    };
    let jobs = ["a", "b"];
    for job in jobs {
        both.write_far(job, &format!("text of {job}\n"));
    }
    let ssh = both.words("ssh");
    let at = both.there.path().join("work").display().to_string();
    both.keep(&format!(
        "parallel --will-cite --ssh '{ssh}' --sshlogin 2/box 'wc -c < {at}/{{}} > {at}/{{}}.n' ::: a b 2>/dev/null"
    ));
    each_job_is_a_run(&both, &jobs);
}

/// The ranks of a job of MPI are processes of one run, and each file has its rank's history.
#[test]
fn each_rank_of_mpi_on_one_machine_is_an_activity_of_one_run() {
    if !needs("ranks of MPI", &["mpirun"]) {
        return;
    }
    let place = Place::new();
    for rank in [0, 1] {
        place.write_aged(&format!("in.{rank}"), &format!("input of rank {rank}\n"));
    }
    let line = "mpirun --oversubscribe --allow-run-as-root -np 2 \
                sh -c 'sort in.$OMPI_COMM_WORLD_RANK > out.$OMPI_COMM_WORLD_RANK' 2>messages";
    place.record(line);
    for (rank, other) in [(0, 1), (1, 0)] {
        let of = place.run(&["of", &format!("out.{rank}")]).out;
        assert!(of.contains(&format!("sort in.{rank}")), "{of}");
        assert!(!of.contains(&format!("in.{other}")), "{of}");
    }
    assert_eq!(place.runs().len(), 1);
}
