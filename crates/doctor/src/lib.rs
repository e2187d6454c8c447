//! Examines what recording needs of a machine, and says what to do about what is missing.
//!
//! In: the store's directory and the program itself. Out: one [`Finding`] for each subject, in a
//! fixed order: what was found, whether it is enough, what follows if not, and the remedy.
//!
//! | module | what it examines |
//! | --- | --- |
//! | `kernel` | version, `/proc` |
//! | `filter` | seccomp's user notification, with the filter and the flags of the guard |
//! | `access` | whether the guard may read the memory of its descendants (Yama), privileges |
//! | `shared_memory` | `/dev/shm`, the arena |
//! | `limits` | resource limits, and those of the cgroup |
//! | `isolation` | namespaces, containers, Landlock |
//! | `file_systems` | those of the store, of the working directory, and FUSE |
//! | `clocks` | the counter that stamps records, and the clock that stamps files |
//! | `c_library` | the C library of this machine |
//! | `trial` | records a command, and asks for its files |
//!
//! Invariant: nothing is guessed that can be tried. A child installs the filter, another
//! enters namespaces. An arena is made and removed. A command is recorded into a store that is
//! removed afterwards. Nothing of the machine is changed.
//!
//! Absent: how findings are printed, and any change of the machine.

mod access;
mod attempt;
mod c_library;
mod clocks;
mod file_systems;
mod filter;
mod finding;
mod isolation;
mod kernel;
mod limits;
mod shared_memory;
mod trial;

pub use finding::{Finding, Fitness};

use std::path::Path;

/// Examines the machine. `store`: the directory of the store, which need not exist. `program`:
/// the executable of `backstory`.
///
/// The calling process must have one thread, since it forks.
pub fn examine(store: &Path, program: &Path) -> Vec<Finding> {
    // A file that would exceed the limit of its size is an error, and not the end of this process.
    backstory_sys::set_disposition(libc::SIGXFSZ, libc::SIG_IGN);
    let mut findings = vec![
        kernel::version(),
        kernel::process_files(),
        filter::listener(),
        filter::wake_up(),
        access::memory(),
        access::privileges(),
        shared_memory::arena(),
        limits::descriptors(),
        limits::file_size(),
        limits::address_space(),
        limits::processes(),
        limits::cgroup_processes(),
        limits::locked_memory(),
        limits::real_time(),
        isolation::namespaces(),
        isolation::container(),
        isolation::landlock(),
        file_systems::store(store),
        file_systems::store_room(store),
        file_systems::library(store),
        file_systems::working_directory(),
        file_systems::fuse(),
        clocks::counter(),
        clocks::file_times(),
        c_library::version(),
    ];
    findings.push(trial::record(store, program));
    findings
}
