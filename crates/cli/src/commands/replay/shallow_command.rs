//! A command that the deep log of its run does not have, as a static program. It runs again with
//! its recorded arguments, without its recorded input. The programs that it executes are fed. Its
//! end is compared.

use std::ffi::OsStr;
use std::fs::File;
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use backstory_deep::DeepLog;
use backstory_eventlog::run::RunEnd;
use backstory_query::answer::ProcessLine;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::process::ProcessStart;
use backstory_reconstruct::verdict::Reconstruction;
use backstory_replay::plan::Plan;
use serde::{Deserialize, Serialize};

use crate::commands::deep_programs;

/// The bit of the kernel's status that tells that a signal left a core dump. The record lacks it.
const CORE: i32 = 0x80;

/// The command, and how it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShallowCommand {
    pid: u32,
    program: Vec<u8>,
    /// The kernel's status of its end.
    status: Option<i32>,
}

impl ShallowCommand {
    /// The command of a run that executed these programs. `None`: the deep log has it, or is
    /// damaged. A program of another architecture is refused, too. The supervisor answers none of
    /// its calls, so it would not end.
    pub fn of(
        log: &DeepLog,
        executed: &[ProcessLine],
        status: Option<i32>,
    ) -> Option<ShallowCommand> {
        let first = deep_programs::shallow_command(log, executed)?;
        let path = first.activity.exec_path.as_ref();
        let path = path.filter(|path| !is_of_other_machine(path))?;
        Some(ShallowCommand {
            pid: first.activity.pid,
            program: path.to_vec(),
            status,
        })
    }

    /// The path of the program.
    pub fn program(&self) -> &[u8] {
        &self.program
    }

    /// Makes the run begin with the command.
    pub fn put_before(&self, run: &mut RecordedRun, plan: &Plan) {
        let variable = |(name, value): &(Vec<u8>, Vec<u8>)| [name, &b"="[..], value].concat();
        let start = ProcessStart {
            by_exec: true,
            arguments: plan.argv.clone(),
            environment: plan.env.iter().map(variable).collect(),
            random: Vec::new(),
            program: self.program.clone(),
            directory: plan.cwd.clone(),
            build: Vec::new(),
            stack: None,
        };
        run.begin_with(self.pid, start);
    }

    /// The end of the command is compared: nothing else of it can be.
    pub fn compare(&self, reconstruction: &mut Reconstruction) {
        let Some(status) = reconstruction.status else {
            return;
        };
        if reconstruction.stopped.is_none() && Some(status & !CORE) != self.status {
            let status = ExitStatus::from_raw(status);
            reconstruction.stopped = Some(format!("the command ended otherwise: {status}"));
        }
    }
}

/// The end of a command as the kernel reports it to the parent, without [`CORE`].
pub fn wait_status(end: &RunEnd) -> Option<i32> {
    match end.exit {
        Some(status) => Some((status & 0xff) << 8),
        None => end.signal,
    }
}

/// True for an ELF file of another architecture than x86-64, as far as it is on this machine.
fn is_of_other_machine(path: &[u8]) -> bool {
    const CLASS_64: u8 = 2;
    const X86_64: u8 = 62;
    let mut head = [0; 20];
    let file = File::open(OsStr::from_bytes(path));
    let read = file.and_then(|mut file| file.read_exact(&mut head));
    let is_elf = read.is_ok() && head.starts_with(b"\x7fELF");
    is_elf && (head[4] != CLASS_64 || head[18..] != [X86_64, 0])
}
