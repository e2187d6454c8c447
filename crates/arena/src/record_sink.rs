//! Where observers put what they saw: the one thing the guard's receivers know of the arena and the log.

/// Takes finished records (`bs_record` and what follows it, a multiple of 8 bytes long), in the order they happened.
///
/// A sink never fails towards its user: what it can't keep it counts as lost, and the run says so.
pub trait RecordSink {
    /// Appends one record.
    fn append(&mut self, record: &[u8]);
}
