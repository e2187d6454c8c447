//! The present moment.

use std::time::{SystemTime, UNIX_EPOCH};

/// The present time by the machine's clock, in ns since 1970, as a file's times are. 0 before 1970.
pub fn now() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |since| {
        i64::try_from(since.as_nanos()).unwrap_or(i64::MAX)
    })
}
