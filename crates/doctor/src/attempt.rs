//! An attempt in a child process, whose effects end with the child.

use std::io;
use std::time::{Duration, Instant};

use backstory_sys as sys;

/// The longest time that a child may take.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs `attempt` in a child. Its error number, 0 for success, is the child's exit status.
///
/// # Errors
/// No child could be made, the attempt failed, or it did not end.
pub fn in_child(attempt: impl FnOnce() -> io::Result<()>) -> io::Result<()> {
    let child = sys::fork()?;
    if child == 0 {
        let status = match attempt() {
            Ok(()) => 0,
            Err(error) => error.raw_os_error().unwrap_or(libc::EIO),
        };
        sys::exit_now(status);
    }
    let begun = Instant::now();
    loop {
        match sys::child_change(Some(child), libc::WEXITED)? {
            Some(change) if change.code == libc::CLD_EXITED && change.status == 0 => return Ok(()),
            Some(change) if change.code == libc::CLD_EXITED => {
                return Err(io::Error::from_raw_os_error(change.status));
            }
            Some(change) => {
                let text = format!("the child was ended by signal {}", change.status);
                return Err(io::Error::other(text));
            }
            None if begun.elapsed() > PATIENCE => {
                let _ = sys::kill(child, libc::SIGKILL);
                sys::wait_for(child);
                return Err(io::ErrorKind::TimedOut.into());
            }
            None => std::thread::sleep(Duration::from_millis(1)),
        }
    }
}
