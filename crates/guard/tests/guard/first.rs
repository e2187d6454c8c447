//! On a busy machine a caller waits for the guard alone, where the guard may have a real-time
//! priority.

use crate::stage::watch;

/// The scheduling policy of a thread of this process, by the kernel's number: the 39th word after
/// its name.
fn policy(stat: &str) -> Option<i32> {
    stat.rsplit_once(')')?
        .1
        .split_whitespace()
        .nth(38)?
        .parse()
        .ok()
}

/// The policies of all threads of this process that have this name.
fn policies(name: &str) -> Vec<i32> {
    let threads = std::fs::read_dir("/proc/self/task").unwrap().flatten();
    let stats =
        threads.filter_map(|thread| std::fs::read_to_string(thread.path().join("stat")).ok());
    stats
        .filter(|stat| stat.contains(&format!("({name})")))
        .filter_map(|stat| policy(&stat))
        .collect()
}

/// True if a thread of this process may have a real-time priority.
fn permitted() -> bool {
    let ask = || {
        let lowest = libc::sched_param { sched_priority: 1 };
        // SAFETY: the parameter outlives the call; 0 is the calling thread.
        unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &lowest) == 0 }
    };
    std::thread::spawn(ask).join().unwrap()
}

#[test]
fn a_notification_does_not_wait_behind_a_busy_receiver() {
    if !permitted() {
        backstory_testkit::need::skipped("receivers first", "needs CAP_SYS_NICE, or ulimit -r 1");
        return;
    }
    // The receiver that responds to these very calls has surely begun.
    let found = watch(|| policies("guard")).result;
    assert!(found.contains(&libc::SCHED_FIFO), "{found:?}");
}
