//! Commands on other machines that a recorded program starts through ssh (`record --remote`).
//!
//! ```text
//! record --remote ── PATH with wrappers ──> ssh ([`wrapper`]) ── executes the real ssh
//!                                                                       │
//!        [`returning`]: fetches the run  <── store <── remote-side <────┘ on the other machine
//! ```
//!
//! Invariants:
//!
//! - The wrapper ends by executing the real program, so that program has the process, the
//!   terminal and the signals of the user's command.
//! - If a step before that fails, the real program gets the arguments that the user gave. The run
//!   then has a reason.
//! - Programs that are not started with `--remote` find no wrapper.

pub mod pending;
pub mod returning;
pub mod wrapper;

use std::ffi::OsString;
use std::fs;
use std::io;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use backstory_store::Home;
use backstory_vocabulary::{ContentsMode, Word};

/// The line by which the two sides know that they understand each other: program, version, version
/// of the options of `remote-side`.
pub const READY: &str = concat!("backstory ", env!("CARGO_PKG_VERSION"), " remote 1");

/// The variable that tells the wrappers what to do: the mode of contents, a colon, the store.
pub const VARIABLE: &str = "BACKSTORY_REMOTE";

/// The programs that have a wrapper. `rsync` and `git` start `ssh`.
pub const WRAPPED: [&str; 4] = ["ssh", "scp", "sftp", "mosh"];

/// The directory of the wrappers of a store.
pub fn wrappers(store: &Path) -> PathBuf {
    store.join("lib/remote")
}

/// Makes the wrappers, which are links to this program. Returns the variables that lead a command
/// to them.
pub fn variables(home: &Home, contents: ContentsMode) -> io::Result<Vec<(OsString, OsString)>> {
    let directory = wrappers(home.dir());
    let program = std::env::current_exe()?;
    fs::create_dir_all(&directory)?;
    for name in WRAPPED {
        let link = directory.join(name);
        if fs::read_link(&link).is_ok_and(|target| target == program) {
            continue;
        }
        // Another recording may do the same at this moment.
        let beside = directory.join(format!("{name}.{}", std::process::id()));
        let _ = fs::remove_file(&beside);
        symlink(&program, &beside)?;
        fs::rename(&beside, &link)?;
    }
    let usual = || OsString::from("/usr/local/bin:/usr/bin:/bin");
    let users = std::env::var_os("PATH").unwrap_or_else(usual);
    let mut path = directory.into_os_string();
    path.push(":");
    path.push(users);
    let mut settings = OsString::from(contents.word());
    settings.push(":");
    settings.push(home.dir());
    Ok(vec![("PATH".into(), path), (VARIABLE.into(), settings)])
}
