//! The state that the launcher prepares before it forks. Launcher, keeper and supervisor each have
//! a copy.

use crate::broker::BrokerLink;
use crate::control::{Control, STARTED};
use crate::deep_sink::DeepPlan;
use crate::drain::Drainer;
use crate::drain::privileges::Privileges;
use crate::header::Inherited;
use crate::inherited_state::InheritedState;
use crate::launch::{self, Launch};
use crate::lines::mark::MarkQueue;
use crate::lines::{LinePlan, LineRouter};
use crate::plain_programs::KnownPrograms;
use crate::redact::Secrets;
use crate::report::Reporter;
use crate::watch::{CommandWatch, WatchPlan};
use crate::{Error, Options};
use backstory_arena::Arena;
use backstory_arena::ChunkSupply;
use backstory_eventlog::Writer;
use backstory_functions::FunctionPatterns;
use backstory_guard::SharedBuffers;
use backstory_sys::{self as sys, Pid};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// The whole prepared state.
pub(crate) struct RunSetup {
    /// The means of watching the run.
    pub tools: WatchResources,
    /// The means of starting the command.
    pub job: CommandSetup,
    /// Buffers of the guard, shared by all three processes. `None` without a guard.
    pub shared: Option<Arc<SharedBuffers>>,
    /// A socket pair that holds a copy of the guard's listener in case both keeper and supervisor
    /// die. The supervisor sends the copy; the launcher receives it.
    pub spare: Option<(OwnedFd, OwnedFd)>,
    /// The supervisor's connection to the broker of set-user-id programs.
    pub broker: Option<BrokerLink>,
    /// The programs of a run with `--guard=auto`.
    pub programs: Option<KnownPrograms>,
}

/// The means of watching the run.
pub(crate) struct WatchResources {
    pub control: &'static Control,
    /// Wakes the launcher.
    pub bell: OwnedFd,
    /// A signalfd for the blocked signals of its reader.
    pub signals: OwnedFd,
    pub launcher: Pid,
    pub arena: Arena,
    pub log: Writer,
    pub secrets: Secrets,
    pub privileges: Privileges,
    /// The functions whose calls are recorded.
    pub functions: Option<FunctionPatterns>,
    pub plan: WatchPlan,
    /// The logs of a shell's lines. `None` for every other command.
    pub lines: Option<LinePlan>,
    /// The deep log, if the run has one.
    pub deep: Option<DeepPlan>,
}

/// The means of starting the command.
pub(crate) struct CommandSetup {
    pub options: Options,
    pub program: CString,
    pub cwd: Vec<u8>,
    /// The recorder's entry for `LD_PRELOAD`.
    pub preload: OsString,
    pub environment: Vec<Vec<u8>>,
    pub inherited: Vec<Inherited>,
    /// See [`crate::clock_tick::just_changed`].
    pub just_changed: Option<i64>,
    pub inherited_state: InheritedState,
    /// The launcher, as a descriptor for poll(2).
    pub launcher_fd: Option<OwnedFd>,
}

impl WatchResources {
    /// The watch over the run, and the supply of chunks that it drains. `marks` are those of a
    /// shell. A process that takes over from the supervisor gets none, and what it still drains
    /// belongs to the session.
    pub(crate) fn into_watch(
        self,
        marks: Option<Arc<MarkQueue>>,
    ) -> (CommandWatch, Arc<ChunkSupply>) {
        let stock = ChunkSupply::new(self.arena);
        stock.arena.survive_truncation();
        let lines = self.lines.zip(marks);
        let lines = lines.map(|(plan, marks)| LineRouter::new(plan, self.control, marks));
        let drainer = Drainer::new(Arc::clone(&stock), self.log, self.secrets)
            .with_privileges(self.privileges)
            .with_functions(self.functions)
            .with_lines(lines)
            .with_deep_log(self.deep);
        let watch = CommandWatch::new(
            self.control,
            self.bell,
            self.signals,
            Arc::clone(&stock),
            drainer,
            self.plan,
            self.launcher,
        );
        (watch, stock)
    }
}

impl CommandSetup {
    /// Closes the descriptors that the command inherited. The given standard descriptors become
    /// `/dev/null`.
    pub(crate) fn let_go(&self, standard: &[i32]) {
        sys::nullify(standard);
        for inherited in &self.inherited {
            if inherited.fd > 2 {
                sys::close(inherited.fd);
            }
        }
    }

    /// The prepared start of the command. `arena` is the path of the arena for its programs.
    pub(crate) fn launch(&self, arena: &OsStr, control: &'static Control) -> Result<Launch, Error> {
        let environment = launch::with_recorder(&self.environment, self.preload.as_bytes(), arena);
        let (program, words) = match &self.options.simulator {
            Some(simulator) => {
                let launcher = simulator.launcher().as_os_str().as_bytes();
                let launcher = CString::new(launcher).unwrap_or_default();
                (
                    launcher,
                    [&simulator.words[..], &self.options.command].concat(),
                )
            }
            None => (self.program.clone(), self.options.command.clone()),
        };
        Launch::new(
            program,
            &words,
            &environment,
            self.inherited_state.clone(),
            control,
            self.just_changed,
        )
    }

    /// Records the origin of the command, which without the guard no other observer sees.
    pub(crate) fn tell(&self, at: u64, control: &Control, reporter: &mut Reporter) {
        let pid = control.command_pid().filter(|_| control.reached(STARTED));
        if let Some(pid) = pid {
            let words = self.options.command.iter();
            let words: Vec<_> = words.map(|w| w.as_bytes().to_vec()).collect();
            reporter.command(at, pid, self.program.as_bytes(), &words, &self.cwd);
        }
    }
}
