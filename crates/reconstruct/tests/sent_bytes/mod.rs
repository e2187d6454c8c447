//! Recorded calls by which bytes leave.

use backstory_abi::deep;
use backstory_deep::{Call, Section};

/// A call that took these bytes, or failed with this error.
pub fn sent(call: Call, taken: Result<&[u8], i32>) -> Call {
    let result = match taken {
        Ok(bytes) => bytes.len() as i64,
        Err(errno) => -i64::from(errno),
    };
    let section = |bytes: &[u8]| Section {
        kind: deep::LEFT,
        arg: 1,
        bytes: bytes.to_vec(),
    };
    Call {
        result,
        sections: taken.into_iter().map(section).collect(),
        ..call
    }
}
