//! The requests of recorders, and the guard's responses.

use crate::stage::{NOWHERE, Told, call, spec, watch_with};
use backstory_abi::{MAGIC_ANNOUNCE, MAGIC_ARENA, MAGIC_DRAIN, MAGIC_WHICH, op};
use backstory_guard::{FilterSpec, GuardSettings};
use std::os::fd::OwnedFd;
use std::os::unix::fs::MetadataExt;
use std::sync::Arc;
use std::time::Duration;

fn magic(request: i32, argument: usize) -> i64 {
    call(
        libc::SYS_getpriority,
        [MAGIC_WHICH as usize, request as usize, argument, 0, 0],
    )
}

fn watch() -> GuardSettings {
    GuardSettings {
        gate: Some(NOWHERE),
        ..GuardSettings::default()
    }
}

#[test]
fn an_announced_chunk_has_an_owner() {
    let told = Arc::new(Told::default());
    let outcome = watch_with(spec(), watch(), told.clone(), || {
        // SAFETY: takes nothing.
        (magic(MAGIC_ANNOUNCE, 17), unsafe { libc::gettid() } as u32)
    });
    assert_eq!(outcome.result.0, 0);
    assert_eq!(
        *told.announced.lock().unwrap(),
        [(17, std::process::id(), outcome.result.1)]
    );
}

#[test]
fn a_recorder_that_cannot_reach_the_arenas_path_gets_a_descriptor() {
    let arena = tempfile::tempfile().unwrap();
    let ino = arena.metadata().unwrap().ino();
    let watch = GuardSettings {
        arena: Some(OwnedFd::from(arena)),
        ..watch()
    };
    let outcome = watch_with(spec(), watch, Arc::default(), || {
        let fd = magic(MAGIC_ARENA, 0);
        std::fs::metadata(format!("/proc/self/fd/{fd}"))
            .unwrap()
            .ino()
    });
    assert_eq!(outcome.result, ino);
}

#[test]
fn a_recorder_that_waits_for_a_chunk_goes_on_when_one_is_free() {
    let told = Arc::new(Told::default());
    let hooks = told.clone();
    let outcome = watch_with(spec(), watch(), told.clone(), move || {
        let other = std::thread::spawn(|| magic(MAGIC_DRAIN, 0));
        while hooks.waiting.lock().unwrap().is_empty() {
            std::thread::sleep(Duration::from_millis(1));
        }
        assert!(!other.is_finished());
        // Other callers are served meanwhile.
        assert!(
            std::fs::metadata("/etc/hostname").is_ok() && std::fs::read("/etc/hostname").is_ok()
        );
        hooks.waiting.lock().unwrap().clear();
        other.join().unwrap()
    });
    assert_eq!(outcome.result, 0);
    assert_eq!(outcome.of(op::OPEN, "/etc/hostname").len(), 1);
}

#[test]
fn a_recorder_whose_gate_does_not_pass_gets_an_error() {
    let watch = GuardSettings {
        arena_path: b"/dev/shm/backstory-x.arena".to_vec(),
        hidden: vec![b"/opt/ours/".to_vec()],
        ..watch()
    };
    let outcome = watch_with(spec(), watch, Arc::default(), || {
        let open =
            |path: &std::ffi::CStr| call(libc::SYS_open, [path.as_ptr() as usize, 0, 0, 0, 0]);
        (
            open(c"/dev/shm/backstory-x.arena"),
            open(c"/opt/ours/linux-backstory.so"),
        )
    });
    assert_eq!(
        outcome.result,
        (-i64::from(libc::EOPNOTSUPP), -i64::from(libc::ENOENT))
    );
    assert!(
        outcome.seen.iter().all(|s| s.record.op != op::OPEN),
        "neither is the program's doing"
    );
}

/// The address after the `syscall` instruction in libc's `syscall` function.
pub fn libc_gate() -> u64 {
    let start = libc::syscall as *const () as usize as u64;
    // SAFETY: the function's code is readable, and longer than this.
    let code = unsafe { std::slice::from_raw_parts(start as *const u8, 64) };
    let at = code
        .windows(2)
        .position(|w| w == [0x0f, 0x05])
        .expect("a syscall instruction");
    start + at as u64 + 2
}

#[test]
fn calls_from_the_gate_are_logged_only_in_strict_mode() {
    let gate = Some(libc_gate());
    for strict in [false, true] {
        let spec = FilterSpec {
            gate,
            strict,
            ..spec()
        };
        let watch = GuardSettings {
            gate,
            strict,
            ..GuardSettings::default()
        };
        let outcome = watch_with(spec, watch, Arc::default(), || {
            assert!(
                call(
                    libc::SYS_open,
                    [c"/etc/hostname".as_ptr() as usize, 0, 0, 0, 0]
                ) > 0
            );
            std::fs::read("/etc/hosts").unwrap().len()
        });
        assert_eq!(outcome.of(op::OPEN, "/etc/hosts").len(), 1);
        assert_eq!(
            outcome.of(op::OPEN, "/etc/hostname").len(),
            usize::from(strict)
        );
    }
}

#[test]
fn a_namespace_is_noticed_even_from_the_gate() {
    let gate = Some(libc_gate());
    let told = Arc::new(Told::default());
    let watch = GuardSettings {
        gate,
        ..GuardSettings::default()
    };
    let outcome = watch_with(FilterSpec { gate, ..spec() }, watch, told.clone(), || {
        call(libc::SYS_unshare, [libc::CLONE_NEWPID as usize, 0, 0, 0, 0])
    });
    assert_eq!(*told.pid_namespaces.lock().unwrap(), 1);
    assert!(
        outcome.seen.iter().all(|s| s.record.op != op::NAMESPACE),
        "the recorder has logged it"
    );
}

#[test]
fn a_polled_io_uring_is_marked_once_and_any_is_refused_where_asked() {
    const SQPOLL: u64 = 2 << 32;
    let setup = move |params: &mut [u64; 15]| {
        call(
            libc::SYS_io_uring_setup,
            [4, params.as_mut_ptr() as usize, 0, 0, 0],
        )
    };
    let both = move |flags: u64| {
        let params = [0, flags >> 32, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0];
        let made = (setup(&mut params.clone()), setup(&mut params.clone()));
        // The kernel's thread for a ring has the filter too, and lives as long as the ring.
        for ring in [made.0, made.1] {
            call(libc::SYS_close, [ring as usize, 0, 0, 0, 0]);
        }
        made
    };
    let polled = "io_uring with kernel-side polling";
    let outcome = watch_with(spec(), watch(), Arc::default(), move || both(SQPOLL));
    assert_eq!(outcome.of(op::OPAQUE, polled).len(), 1);
    let outcome = watch_with(spec(), watch(), Arc::default(), move || both(0));
    assert!(outcome.seen.iter().all(|s| s.record.op != op::OPAQUE));
    let refuse = FilterSpec {
        refuse_io_uring: true,
        ..spec()
    };
    let outcome = watch_with(refuse, watch(), Arc::default(), move || both(0));
    assert_eq!(outcome.result.0, -i64::from(libc::ENOSYS));
}
