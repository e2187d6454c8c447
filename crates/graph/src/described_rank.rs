//! The extended record of the place in a job that an imported document states about an activity.
//!
//! In and out: the kind `rank`, and as payload a [`JobRank`] as JSON. A program cannot make such a
//! record, because the types of its records have a dot. In a recorded run, variables of the
//! environment tell the place.

use backstory_eventlog::job_rank::JobRank;

/// The kind of the record.
pub const KIND: &[u8] = b"rank";

/// The place in a record. `None` for a record of another kind.
pub fn decode(kind: &[u8], payload: &[u8]) -> Option<JobRank> {
    (kind == KIND).then(|| JobRank::of_record(payload))?
}
