//! Sockets of the program, and those that libc makes inside itself.
//!
//! libc connects to the cache of the name service (nscd) and to the system log. A recorder in the
//! process sees none of these calls, so the record has no such socket. In a new execution, the call
//! that makes it may take a recorded socket of the program. The address that the socket connects to
//! then tells whose it is. Invariant: a socket that was returned is the next one of its kind again.

use super::taken::TakenTime;
use super::{ProcessMatcher, place_of};
use crate::process::{Made, skip_to};
use crate::resource::ResourceId;

/// The addresses that libc connects to: `_PATH_NSCDSOCKET` and `_PATH_LOG` of glibc.
const OF_LIBC: [&str; 2] = ["/var/run/nscd/socket", "/dev/log"];

/// True for an address that libc connects to inside itself.
pub fn is_of_libc(address: &str) -> bool {
    OF_LIBC.contains(&address)
}

/// A recorded socket that a call made again.
#[derive(Debug, Clone, Copy)]
pub(super) struct TakenSocket {
    /// Domain and type.
    key: (i32, i32),
    time: TakenTime,
}

impl ProcessMatcher {
    /// The next recorded socket of this domain and type, of this recorded thread if it made one.
    pub fn socket(&mut self, key: (i32, i32), thread: u32) -> Option<Made> {
        self.skip(|rest, time| {
            if let Some(queue) = rest.sockets.get_mut(&key) {
                skip_to(queue, time);
            }
        });
        let rest = &mut self.rest;
        let at = place_of(&rest.movers, rest.is_part, rest.sockets.get(&key)?, thread);
        let made = rest.sockets.get_mut(&key)?.remove(at);
        if let Some((Made::Resource(id), returned)) = &made {
            let time = self.taken_at(*returned);
            let taken = TakenSocket { key, time };
            self.taken_sockets.insert(*id, taken);
        }
        self.made(made)
    }

    /// Another call than that of the program took this socket: the program's comes later. False: no
    /// recorded call made it.
    pub fn return_socket(&mut self, id: ResourceId) -> bool {
        let Some(taken) = self.taken_sockets.remove(&id) else {
            return false;
        };
        let queue = self.rest.sockets.entry(taken.key).or_default();
        queue.push_front((Made::Resource(id), taken.time.returned));
        self.take_back(taken.time);
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::ProcessMatcher;
    use crate::process::{Made, RecordedProcess};
    use std::collections::{HashMap, VecDeque};

    const UNIX: (i32, i32) = (libc::AF_UNIX, libc::SOCK_STREAM);

    #[test]
    fn a_returned_socket_is_the_next_one_of_its_kind_and_moves_no_time() {
        let made = [(5, 100), (6, 200)].map(|(id, time)| (Made::Resource(id), time));
        let mut matcher = ProcessMatcher::new(RecordedProcess {
            sockets: HashMap::from([(UNIX, VecDeque::from(made))]),
            began: 50,
            ..RecordedProcess::default()
        });
        for _ in 0..3 {
            assert_eq!(matcher.socket(UNIX, 1), Some(Made::Resource(5)));
            assert_eq!((matcher.time(), matcher.matched), (100, 1));
            assert!(matcher.return_socket(5));
            assert_eq!((matcher.time(), matcher.matched), (50, 0));
        }
        assert!(!matcher.return_socket(5));
        assert_eq!(matcher.socket(UNIX, 1), Some(Made::Resource(5)));
        assert_eq!(matcher.socket(UNIX, 1), Some(Made::Resource(6)));
        assert_eq!(matcher.socket(UNIX, 1), None);
    }
}
