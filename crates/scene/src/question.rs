//! The question that a scene answers.

use std::net::SocketAddr;
use std::path::PathBuf;

use backstory_eventlog::event::Time;
use backstory_query::{MeantEnd, meant_ends};

/// The subject of a scene.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Question {
    /// The requests and processes that changed a file. With `reads`, also those that read it.
    File {
        /// The file.
        path: PathBuf,
        /// Processes that read it count, too.
        reads: bool,
    },
    /// The requests of a peer, or to it.
    Address(PeerPattern),
    /// The requests at a moment.
    Moment(Time),
}

/// The other end of a connection, as a user writes it: `HOST:PORT`, `HOST`, `unix:PATH`, with or
/// without `tcp:` or `udp:` before it. `HOST` is a number or `localhost`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PeerPattern {
    text: String,
    /// The ends of a host. A path has none.
    ends: Vec<MeantEnd>,
}

impl PeerPattern {
    /// Reads an address. `None` if the text is something else.
    pub fn parse(text: &str) -> Option<PeerPattern> {
        let plain = ["tcp:", "udp:"]
            .iter()
            .find_map(|kind| text.strip_prefix(kind));
        let plain = plain.unwrap_or(text);
        let is_path = plain.starts_with("unix:") && plain.len() > 5;
        let ends = match is_path {
            true => Vec::new(),
            false => meant_ends(plain),
        };
        (is_path || !ends.is_empty()).then(|| PeerPattern {
            text: plain.to_owned(),
            ends,
        })
    }

    /// The address without its protocol.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// True for an address of a connection, with or without its protocol.
    pub fn accepts(&self, address: &str) -> bool {
        let plain = ["tcp:", "udp:"]
            .iter()
            .find_map(|kind| address.strip_prefix(kind));
        let plain = plain.unwrap_or(address);
        if self.ends.is_empty() {
            return plain == self.text;
        }
        let Ok(other) = plain.parse::<SocketAddr>() else {
            return self.ends.iter().any(|end| plain.parse() == Ok(end.host()));
        };
        // A server that listens on an IPv6 socket sees IPv4 peers as `::ffff:1.2.3.4`.
        self.ends.iter().any(|end| {
            let is_host = end.host().to_canonical() == other.ip().to_canonical();
            is_host && end.port().is_none_or(|port| port == other.port())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::PeerPattern;

    fn accepts(pattern: &str, address: &str) -> bool {
        PeerPattern::parse(pattern).unwrap().accepts(address)
    }

    #[test]
    fn a_peer_is_meant_by_host_by_host_and_port_or_by_path() {
        assert!(accepts("192.0.2.7", "192.0.2.7:5000"));
        assert!(accepts("192.0.2.7:5000", "tcp:192.0.2.7:5000"));
        assert!(accepts("tcp:192.0.2.7:5000", "192.0.2.7:5000"));
        assert!(accepts("localhost:80", "127.0.0.1:80"));
        assert!(accepts("localhost:80", "[::1]:80") && accepts("localhost", "[::1]:80"));
        assert!(!accepts("localhost:80", "[::1]:81") && !accepts("localhost", "192.0.2.7:80"));
        assert!(accepts("192.0.2.7", "[::ffff:192.0.2.7]:5000"));
        assert!(accepts("[::1]:80", "[::1]:80") && accepts("::1", "[::1]:80"));
        assert!(accepts("unix:/run/x", "unix:/run/x"));
        assert!(!accepts("192.0.2.7:5000", "192.0.2.7:5001"));
        assert!(!accepts("192.0.2.7", "192.0.2.70:5000"));
        assert!(!accepts("unix:/run/x", "unix:/run/xy"));
    }

    #[test]
    fn paths_and_times_are_no_addresses() {
        for text in [
            "report.txt",
            "/srv/x",
            "2026-11-20 08:31",
            "unix:",
            "host:80",
            "12:30",
            "",
        ] {
            assert_eq!(PeerPattern::parse(text), None, "{text}");
        }
    }
}
