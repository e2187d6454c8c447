//! The conclusion about a call: the fields of its record, and where a `chdir` leads.

use crate::decoded_call::DecodedCall;
use crate::record_fields::record_fields;
use crate::record_writer::RecordFields;

/// The outcome of a call as far as the file system foretells it.
pub struct Conclusion {
    /// The fields of the call's record.
    pub fields: RecordFields,
    /// The directory after a `chdir`, where it has a name.
    pub directory: Option<Vec<u8>>,
    /// The text of the symbolic link that the call removes, as far as it succeeds.
    pub removed_link: Option<Vec<u8>>,
    /// The call may wait for another process in the kernel (it opens a FIFO or a device, or
    /// connects). A signal then restarts it, and it is notified again.
    pub may_wait: bool,
}

impl Conclusion {
    /// The conclusion for a call whose outcome is unknown.
    pub fn unknown(decoded: &DecodedCall) -> Conclusion {
        Conclusion {
            fields: record_fields(decoded),
            directory: None,
            removed_link: None,
            may_wait: false,
        }
    }
}
