//! What the launcher makes ready before it forks: each of launcher, keeper and supervisor has its copy.

use crate::control::{Control, STARTED};
use crate::drain::Drainer;
use crate::drain::privileges::Privileges;
use crate::header::Inherited;
use crate::launch::{self, Launch};
use crate::origin::Origin;
use crate::redact::Secrets;
use crate::report::Reporter;
use crate::watch::{CommandWatch, WatchPlan};
use crate::{Error, Options};
use backstory_arena::Arena;
use backstory_arena::ChunkSupply;
use backstory_eventlog::Writer;
use backstory_guard::SharedBuffers;
use backstory_sys::{self as sys, Pid};
use std::ffi::{CString, OsStr, OsString};
use std::os::fd::OwnedFd;
use std::os::unix::ffi::OsStrExt;
use std::sync::Arc;

/// Everything there is.
pub(crate) struct RunSetup {
    /// What watching over the run takes.
    pub tools: Tools,
    /// What starting the command takes.
    pub job: Job,
    /// Buffers of the guard, which all share; none without guard.
    pub shared: Option<Arc<SharedBuffers>>,
    /// Where a copy of the guard's listener lies, should keeper and supervisor both die: taken out by the launcher, put in by the
    /// supervisor.
    pub spare: Option<(OwnedFd, OwnedFd)>,
}

/// What watching over the run takes.
pub(crate) struct Tools {
    pub control: &'static Control,
    /// Wakes the launcher.
    pub bell: OwnedFd,
    /// Blocked signals, of whichever process reads it.
    pub signals: OwnedFd,
    pub launcher: Pid,
    pub arena: Arena,
    pub log: Writer,
    pub secrets: Secrets,
    pub privileges: Privileges,
    pub plan: WatchPlan,
}

/// What starting the command takes.
pub(crate) struct Job {
    pub options: Options,
    pub program: CString,
    pub cwd: Vec<u8>,
    /// Our entry for `LD_PRELOAD`.
    pub preload: OsString,
    pub environment: Vec<Vec<u8>>,
    pub inherited: Vec<Inherited>,
    /// See [`crate::clock_tick::just_changed`].
    pub just_changed: Option<i64>,
    pub origin: Origin,
    /// The launcher, as something that can be polled.
    pub launcher_fd: Option<OwnedFd>,
}

impl Tools {
    /// The watch over the run, and the stock that it drains.
    pub(crate) fn into_watch(self) -> (CommandWatch, Arc<ChunkSupply>) {
        let stock = ChunkSupply::new(self.arena);
        stock.arena.survive_truncation();
        let drainer = Drainer::new(Arc::clone(&stock), self.log, self.secrets)
            .with_privileges(self.privileges);
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

impl Job {
    /// Lets go of what the command inherited. The standard descriptors named become `/dev/null`.
    pub(crate) fn let_go(&self, standard: &[i32]) {
        sys::nullify(standard);
        for inherited in &self.inherited {
            if inherited.fd > 2 {
                sys::close(inherited.fd);
            }
        }
    }

    /// The command's start, prepared. `arena` is how its programs find the arena.
    pub(crate) fn launch(&self, arena: &OsStr, control: &'static Control) -> Result<Launch, Error> {
        let environment = launch::with_recorder(&self.environment, self.preload.as_bytes(), arena);
        Launch::new(
            self.program.clone(),
            &self.options.command,
            &environment,
            self.origin.clone(),
            control,
            self.just_changed,
        )
    }

    /// Tells in the log how the command came to be, which without the guard nobody else sees.
    pub(crate) fn tell(&self, at: u64, control: &Control, reporter: &mut Reporter) {
        let pid = control.command_pid().filter(|_| control.reached(STARTED));
        if let Some(pid) = pid {
            let words = self.options.command.iter();
            let words: Vec<_> = words.map(|w| w.as_bytes().to_vec()).collect();
            reporter.command(at, pid, self.program.as_bytes(), &words, &self.cwd);
        }
    }
}
