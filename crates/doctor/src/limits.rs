//! Resource limits of this process, and the limit of its cgroup.

use std::fs;
use std::path::Path;

use backstory_sys::address_space;
use rustix::process::{Resource, Rlimit, getrlimit};

use crate::file_systems::bytes;
use crate::finding::Finding;

/// The largest value: the smaller one may be raised to it.
fn hard(resource: Resource) -> Option<u64> {
    let Rlimit { maximum, .. } = getrlimit(resource);
    maximum
}

/// Backstory's own processes raise their soft limit.
pub fn descriptors() -> Finding {
    const NAME: &str = "open files";
    /// With fewer, the command cannot start.
    const NEEDED: u64 = 14;
    /// With fewer, the guard cannot start.
    const GUARD: u64 = 32;
    const ENOUGH: u64 = 256;
    let Some(most) = hard(Resource::Nofile) else {
        return Finding::works(NAME, "no limit");
    };
    let found = format!("at most {most} (`ulimit -Hn`)");
    let consequence = match most {
        0..NEEDED => "`record` has too few descriptors, and cannot start a command.",
        NEEDED..GUARD => "The guard has too few descriptors, and runs are not complete.",
        GUARD..ENOUGH => "A command with many processes at the same time may lose records.",
        _ => return Finding::works(NAME, found),
    };
    let remedy =
        "Raise the hard limit in /etc/security/limits.conf, or LimitNOFILE= of the service.";
    match most < NEEDED {
        true => Finding::fails(NAME, found, consequence, remedy),
        false => Finding::limited(NAME, found, consequence, remedy),
    }
}

/// The log and the arena are files.
pub fn file_size() -> Finding {
    const NAME: &str = "file size";
    /// The arena's first chunks, and a log of some length.
    const NEEDED: u64 = 1 << 20;
    const ENOUGH: u64 = 1 << 30;
    let remedy = "Raise the limit (`ulimit -f unlimited`).";
    match hard(Resource::Fsize) {
        None => Finding::works(NAME, "no limit"),
        Some(most) if most < NEEDED => Finding::fails(
            NAME,
            format!("at most {} (`ulimit -Hf`)", bytes(most)),
            "The arena and the log do not fit, and `record` cannot start a command.",
            remedy,
        ),
        Some(most) if most < ENOUGH => Finding::limited(
            NAME,
            format!("at most {} (`ulimit -Hf`)", bytes(most)),
            "The log of a long run, or the database, cannot grow further. The rest is lost.",
            remedy,
        ),
        Some(most) => Finding::works(NAME, format!("at most {}", bytes(most))),
    }
}

/// Launcher, keeper and supervisor have stacks and heaps.
pub fn address_space() -> Finding {
    const NAME: &str = "address space";
    match getrlimit(Resource::As).current {
        None => Finding::works(NAME, "no limit"),
        Some(most) if !address_space::is_left() => Finding::fails(
            NAME,
            format!("at most {} (`ulimit -v`)", bytes(most)),
            "`record` cannot start a command in so little address space.",
            "Allow 30 MB more (`ulimit -v`).",
        ),
        Some(most) => Finding::works(NAME, format!("at most {}", bytes(most))),
    }
}

/// Processes and threads of a recording, at most.
const OWN: u64 = 8;

pub fn processes() -> Finding {
    const NAME: &str = "processes";
    let most = getrlimit(Resource::Nproc).current;
    let user = rustix::process::getuid();
    let Some(most) = most.filter(|_| !user.is_root()) else {
        return Finding::works(NAME, "no limit");
    };
    let used = threads_of(user.as_raw());
    let found = format!("{used} of at most {most} (`ulimit -u`)");
    let remedy = "End other processes of this user, or raise the limit (`ulimit -u`).";
    left_of(NAME, found, most.saturating_sub(used), remedy)
}

/// Whether so many more processes and threads are enough for a recording.
fn left_of(name: &'static str, found: String, left: u64, remedy: &str) -> Finding {
    if left > OWN {
        return Finding::works(name, found);
    }
    Finding::limited(
        name,
        found,
        "A recording needs up to 8 processes and threads of its own. Without them the run is not \
         complete; without one for the command, `record` exits with 125.",
        remedy,
    )
}

/// The kernel counts threads against the limit.
fn threads_of(user: u32) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let all = fs::read_dir("/proc").into_iter().flatten().flatten();
    let own = all.filter(|entry| {
        let name = entry.file_name();
        let number = name.as_encoded_bytes().iter().all(u8::is_ascii_digit);
        number && entry.metadata().is_ok_and(|meta| meta.uid() == user)
    });
    own.map(|entry| {
        let tasks = fs::read_dir(entry.path().join("task"));
        tasks.map_or(0, |tasks| tasks.count() as u64)
    })
    .sum()
}

pub fn cgroup_processes() -> Finding {
    const NAME: &str = "processes of the cgroup";
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let own = groups.lines().find_map(|line| {
        let (_, rest) = line.split_once(':')?;
        let (controllers, path) = rest.split_once(':')?;
        match controllers {
            "" => Some(format!("/sys/fs/cgroup{path}")),
            "pids" => Some(format!("/sys/fs/cgroup/pids{path}")),
            _ => None,
        }
    });
    let Some(own) = own else {
        return Finding::works(NAME, "no cgroup");
    };
    // The limit of each ancestor holds, too.
    let mut narrowest: Option<(u64, u64)> = None;
    for group in Path::new(&own).ancestors() {
        if !group.starts_with("/sys/fs/cgroup") {
            break;
        }
        let number = |file: &str| -> Option<u64> {
            fs::read_to_string(group.join(file))
                .ok()?
                .trim()
                .parse()
                .ok()
        };
        if let (Some(most), Some(used)) = (number("pids.max"), number("pids.current"))
            && narrowest.is_none_or(|(m, u)| most.saturating_sub(used) < m.saturating_sub(u))
        {
            narrowest = Some((most, used));
        }
    }
    let Some((most, used)) = narrowest else {
        return Finding::works(NAME, "no limit");
    };
    let found = format!("{used} of at most {most} (pids.max)");
    let remedy = "Raise pids.max of the cgroup; in a container: --pids-limit.";
    left_of(NAME, found, most.saturating_sub(used), remedy)
}

pub fn locked_memory() -> Finding {
    let found = match getrlimit(Resource::Memlock).current {
        None => "no limit".to_owned(),
        Some(most) => format!("at most {} (`ulimit -l`)", bytes(most)),
    };
    Finding::works(
        "locked memory",
        format!("{found}; backstory locks no memory"),
    )
}

/// The guard's receivers use the lowest real-time priority where they may.
pub fn real_time() -> Finding {
    const NAME: &str = "real-time priority";
    let allowed = rustix::process::geteuid().is_root()
        || getrlimit(Resource::Rtprio)
            .current
            .is_none_or(|most| most > 0);
    if allowed {
        return Finding::works(NAME, "is permitted");
    }
    Finding::limited(
        NAME,
        "is not permitted (`ulimit -r` is 0)",
        "While all processors are busy, a handled signal can interrupt a file system call of a \
         static program (EINTR).",
        "Allow priority 1: `@users - rtprio 1` in /etc/security/limits.conf, or LimitRTPRIO=1 of \
         the service.",
    )
}
