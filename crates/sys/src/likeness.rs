//! Attributes that a program inherits, taken over from another process: limits and scheduling.
#![allow(unsafe_code)]

use crate::call::check;
use crate::limits::LimitNumber;
use crate::process::Pid;
use std::io;
use std::mem::zeroed;
use std::ptr::{null, null_mut};

/// Number of the limits that a process has.
const LIMITS: u32 = 16;

/// A limit of a process.
///
/// # Errors
/// The process has ended, or has another user.
pub fn limit_of(pid: u32, resource: LimitNumber) -> io::Result<libc::rlimit> {
    // SAFETY: a plain structure, which the kernel fills.
    unsafe {
        let mut limit: libc::rlimit = zeroed();
        let none = null::<libc::rlimit>();
        check(libc::prlimit(pid as Pid, resource, none, &mut limit))?;
        Ok(limit)
    }
}

/// Lowers the hard limit of a process, and the soft limit to it.
///
/// # Errors
/// As [`limit_of`].
pub fn lower_limit_of(pid: u32, resource: LimitNumber, most: libc::rlim_t) -> io::Result<()> {
    let was = limit_of(pid, resource)?;
    let most = most.min(was.rlim_max);
    let lower = libc::rlimit {
        rlim_cur: was.rlim_cur.min(most),
        rlim_max: most,
    };
    // SAFETY: the structure is only read.
    check(unsafe { libc::prlimit(pid as Pid, resource, &lower, null_mut()) }).map(drop)
}

/// Scheduling policy, nice value and clamps, as `sched_getattr` gives them.
type SchedulingAttributes = [u64; 7];

/// Limits and scheduling of a process.
pub struct Likeness {
    limits: Vec<libc::rlimit>,
    scheduling: SchedulingAttributes,
    processors: Vec<u64>,
    /// Class and priority of its disk accesses.
    disk: libc::c_long,
}

const WHO_PROCESS: libc::c_int = 1;

impl Likeness {
    /// Reads the attributes of a process of the same user.
    ///
    /// # Errors
    /// As [`limit_of`].
    pub fn of(pid: u32) -> io::Result<Likeness> {
        let limits = (0..LIMITS).map(|resource| limit_of(pid, resource as LimitNumber));
        let limits = limits.collect::<io::Result<_>>()?;
        let mut scheduling = SchedulingAttributes::default();
        let mut processors = vec![0u64; 1024];
        // SAFETY: the kernel writes into the two buffers, whose sizes it gets.
        let (size, disk) = unsafe {
            let (bytes, none) = (size_of_val(&scheduling), 0);
            check(libc::syscall(
                libc::SYS_sched_getattr,
                pid,
                &raw mut scheduling,
                bytes,
                none,
            ))?;
            let (bytes, set) = (processors.len() * 8, processors.as_mut_ptr());
            let size = check(libc::syscall(libc::SYS_sched_getaffinity, pid, bytes, set))?;
            let disk = check(libc::syscall(libc::SYS_ioprio_get, WHO_PROCESS, pid))?;
            (size, disk)
        };
        processors.truncate(size as usize / 8);
        Ok(Likeness {
            limits,
            scheduling,
            processors,
            disk,
        })
    }

    /// Gives the attributes to this process. It may not allocate memory or open files any more.
    ///
    /// # Errors
    /// The kernel refuses one of them.
    pub fn apply(&self) -> io::Result<()> {
        // SAFETY: the kernel reads buffers that outlive the calls.
        unsafe {
            let (bytes, set) = (self.processors.len() * 8, self.processors.as_ptr());
            check(libc::syscall(libc::SYS_sched_setaffinity, 0, bytes, set))?;
            check(libc::syscall(
                libc::SYS_sched_setattr,
                0,
                &raw const self.scheduling,
                0,
            ))?;
            check(libc::syscall(
                libc::SYS_ioprio_set,
                WHO_PROCESS,
                0,
                self.disk,
            ))?;
            for (resource, limit) in (0..LIMITS).zip(&self.limits) {
                check(libc::setrlimit(resource as LimitNumber, limit))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_can_take_over_its_own_attributes() {
        let own = Likeness::of(std::process::id()).unwrap();
        assert!(own.processors.iter().any(|word| *word != 0));
        own.apply().unwrap();
        let limit = limit_of(0, libc::RLIMIT_NOFILE).unwrap();
        assert!(limit.rlim_cur <= limit.rlim_max);
    }

    #[test]
    fn a_lowered_limit_lowers_the_soft_one_with_it() {
        let mut child = std::process::Command::new("sleep")
            .arg("60")
            .spawn()
            .unwrap();
        let pid = child.id();
        lower_limit_of(pid, libc::RLIMIT_RTTIME, 1 << 40).unwrap();
        let lowered = limit_of(pid, libc::RLIMIT_RTTIME).unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!((lowered.rlim_cur, lowered.rlim_max), (1 << 40, 1 << 40));
    }
}
