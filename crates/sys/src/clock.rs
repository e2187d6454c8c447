//! The clocks of a run, each read in one unit.

use rustix::time::{ClockId, clock_gettime};
use std::fs;

/// The counter that records are stamped with: the processor's time-stamp counter.
#[allow(unsafe_code)]
pub fn counter() -> u64 {
    // SAFETY: every x86-64 has the instruction, and nothing in this process forbids it.
    unsafe { core::arch::x86_64::_rdtsc() }
}

/// The answer of the processor about itself (`cpuid`): the registers `eax`, `ebx`, `ecx` and `edx`.
#[allow(unsafe_code, unused_unsafe)]
pub fn processor_identity(leaf: u32, subleaf: u32) -> [u32; 4] {
    // SAFETY: every x86-64 has the instruction. Newer versions of Rust know that.
    let told = unsafe { core::arch::x86_64::__cpuid_count(leaf, subleaf) };
    [told.eax, told.ebx, told.ecx, told.edx]
}

/// Nanoseconds since 1970 by the machine's clock.
pub fn machine() -> i64 {
    nanoseconds(ClockId::Realtime)
}

/// Nanoseconds since 1970 by the clock that local file systems stamp changes with: the kernel's
/// last tick. A file system that gives finer times to watched files (Linux 6.13) gives none that is
/// earlier.
pub fn files() -> i64 {
    nanoseconds(ClockId::RealtimeCoarse)
}

/// Nanoseconds since the machine's boot, sleep included. This clock cannot be set.
pub fn since_boot() -> i64 {
    nanoseconds(ClockId::Boottime)
}

/// Nanoseconds of `CLOCK_MONOTONIC`, which never jumps.
pub fn monotonic() -> i64 {
    nanoseconds(ClockId::Monotonic)
}

/// The id of this boot of the machine.
pub fn boot_id() -> String {
    let text = fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default();
    text.lines().next().unwrap_or("").to_owned()
}

fn nanoseconds(clock: ClockId) -> i64 {
    let t = clock_gettime(clock);
    t.tv_sec.wrapping_mul(1_000_000_000).wrapping_add(t.tv_nsec)
}
