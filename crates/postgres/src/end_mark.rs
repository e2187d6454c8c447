//! The mark in the server's log behind all that a watch records.
//!
//! A process of the server passes its lines to the one that writes the log, and only then answers
//! its client. A busy machine delays the writer. A message that the watch's session raises at its
//! end stands behind the lines of all statements that were answered before.

use crate::connection::Connection;

/// The message.
pub(crate) const END: &str = "backstory watch ends";

/// Raises the message. Any user may. False: the log will not have it.
pub(crate) fn raise(session: &mut Connection) -> bool {
    let is_logged = |level: &str| !["fatal", "panic"].contains(&level);
    let level = session.value("SHOW log_min_messages");
    let raised = format!("DO $$ BEGIN RAISE LOG '{END}'; END $$");
    level.is_ok_and(|level| is_logged(&level)) && session.query(&raised).is_ok()
}
