//! Descriptors that programs of a whole run pass to each other (`SCM_RIGHTS` in unix(7)).
//!
//! In: the descriptors of messages that leave. Out: the descriptors of the receivers. A file of the
//! root is the same open file in both programs, so that the receiver writes into it. All others are
//! stand-ins, as the receiver's record has streams of its own for them.
//!
//! Invariant: the n-th message with descriptors at the end of a connection has those of the n-th
//! one that was sent there.

use super::Supervisor;
use crate::control::passed_descriptors;
use crate::engine::caller::NotifiedCall;
use crate::resource::{Resource, ResourceId};
use backstory_sys as sys;
use libc::{MSG_CMSG_CLOEXEC, S_IFMT};
use std::collections::{HashMap, VecDeque};
use std::io;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;

/// Most bytes of the control messages of one call that are looked at. A message passes at most 253
/// descriptors.
const MOST_BYTES: u64 = 1 << 14;

/// The descriptors of one message. `None`: one that the receiver gets a stand-in for.
type SentDescriptors = Vec<Option<OwnedFd>>;

/// The descriptors that were sent and not received, by the end of the connection that gets them.
#[derive(Debug, Default)]
pub(super) struct PassedDescriptors {
    sent: HashMap<ResourceId, VecDeque<SentDescriptors>>,
}

impl PassedDescriptors {
    /// Those of the next message to this end. The list is empty if that message passed another
    /// number of them.
    fn next(&mut self, receiver: ResourceId, count: usize) -> SentDescriptors {
        let next = self.sent.get_mut(&receiver).and_then(VecDeque::pop_front);
        next.filter(|sent| sent.len() == count).unwrap_or_default()
    }
}

impl Supervisor {
    /// Keeps copies of the descriptors of a message that a program has sent. `message`: the address
    /// of its `struct msghdr`.
    pub(super) fn note_passed(
        &mut self,
        call: &NotifiedCall,
        id: ResourceId,
        message: u64,
    ) -> io::Result<()> {
        let receiver = self.pipes.other_end(id);
        // Of a request, the receiver may have no record of some messages.
        let Some(receiver) = receiver.filter(|_| self.part.is_none()) else {
            return Ok(());
        };
        let (control, length) = (call.word(message + 32)?, call.word(message + 40)?);
        if control == 0 || length == 0 {
            return Ok(());
        }
        let bytes = call.bytes(control, length.min(MOST_BYTES) as usize)?;
        let numbers = passed_descriptors(&bytes);
        if numbers.is_empty() {
            return Ok(());
        }
        let one = |(_, fd): &(usize, i32)| match self.stand_ins.of(call.tid, *fd) {
            Some(_) => None,
            None => self.copy_of(call, *fd).ok(),
        };
        let sent = numbers.iter().map(one).collect();
        let queue = self.passed_descriptors.sent.entry(receiver).or_default();
        queue.push_back(sent);
        Ok(())
    }

    /// The control messages of the bytes that were just read, with new descriptors of the caller in
    /// the place of those that were passed.
    pub(super) fn control_messages(
        &mut self,
        call: &NotifiedCall,
        index: usize,
        id: ResourceId,
        flags: i32,
    ) -> io::Result<Vec<u8>> {
        let streams = self.matchers[index].streams(id);
        let time = streams.input.last_time();
        let found = match flags & libc::MSG_PEEK {
            0 => streams.control.remove(&time),
            _ => None,
        };
        let mut control = found.unwrap_or_default();
        let sent = match control.passed.len() {
            0 => Vec::new(),
            count => self.passed_descriptors.next(id, count),
        };
        let mut sent = sent.into_iter();
        for (at, passed) in &control.passed {
            let own = match sent.next().flatten() {
                Some(file) if self.may_be(&file, *passed) => {
                    // Its content is compared at the end.
                    self.matchers[index].rest.streams.remove(passed);
                    file
                }
                _ => self.inherited(*passed, None)?,
            };
            let closes = flags & MSG_CMSG_CLOEXEC != 0;
            let listener = self.listener.as_fd();
            let fd = sys::add_descriptor(listener, call.id, own.as_fd(), None, closes, false)?;
            if let Some(number) = control.bytes.get_mut(*at..*at + 4) {
                number.copy_from_slice(&fd.to_le_bytes());
            }
        }
        Ok(control.bytes)
    }

    /// True unless the record says that this passed resource is another file. The output to it is
    /// not compared as that of a stream, so a file is no socket.
    fn may_be(&self, file: &OwnedFd, id: ResourceId) -> bool {
        let Resource { kind, link, .. } = &self.resources[id];
        let own = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let is_there = || own.is_ok_and(|own| own.as_os_str().as_bytes() == link);
        is_of_kind(file, *kind) && (link.is_empty() || is_there())
    }
}

/// True for a file of this type, of which the record has the bits of the mode. 0: it has none.
fn is_of_kind(file: &OwnedFd, kind: u32) -> bool {
    let own = || rustix::fs::fstat(file).map(|status| status.st_mode & S_IFMT);
    kind == 0 || own().is_ok_and(|own| own == kind)
}

#[cfg(test)]
mod tests {
    use super::{PassedDescriptors, is_of_kind};
    use libc::{S_IFCHR, S_IFIFO, S_IFREG, S_IFSOCK};
    use std::collections::VecDeque;
    use std::fs::File;
    use std::os::fd::OwnedFd;

    #[test]
    fn a_passed_file_stands_for_no_resource_of_another_type() {
        let device: OwnedFd = File::open("/dev/null").unwrap().into();
        for other in [S_IFREG, S_IFIFO, S_IFSOCK] {
            assert!(!is_of_kind(&device, other), "{other:o}");
        }
        assert!(is_of_kind(&device, S_IFCHR));
        // The receiver made no call that told the type.
        assert!(is_of_kind(&device, 0));
    }

    #[test]
    fn each_end_gets_the_descriptors_in_the_order_of_the_messages_if_their_number_is_the_same() {
        let mut passed = PassedDescriptors::default();
        let sent = VecDeque::from([vec![None], vec![None, None], vec![None, None, None]]);
        passed.sent.insert(7, sent);
        let mut counts = |end, count| passed.next(end, count).len();
        assert_eq!(counts(8, 1), 0);
        assert_eq!(counts(7, 1), 1);
        assert_eq!(counts(7, 9), 0);
        assert_eq!(counts(7, 3), 3);
        assert_eq!(counts(7, 1), 0);
    }
}
