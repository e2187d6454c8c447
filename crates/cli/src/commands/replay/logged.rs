//! Uses of files that a run's log has, and the store does not. The directories that processes
//! changed into are such, and the files that they had open for writing. A run may use no file of
//! such a directory, and may write nothing into such a file.

use backstory_eventlog::event::Op;
use backstory_eventlog::log::Log;
use backstory_replay::plan::LoggedUses;
use backstory_store::Home;

/// Bits of the flags of an open that say whether the file is open for reading or writing.
const O_ACCMODE: i32 = 3;
/// Their value for a file that is open for reading only.
const O_RDONLY: i32 = 0;

/// The uses that are only in the log. A log that is gone has none.
pub fn logged(home: &Home, run: &str) -> LoggedUses {
    let mut uses = LoggedUses::default();
    let Ok(log) = Log::open(home.log_path(run)) else {
        return uses;
    };
    for event in log.events().filter(|event| !event.outcome.failed()) {
        match event.op {
            Op::Chdir { now, .. } if now.starts_with(b"/") => {
                uses.entered.insert(now);
            }
            Op::Open { flags, .. } if flags & O_ACCMODE != O_RDONLY => {
                let ident = event.ident.map(|ident| (ident.dev, ident.ino));
                uses.writable.extend(ident);
            }
            _ => {}
        }
    }
    uses
}
