//! `record --remote` with a machine that has another root directory, another user and another host
//! name. Neither user is root.

use super::Place;
use super::doctor::REFUSING;
use backstory_testkit::need::needs;
use backstory_testkit::program;
use backstory_testkit::second_root::{HOST, SecondRoot};
use backstory_testkit::ssh_server::SshServer;
use std::fs;
use std::path::PathBuf;

/// A place, and the other machine.
struct FarMachine {
    here: Place,
    there: SecondRoot,
    config: PathBuf,
    _server: SshServer,
}

impl FarMachine {
    fn new(what: &str) -> Option<FarMachine> {
        let there = SecondRoot::new(what).unwrap()?;
        let here = Place::new();
        let server = SshServer::start_in(what, &here.stage, &there).unwrap()?;
        let config = server.write_client_config(&here.stage).unwrap();
        Some(FarMachine {
            here,
            there,
            config,
            _server: server,
        })
    }

    /// A file of the user there, as this root sees it.
    fn far(&self, name: &str) -> PathBuf {
        self.there.path().join("home/far").join(name)
    }

    /// `record --remote -- sh -c LINE`, which must succeed and print nothing. `CONFIG` stands for
    /// the configuration of ssh.
    fn keep(&self, line: &str) {
        let line = line.replace("CONFIG", self.config.to_str().unwrap());
        let words = ["record", "--remote", "--", "/bin/sh", "-c", &line];
        let done = self.here.run(&words);
        let log = fs::read_to_string(self.there.path().join("etc/ssh/log"));
        assert_eq!((done.status, done.err.as_str()), (0, ""), "{log:?}");
    }
}

#[test]
fn a_step_of_another_user_in_another_root_is_in_the_account_of_its_file() {
    let Some(both) = FarMachine::new("another user in another root") else {
        return;
    };
    fs::write(both.far("in"), "b\na\n").unwrap();
    std::thread::sleep(std::time::Duration::from_millis(30));
    both.keep("ssh -F CONFIG box 'sort in > out'");
    assert_eq!(fs::read_to_string(both.far("out")).unwrap(), "a\nb\n");
    let of = both.here.run(&["of", "/home/far/out"]).out;
    for words in [
        "sort in > out",
        "sources: in",
        "on box: run ",
        "started by run ",
    ] {
        assert!(of.contains(words), "{words}: {of}");
    }
    // Host names tell the machines apart.
    let log = both.here.json(&["log", "--host", HOST, "--json"]);
    assert_eq!(log.as_array().unwrap().len(), 1, "{log}");
    assert_eq!(log[0]["complete"], true, "{log}");
    // Store and program of the user there are in that user's home.
    for name in [".local/share/backstory/runs", ".cache/backstory/programs"] {
        assert_eq!(fs::read_dir(both.far(name)).unwrap().count(), 1, "{name}");
    }
    if !needs("scp from another root", &["scp"]) {
        return;
    }
    both.keep("scp -q -F CONFIG box:out copy");
    let of = both.here.run(&["of", "copy"]).out;
    assert!(of.contains("sort in > out"), "{of}");
}

#[test]
#[ignore = "a server of its own"]
fn files_of_one_path_on_two_machines_are_two_files() {
    let Some(both) = FarMachine::new("one path on two machines") else {
        return;
    };
    let path = both.here.path("same");
    let directory = both.here.work().display().to_string();
    both.keep("cp /etc/hostname source && cp source same");
    // The run there is the newer one.
    both.keep(&format!(
        "ssh -F CONFIG box 'mkdir -p {directory} && echo far > other && cp other {path}'"
    ));
    let of = both.here.run(&["of", "same"]).out;
    assert!(of.contains("cp source same"), "{of}");
    assert!(!of.contains("cp other"), "{of}");
    let shown = both.here.run(&["log", "--host", HOST]).out;
    let run = shown.split(' ').next().unwrap();
    let files = both.here.run(&["files", run, "--all"]).out;
    assert!(files.contains(&path), "{files}");
}

#[test]
#[ignore = "a server of its own"]
fn on_a_machine_without_seccomp_the_run_says_what_is_missing() {
    let what = "another machine without seccomp";
    if !needs(what, &["python3"]) {
        return;
    }
    let Some(both) = FarMachine::new(what) else {
        return;
    };
    // The login shell forbids seccomp(2) to itself and all that it starts, as a container would.
    let there = both.there.path();
    fs::create_dir(there.join("opt")).unwrap();
    fs::write(there.join("opt/refuse.py"), REFUSING).unwrap();
    let shell = "#!/bin/sh\n[ \"$REFUSED\" ] && exec /bin/sh \"$@\"\n\
                 REFUSED=1 exec /usr/bin/python3 /opt/refuse.py /bin/sh \"$@\"\n";
    program::write(&there.join("opt/sh"), shell.as_bytes()).unwrap();
    let users = fs::read_to_string(there.join("etc/passwd")).unwrap();
    let users = users.replace("/home/far:/bin/sh", "/home/far:/opt/sh");
    fs::write(there.join("etc/passwd"), users).unwrap();
    both.keep("ssh -F CONFIG box 'echo text > out'");
    let of = both.here.run(&["of", "/home/far/out"]).out;
    assert!(of.contains("echo text > out"), "{of}");
    let log = both.here.json(&["log", "--host", HOST, "--json"]);
    assert_eq!(log[0]["complete"], false, "{log}");
    let because = log[0]["incomplete_because"].to_string();
    assert!(because.contains("the system call filter"), "{because}");
}

#[test]
#[ignore = "a server of its own"]
fn the_ranks_that_mpirun_starts_on_another_machine_are_one_run_there() {
    let what = "ranks of MPI on another machine";
    if !needs(what, &["mpirun", "orted"]) {
        return;
    }
    let Some(both) = FarMachine::new(what) else {
        return;
    };
    both.keep(
        "mpirun --mca plm_rsh_agent 'ssh -F CONFIG' --host box:2 -np 2 -wdir /home/far \
         sh -c 'echo text > rank.$OMPI_COMM_WORLD_RANK'",
    );
    let log = both.here.json(&["log", "--host", HOST, "--json"]);
    let run = log[0]["run"].as_str().unwrap();
    let shown = both.here.json(&["show", run, "--json"]);
    let job = &shown["jobs"][0];
    assert_eq!(job["ranks"], serde_json::json!([0, 1]), "{shown}");
    for rank in 0..2 {
        let of = both
            .here
            .run(&["of", &format!("/home/far/rank.{rank}")])
            .out;
        assert!(of.contains("started by run "), "{of}");
    }
}
