//! Runs whose command has ended, though not all of its processes have: a shell has its prompt back, and whoever asks now means them.
//!
//! What is just ending is waited for a moment; daemons are not, but said to be left out.

use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use backstory_eventlog::Log;
use backstory_eventlog::run::RunHeader;
use backstory_session as session;
use backstory_store::Home;
use rustix::process::{Pid, test_kill_process};

/// So long a question waits for processes that outlived their command by a moment: on a busy machine the last of a pipeline may.
const MOMENT: Duration = Duration::from_millis(500);
/// A run whose command ended so long ago has a daemon.
const RECENT: Duration = Duration::from_secs(1);

/// Waits a moment for runs whose command has just ended, and whose last processes have not: who asks means them.
pub fn let_end(home: &Home) {
    let until = Instant::now() + MOMENT;
    let just_ended = |part: &Path| {
        let touched = fs::metadata(part).and_then(|meta| meta.modified()).ok();
        touched.is_some_and(|at| at.elapsed().is_ok_and(|age| age < RECENT))
    };
    while left_running(home, just_ended).next().is_some() && Instant::now() < until {
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Headers of runs whose command has ended, though not all of its processes have, and whose logs are as asked for.
pub fn left_running(
    home: &Home,
    wanted: impl Fn(&Path) -> bool,
) -> impl Iterator<Item = RunHeader> {
    let runs = home.unfinished().unwrap_or_default().into_iter();
    runs.map(|run| home.part_path(&run))
        .filter(move |part| wanted(part) && session::is_recording(part))
        .filter_map(|part| Some(Log::open(part).ok()?.header().clone()))
        .filter(|header| !is_there(header.launcher_pid))
}

/// A process of this number is there, whoever's it is.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
