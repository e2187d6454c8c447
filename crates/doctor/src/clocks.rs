//! The counter that stamps records, and the clock that stamps files.

use std::fs;

use rustix::time::{ClockId, clock_getres};

use crate::finding::Finding;

/// Where the kernel reads the time from.
const SOURCE: &str = "/sys/devices/system/clocksource/clocksource0/current_clocksource";

/// Records are stamped with the processor's time-stamp counter.
pub fn counter() -> Finding {
    const NAME: &str = "time-stamp counter";
    let source = fs::read_to_string(SOURCE).unwrap_or_default();
    let source = source.trim();
    let flags = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let flags = flags.lines().find(|line| line.starts_with("flags"));
    let steady = flags.is_none_or(|line| {
        let has = |flag: &str| line.split(' ').any(|one| one == flag);
        has("constant_tsc") || has("nonstop_tsc")
    });
    let found = match source {
        "" => "the kernel's clock source is unknown".to_owned(),
        source => format!("the kernel's clock source is {source}"),
    };
    match source {
        // Paravirtual clocks read the counter, too.
        "" | "tsc" | "kvm-clock" | "hyperv_clocksource_tsc_page" | "xen" if steady => {
            Finding::works(NAME, found)
        }
        _ => Finding::limited(
            NAME,
            format!("{found}; the counter may not run evenly on all processors"),
            "The order of operations on different processors may be wrong by microseconds.",
            "If the kernel rejected the counter (`dmesg | grep -i tsc`), update the firmware, or \
             set the clock source of the virtual machine.",
        ),
    }
}

/// The times of its changes distinguish the versions of a file, among other facts.
pub fn file_times() -> Finding {
    let resolution = clock_getres(ClockId::RealtimeCoarse);
    let milliseconds = resolution.tv_nsec as f64 / 1e6;
    Finding::works(
        "file times",
        format!("local file systems stamp changes every {milliseconds} ms"),
    )
}
