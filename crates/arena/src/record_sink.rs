//! The destination of an observer's records. It is all that the guard's receivers know of the arena
//! and the log.

/// Takes finished records in the order of their operations. A record is a `bs_record` and the
/// fields after it; its length is a multiple of 8 bytes.
///
/// A sink never fails. It counts a record that it cannot store as lost, and the run reports that.
pub trait RecordSink {
    /// Appends one record.
    fn append(&mut self, record: &[u8]);
}
