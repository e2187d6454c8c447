//! The kernel's version, and `/proc`.

use std::fs;

use crate::finding::Finding;

/// The oldest kernel that the recorder works on.
const RECORDER: (u32, u32) = (5, 10);
/// The oldest kernel that the guard works on (`SECCOMP_FILTER_FLAG_WAIT_KILLABLE_RECV`).
const GUARD: (u32, u32) = (5, 19);

pub fn version() -> Finding {
    let release = rustix::system::uname();
    let release = release.release().to_string_lossy().into_owned();
    judge(&release)
}

fn judge(release: &str) -> Finding {
    let found = format!("Linux {release}");
    match major_and_minor(release) {
        Some(version) if version >= GUARD => Finding::works("kernel", found),
        Some(version) if version < RECORDER => Finding::fails(
            "kernel",
            found,
            "The recorder needs Linux 5.10.",
            "Install a newer kernel.",
        ),
        _ => Finding::limited(
            "kernel",
            found,
            "The guard needs Linux 5.19. Static programs, Go programs and direct system calls are \
             not recorded, and runs are not complete.",
            "Install Linux 5.19 or newer.",
        ),
    }
}

/// The first two numbers of a release such as `6.1.0-18-amd64`.
fn major_and_minor(release: &str) -> Option<(u32, u32)> {
    let mut numbers = release.split(|c: char| !c.is_ascii_digit());
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

/// The guard reads paths, descriptors and memory of processes below `/proc`.
pub fn process_files() -> Finding {
    const NAME: &str = "process files";
    let child = std::process::id();
    let readable = fs::read_link(format!("/proc/{child}/cwd")).is_ok()
        && fs::read(format!("/proc/{child}/maps")).is_ok();
    let mounts = fs::read_to_string("/proc/self/mounts").unwrap_or_default();
    let options = mounts
        .lines()
        .filter_map(|line| line.strip_prefix("proc /proc proc "))
        .next_back();
    let options = options.and_then(|rest| rest.split(' ').next());
    let found = match options {
        Some(options) => format!("/proc ({options})"),
        None => "/proc".to_owned(),
    };
    if readable {
        return Finding::works(NAME, found);
    }
    Finding::fails(
        NAME,
        "/proc is not mounted, or shows no processes",
        "The guard cannot find the files that system calls name.",
        "Mount it: mount -t proc proc /proc.",
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::finding::Fitness;

    #[test]
    fn a_kernel_is_judged_by_its_first_two_numbers() {
        for (release, verdict) in [
            ("6.1.0-18-amd64", Fitness::Works),
            ("5.19.0", Fitness::Works),
            ("5.18.3", Fitness::Limited),
            ("5.10.0-28", Fitness::Limited),
            ("5.9.16", Fitness::Fails),
            ("4.19.0", Fitness::Fails),
            ("10.0-rc1", Fitness::Works),
        ] {
            assert_eq!(judge(release).verdict, verdict, "{release}");
        }
    }
}
