//! The process that works on a step, so that nothing is restored before it has ended.

use std::fs;
use std::io;
use std::path::Path;
use std::time::Duration;

/// The file with the process id and its start, in ticks since the machine's boot.
const WORKER: &str = "worker";

/// How long a step may outlive its `rerun`, which passes on the signal that ends it.
const PATIENCE: Duration = Duration::from_secs(10);

/// Between two looks at a process.
const STEP: Duration = Duration::from_millis(20);

/// Notes the process.
pub fn note(directory: &Path, process: u32) -> io::Result<()> {
    let started = start(process).unwrap_or_default();
    super::write_whole(
        &directory.join(WORKER),
        format!("{process} {started}").as_bytes(),
    )
}

/// Waits for the noted process, and those that it recorded, to end. The result is its id if it does
/// not.
pub fn outlives(directory: &Path, is_recording: &dyn Fn(u32) -> bool) -> Option<u32> {
    let text = fs::read_to_string(directory.join(WORKER)).ok()?;
    let (process, started) = text.split_once(' ')?;
    let process = process.parse().ok()?;
    let mut waited = Duration::ZERO;
    while start(process).is_some_and(|now| now == started) || is_recording(process) {
        if waited >= PATIENCE {
            return Some(process);
        }
        std::thread::sleep(STEP);
        waited += STEP;
    }
    None
}

/// The start of a process that has not ended (proc(5), field 22 of `stat`).
fn start(process: u32) -> Option<String> {
    let text = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    let mut fields = text.rsplit_once(')')?.1.split_whitespace();
    let ended = matches!(fields.next()?, "Z" | "X");
    let started = fields.nth(18)?.to_owned();
    (!ended).then_some(started)
}
