//! Runs whose command has ended while some of their processes still run. The shell has its prompt
//! back, so that a question of the user includes these runs.
//!
//! A question waits a moment for processes that are about to end. It does not wait for daemons, and
//! says which runs the answer leaves out. Where only the deep log of a run is still to be finished,
//! the question waits for it. The same holds for verdicts of earlier runs that are to be confirmed.

use std::path::Path;
use std::time::{Duration, Instant};

use backstory_eventlog::Log;
use backstory_eventlog::run::RunHeader;
use backstory_session as session;
use backstory_store::Home;
use rustix::process::{Pid, test_kill_process};

use crate::file_age::is_younger;
use crate::text::progress::Progress;

/// The longest that a question waits. On a busy machine the last process of a pipeline may outlive
/// its command by a moment.
const MOMENT: Duration = Duration::from_millis(500);
/// A run whose command ended longer ago than this has a daemon.
const RECENT: Duration = Duration::from_secs(1);
/// The longest wait for a confirmation. A log that could not be renamed keeps its first name, and
/// its lock as long as a daemon of its run is served.
const CONFIRMED: Duration = Duration::from_secs(60);
/// Between two looks at a run.
const STEP: Duration = Duration::from_millis(5);

/// Waits for logs that only have to be finished, and a moment for the last processes of runs whose
/// command has just ended.
pub fn let_end(home: &Home) {
    let_logs_be_finished(home);
    let until = Instant::now() + MOMENT;
    let just_ended = |part: &Path| is_younger(part, RECENT);
    while left_running(home, just_ended).next().is_some() && Instant::now() < until {
        std::thread::sleep(STEP);
    }
}

/// Waits for the logs of runs whose processes have all ended: for their deep logs, and for the
/// confirmation of earlier verdicts.
pub fn let_logs_be_finished(home: &Home) {
    for run in home.unfinished().unwrap_or_default() {
        let_be_confirmed(home, &run);
        let path = home.deep_log_path(&run);
        if session::deep_log_ends(&path) {
            let progress = Progress::start(&format!("waiting for the deep log of run {run}"));
            session::let_deep_log_end(&path);
            progress.end();
        }
    }
}

/// Waits until the verdicts that a run believed are confirmed, if only that is left to do.
fn let_be_confirmed(home: &Home, run: &str) {
    let part = home.part_path(run);
    if !session::is_confirming(&part) {
        return;
    }
    let progress = Progress::start(&format!(
        "waiting for run {run}: earlier verdicts about its programs are confirmed"
    ));
    let until = Instant::now() + CONFIRMED;
    while session::is_recording(&part) && Instant::now() < until {
        std::thread::sleep(STEP);
    }
    progress.end();
}

/// Headers of the runs whose command has ended while processes of them still run, and whose log
/// `wanted` accepts.
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

/// True if a process has this number, whichever process it is.
fn is_there(pid: u32) -> bool {
    let pid = i32::try_from(pid).ok().and_then(Pid::from_raw);
    pid.is_some_and(|pid| test_kill_process(pid) != Err(rustix::io::Errno::SRCH))
}
