//! The records that each system call becomes. A call that is in no table changes nothing that the
//! graph knows.
//!
//! In: a call with its arguments and its result. Out: records as the recorder writes them: paths as
//! the program gave them, descriptors by number. The graph follows both.
//!
//! A call that never returned becomes a record without a result: its effect is possible.

mod channels;
mod descriptors;
mod files;
mod processes;

use crate::calls::system_call::{SystemCall, Unprinted};
use crate::calls::trace_state::TraceState;

/// The result of a translation: some argument could not be read.
type Translated = Result<(), Unprinted>;

/// Passes the records of a call on.
pub(crate) fn translate(trace: &mut TraceState<'_>, call: &SystemCall<'_>) {
    let tables = [
        descriptors::translate,
        files::translate,
        processes::translate,
        channels::translate,
    ];
    for table in tables {
        match table(trace, call) {
            None => {}
            Some(Ok(())) => return,
            // A failed call often has a pointer that leads nowhere.
            Some(Err(Unprinted)) => {
                trace.gaps.unprinted += usize::from(call.ok());
                return;
            }
        }
    }
}
