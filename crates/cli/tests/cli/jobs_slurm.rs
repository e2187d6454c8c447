//! Jobs of a real Slurm, whose daemons the test starts: `slurmctld`, `slurmd` and `munged`.

use super::Place;
use super::jobs::{are_numbered, are_two_groups};
use backstory_testkit::need::needs;
use backstory_testkit::ports::free_port;
use backstory_testkit::procs::eventually;
use backstory_testkit::stage::Stage;
use backstory_testkit::user::{User, suite_is_root};
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

/// How long the daemons of Slurm may take to start.
const PATIENCE: Duration = Duration::from_secs(120);

/// A cluster of this machine alone. Its daemons end when it is dropped.
struct SlurmCluster {
    daemons: Vec<Child>,
    configuration: PathBuf,
}

impl SlurmCluster {
    /// `None`, with a notice, where Slurm is not installed, or the suite is not root.
    fn start(what: &str, stage: &Stage) -> Option<SlurmCluster> {
        let programs = ["slurmctld", "slurmd", "munged", "srun", "sbatch"];
        if !needs(what, &programs) {
            return None;
        }
        if !suite_is_root() {
            backstory_testkit::need::skipped(what, "needs root: slurmd continues as other users");
            return None;
        }
        let at = stage.path().join("slurm");
        for name in ["", "state", "spool"] {
            User::Myself.directory(&at.join(name)).unwrap();
        }
        fs::write(at.join("key"), [7; 1024]).unwrap();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let configuration = at.join("slurm.conf");
        let text = CONFIGURATION
            .replace("AT", &at.display().to_string())
            .replace("HOST", host.trim())
            .replace("PORT1", &free_port().unwrap().to_string())
            .replace("PORT2", &free_port().unwrap().to_string());
        fs::write(&configuration, text).unwrap();
        let mut cluster = SlurmCluster {
            daemons: Vec::new(),
            configuration,
        };
        let file = |option: &str, name: &str| format!("--{option}={}", at.join(name).display());
        cluster.daemon(
            "munged",
            &[
                "--force".to_owned(),
                "--foreground".to_owned(),
                file("socket", "socket"),
                file("key-file", "key"),
                file("pid-file", "munged.pid"),
                file("seed-file", "seed"),
                file("log-file", "munged.log"),
            ],
        );
        let is_open = || at.join("socket").exists();
        assert!(eventually(PATIENCE, is_open), "no socket of munged");
        cluster.daemon("slurmctld", &["-D".to_owned()]);
        cluster.daemon("slurmd", &["-D".to_owned()]);
        let is_idle = || {
            let mut sinfo = Command::new("sinfo");
            sinfo.env("SLURM_CONF", &cluster.configuration);
            let shown = sinfo.args(["-h", "-o", "%t"]).output().unwrap();
            shown.stdout.starts_with(b"idle")
        };
        assert!(
            eventually(PATIENCE, is_idle),
            "no machine that Slurm can use"
        );
        Some(cluster)
    }

    fn daemon(&mut self, program: &str, args: &[String]) {
        let program = backstory_testkit::need::find(program).unwrap();
        let log = Path::new(&self.configuration).with_file_name("daemons.log");
        let log = fs::File::options().append(true).create(true).open(log);
        let log = log.unwrap();
        let mut command = Command::new(program);
        command.args(args).env("SLURM_CONF", &self.configuration);
        command
            .stdin(Stdio::null())
            .stdout(log.try_clone().unwrap());
        self.daemons.push(command.stderr(log).spawn().unwrap());
    }

    /// The command line with the variable that leads to this cluster.
    fn line(&self, line: &str) -> String {
        format!("export SLURM_CONF={}; {line}", self.configuration.display())
    }
}

impl Drop for SlurmCluster {
    fn drop(&mut self) {
        for daemon in self.daemons.iter_mut().rev() {
            let _ = daemon.kill();
            let _ = daemon.wait();
        }
    }
}

const CONFIGURATION: &str = "ClusterName=test
SlurmctldHost=HOST(127.0.0.1)
SlurmctldPort=PORT1
SlurmdPort=PORT2
AuthType=auth/munge
AuthInfo=socket=AT/socket
SlurmUser=root
StateSaveLocation=AT/state
SlurmdSpoolDir=AT/spool
SlurmctldPidFile=AT/slurmctld.pid
SlurmdPidFile=AT/slurmd.pid
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SwitchType=switch/none
ReturnToService=2
SelectType=select/cons_tres
NodeName=HOST NodeAddr=127.0.0.1 CPUs=2 State=UNKNOWN
PartitionName=all Nodes=HOST Default=YES State=UP OverSubscribe=FORCE:4
";

/// Each line makes two ranks that record, in one group.
fn groups(what: &str, line: &str, launcher: &str, first: u64) {
    let place = Place::new();
    let Some(cluster) = SlurmCluster::start(what, &place.stage) else {
        return;
    };
    let script = "#!/bin/sh\nexec backstory record -- true\n";
    place.write_program("task", script);
    let group = are_two_groups(&place, &cluster.line(line), launcher, 2);
    are_numbered(&group, first);
    assert!(group.iter().all(|job| job["size"] == 2), "{group:?}");
}

#[test]
#[ignore = "daemons of Slurm"]
fn each_rank_of_a_real_srun_is_a_run_of_one_group() {
    groups("ranks of Slurm", "srun --quiet -n 2 ./task", "Slurm", 0);
}

#[test]
#[ignore = "daemons of Slurm"]
fn each_rank_of_a_real_srun_with_pmi_is_a_run_of_one_group() {
    let line = "srun --quiet --mpi=pmi2 -n 2 ./task";
    groups("ranks of Slurm with PMI", line, "PMI", 0);
}

#[test]
#[ignore = "daemons of Slurm"]
fn each_task_of_a_real_array_of_slurm_is_a_run_of_one_group() {
    let line = "sbatch --wait --quiet -o /dev/null --array=1-2 task >/dev/null";
    groups("an array of Slurm", line, "Slurm array", 1);
}
