//! A command that the deep log of its run does not have, as a static program. It runs again with
//! its recorded arguments, without its recorded input. The programs that it executes are fed.

use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use backstory_deep::DeepLog;
use backstory_query as query;
use backstory_reconstruct::RecordedRun;
use backstory_reconstruct::process::ProcessStart;
use backstory_reconstruct::verdict::Reconstruction;
use backstory_replay::plan::Plan;
use serde::{Deserialize, Serialize};

use crate::commands::deep_programs;
use crate::current_store::CurrentStore;
use crate::error::Failure;

/// The command, and how it ended.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct ShallowCommand {
    pid: u32,
    program: Vec<u8>,
    /// Its status and its signal.
    end: (Option<i32>, Option<i32>),
}

impl ShallowCommand {
    /// The command of a run. `None`: the deep log has it, or is damaged.
    pub fn of(
        current: &CurrentStore,
        run: &str,
        log: &DeepLog,
    ) -> Result<Option<ShallowCommand>, Failure> {
        let executed = query::processes(&current.store, run)?;
        let end = current.store.run(run)?.map(|run| run.end);
        let Some(first) = deep_programs::shallow_command(log, &executed) else {
            return Ok(None);
        };
        Ok(first
            .activity
            .exec_path
            .as_ref()
            .map(|path| ShallowCommand {
                pid: first.activity.pid,
                program: path.to_vec(),
                end: end.map_or((None, None), |end| (end.exit, end.signal)),
            }))
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
        };
        run.begin_with(self.pid, start);
    }

    /// The end of the command is compared: nothing else of it can be.
    pub fn compare(&self, reconstruction: &mut Reconstruction) {
        let Some(status) = reconstruction.status.map(ExitStatus::from_raw) else {
            return;
        };
        if reconstruction.stopped.is_none() && (status.code(), status.signal()) != self.end {
            reconstruction.stopped = Some(format!("the command ended otherwise: {status}"));
        }
    }
}
