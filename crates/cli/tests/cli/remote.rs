//! `record --remote`: what a command starts on other machines is recorded there, and joined here.
//! The other machine is a real ssh server on the loopback interface, with another home.

use super::{Answer, Place};
use backstory_testkit::ssh_server::SshServer;
use backstory_testkit::stage::{PATH, Stage};
use backstory_testkit::user::User;
use std::fs;
use std::path::PathBuf;

/// Two machines: a place, and a server whose user has a home, a cache and a store elsewhere.
pub(super) struct TwoMachines {
    pub here: Place,
    pub there: Stage,
    server: Option<SshServer>,
    what: String,
    settings: String,
    config: PathBuf,
}

impl TwoMachines {
    pub fn new(what: &str) -> Option<TwoMachines> {
        TwoMachines::with(what, "")
    }

    /// With the program installed on the other machine, so that none is sent there. A program
    /// that was not optimized has a hundred megabytes.
    pub fn installed(what: &str) -> Option<TwoMachines> {
        let there = TwoMachines::machine();
        let programs = format!("PATH={}/bin:{PATH}", there.path().display());
        TwoMachines::begin(what, there, &programs)
    }

    /// With variables of the user on the other machine: `NAME=VALUE` and blanks.
    pub fn with(what: &str, settings: &str) -> Option<TwoMachines> {
        TwoMachines::begin(what, TwoMachines::machine(), settings)
    }

    fn machine() -> Stage {
        Stage::of(User::Myself, env!("CARGO_BIN_EXE_backstory").as_ref()).unwrap()
    }

    fn begin(what: &str, there: Stage, settings: &str) -> Option<TwoMachines> {
        let here = Place::new();
        there.directory("work").unwrap();
        let at = there.path().display();
        // The first value of a variable counts.
        let settings = format!(
            "SetEnv {settings} HOME={at}/home XDG_DATA_HOME={at}/data XDG_CACHE_HOME={at}/cache"
        );
        let mut both = TwoMachines {
            here,
            there,
            server: None,
            what: what.to_owned(),
            settings,
            config: PathBuf::new(),
        };
        both.start().then_some(both)
    }

    /// Starts the server. False where none is installed.
    pub fn start(&mut self) -> bool {
        let stage = &self.here.stage;
        let _ = fs::remove_dir_all(stage.path().join("sshd"));
        let server = SshServer::start_with(&self.what, stage, &self.settings).unwrap();
        if let Some(server) = &server {
            self.config = server.write_client_config(stage).unwrap();
        }
        self.server = server;
        self.server.is_some()
    }

    /// Ends the server and its connections.
    pub fn stop(&mut self) {
        self.server = None;
    }

    /// A file of the other machine.
    pub fn far(&self, name: &str) -> String {
        self.there
            .path()
            .join("work")
            .join(name)
            .display()
            .to_string()
    }

    /// The words that begin a command of ssh, scp or sftp.
    pub fn words(&self, program: &str) -> String {
        format!("{program} -F {}", self.config.display())
    }

    /// The configuration of ssh that names the server.
    pub fn config(&self) -> String {
        self.config.display().to_string()
    }

    /// `record --remote -- sh -c LINE`
    pub fn record(&self, line: &str) -> Answer {
        self.here
            .run(&["record", "--remote", "--", "/bin/sh", "-c", line])
    }

    /// The same, which must succeed and print nothing.
    pub fn keep(&self, line: &str) {
        let done = self.record(line);
        assert_eq!((done.status, done.err.as_str()), (0, ""), "{done:?}");
    }

    /// The newest run whose command begins here.
    pub fn run_here(&self) -> serde_json::Value {
        let log = self.here.json(&["log", "--json"]);
        let all = log.as_array().unwrap();
        let first = |run: &&serde_json::Value| run["command"][0] == "/bin/sh";
        let id = all.iter().find(first).unwrap()["run"].as_str().unwrap();
        self.here.json(&["show", id, "--json"])
    }

    /// Writes a file of the other machine that is old enough to be known by its content.
    pub fn write_far(&self, name: &str, text: &str) {
        fs::write(self.far(name), text).unwrap();
        std::thread::sleep(std::time::Duration::from_millis(30));
    }
}

const LONG: &str = "a line of text that is long enough to be known by its content alone\n";

#[test]
fn a_step_on_another_machine_is_in_the_account_of_its_file() {
    let Some(both) = TwoMachines::new("a command on another machine") else {
        return;
    };
    both.write_far("in", "b\na\n");
    let (ssh, input, out) = (both.words("ssh"), both.far("in"), both.far("out"));
    both.keep(&format!("{ssh} box 'sort {input} > {out}'"));
    let of = both.here.run(&["of", &out]);
    assert!(of.out.contains(&format!("sort {input}")), "{of:?}");
    assert!(of.out.contains("on box: run "), "{of:?}");
    assert!(of.out.contains("started by run "), "{of:?}");
    let shown = both.run_here();
    assert_eq!(shown["complete"], true, "{shown}");
    let text = both.here.run(&["show", shown["run"].as_str().unwrap()]);
    assert!(!text.out.contains("backstory-remote"), "{text:?}");
    assert_eq!(shown["remote"][0]["machine"], "box", "{shown}");
    assert_eq!(shown["remote"][0]["started_by_this_run"], true, "{shown}");
    let far = shown["remote"][0]["run"].as_str().unwrap();
    let far = both.here.json(&["show", far, "--json"]);
    assert_eq!(far["complete"], true, "{far}");
    assert_eq!(far["remote"][0]["run"], shown["run"], "{far}");
    // The other machine has the run in its own store, too.
    assert!(fs::exists(both.there.path().join("data/backstory/runs")).unwrap());
}

#[test]
fn data_flows_through_ssh_in_both_directions() {
    let Some(both) = TwoMachines::installed("data through ssh") else {
        return;
    };
    both.write_far("first", LONG);
    let (ssh, first, third) = (both.words("ssh"), both.far("first"), both.far("third"));
    both.keep(&format!(
        "cd {}; {ssh} box 'cat {first}' > second",
        both.path()
    ));
    let of = both.here.run(&["of", &both.here.path("second")]);
    assert!(of.out.contains(&format!("cat {first}")), "{of:?}");
    both.keep(&format!(
        "cd {}; {ssh} box 'tr a-z A-Z > {third}' < second",
        both.path()
    ));
    let of = both.here.run(&["of", &third]);
    for step in ["tr a-z A-Z", "< second", "> second", &first] {
        assert!(of.out.contains(step), "{step}: {of:?}");
    }
    let uses = both.here.run(&["uses", &first]);
    assert!(uses.out.contains("tr a-z A-Z"), "{uses:?}");
}

impl TwoMachines {
    pub fn path(&self) -> String {
        self.here.work().display().to_string()
    }
}
