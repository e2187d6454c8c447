//! Whether the server's process of a session has ended.
//!
//! In: the id of a session in the server's log, `START.PID` in hexadecimal digits (`%c` of
//! `log_line_prefix`). The log has the end of a session only with `log_disconnections = on`.
//! Without it, a watch would keep all sessions.
//!
//! Invariant: nothing is said of a server whose processes are not visible here, such as one in a
//! container. A number that another process has got since counts as running.

use backstory_database::client_process::birth;
use backstory_sys::clock::machine;

/// A process that is older has the number of the server's by chance, in ns.
const FRESH: i64 = 60_000_000_000;

/// The processes of a server.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Backends {
    are_visible: bool,
}

impl Backends {
    /// `own`: the number that the server gave for the process of a session that began just now.
    pub(crate) fn with_session(own: u32) -> Backends {
        Backends {
            are_visible: birth(own).is_some_and(|born| machine().saturating_sub(born) < FRESH),
        }
    }

    /// True if the process of the session has certainly ended.
    pub(crate) fn has_ended(self, session: &str) -> bool {
        let pid = session.split_once('.').map(|(_, pid)| pid);
        let pid = pid.and_then(|pid| u32::from_str_radix(pid, 16).ok());
        self.are_visible && pid.is_some_and(|pid| birth(pid).is_none())
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, id};

    use super::*;

    #[test]
    fn a_session_ends_with_its_process_if_the_servers_processes_are_visible() {
        let mut server = Command::new("sleep").arg("60").spawn().unwrap();
        let (here, elsewhere) = (Backends::with_session(server.id()), Backends::default());
        let session = format!("6925a1b0.{:x}", server.id());
        assert!(!here.has_ended(&session));
        server.kill().unwrap();
        server.wait().unwrap();
        assert!(here.has_ended(&session));
        assert!(!elsewhere.has_ended(&session));
        assert!(!here.has_ended(&format!("6925a1b0.{:x}", id())));
        assert!(!here.has_ended("no number"));
        // The number of a process that is gone says nothing about the server.
        assert!(!Backends::with_session(server.id()).has_ended(&session));
    }
}
