//! Descriptors that programs of a whole run pass to each other (`SCM_RIGHTS` in unix(7)).
//!
//! In: the descriptors of messages that leave. Out: the descriptors of the receivers. A file of the
//! root is the same open file in both programs, so that the receiver writes into it. All others are
//! stand-ins, as the receiver's record has streams of its own for them.
//!
//! Threads may send messages in another order than in the record. So a received message has the
//! descriptors of the first one that fits among those that were sent there. Type, path and identity
//! of each are compared with those that the record of the receiver has. If none fits, it has those
//! of the first one.
//!
//! Invariant: copies are open only while a program may still receive them. Absent: the addresses of
//! peers. A socket is a stand-in, and the receiver's record alone says what it gets.

use super::Supervisor;
use super::ends::is_alive;
use super::processes::Role;
use crate::control::{RecordedControl, passed_descriptors};
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

/// The end of the link to a file whose name was removed.
const REMOVED: &[u8] = b" (deleted)";

/// A descriptor that left in a message.
#[derive(Debug)]
enum SentDescriptor {
    /// A copy of that of the sender.
    File(OwnedFd),
    /// The sender has a stand-in for this resource, and the receiver gets one of its own.
    StandIn(ResourceId),
    /// No copy could be made.
    Lost,
}

/// The descriptors of one message.
type SentDescriptors = Vec<SentDescriptor>;

/// The descriptors that were sent and not received, by the end of the connection that gets them.
#[derive(Debug, Default)]
pub(super) struct PassedDescriptors {
    sent: HashMap<ResourceId, VecDeque<SentDescriptors>>,
}

impl PassedDescriptors {
    /// Those of the next message to this end, as many as it had in the record: the room of a
    /// receiver may be smaller. The list is empty if fewer were sent. `fits`: whether one of them
    /// is the recorded one with this number.
    fn next(
        &mut self,
        receiver: ResourceId,
        count: usize,
        fits: impl Fn(&SentDescriptor, usize) -> bool,
    ) -> SentDescriptors {
        let Some(queue) = self.sent.get_mut(&receiver) else {
            return Vec::new();
        };
        let is_next = |sent: &SentDescriptors| {
            let mut first = sent.iter().take(count).enumerate();
            sent.len() >= count && first.all(|(number, one)| fits(one, number))
        };
        let found = queue.iter().position(is_next);
        let mut next = queue.remove(found.unwrap_or(0)).unwrap_or_default();
        if next.len() < count {
            return Vec::new();
        }
        next.truncate(count);
        next
    }

    /// Closes the descriptors of the messages to other ends than these.
    fn retain(&mut self, receives: impl Fn(ResourceId) -> bool) {
        self.sent
            .retain(|receiver, queue| !queue.is_empty() && receives(*receiver));
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
        if numbers.is_empty() || !self.is_received(receiver) {
            return Ok(());
        }
        let one = |(_, fd): &(usize, i32)| match self.stand_ins.of(call.tid, *fd) {
            Some(ends) => SentDescriptor::StandIn(ends.read),
            None => match self.copy_of(call, *fd) {
                Ok(file) => SentDescriptor::File(file),
                Err(_) => SentDescriptor::Lost,
            },
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
        let mut sent = self.sent_to(id, &control).into_iter();
        for (at, passed) in &control.passed {
            let own = match sent.next() {
                Some(SentDescriptor::File(file)) if self.known().may_be_file(&file, *passed) => {
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

    /// The descriptors of a recorded message to this end.
    fn sent_to(&mut self, receiver: ResourceId, control: &RecordedControl) -> SentDescriptors {
        let mut passed = std::mem::take(&mut self.passed_descriptors);
        let sent = match control.passed.len() {
            0 => Vec::new(),
            count => passed.next(receiver, count, |one, number| {
                let id = control.passed[number].1;
                self.known().is_likely(one, id)
            }),
        };
        self.passed_descriptors = passed;
        sent
    }

    fn known(&self) -> Known<'_> {
        Known {
            resources: &self.resources,
            idents: &self.idents,
        }
    }

    /// Closes the copies that no program receives any more.
    pub(super) fn close_passed(&mut self) {
        if self.passed_descriptors.sent.is_empty() {
            return;
        }
        let mut passed = std::mem::take(&mut self.passed_descriptors);
        passed.retain(|receiver| self.is_received(receiver));
        self.passed_descriptors = passed;
    }

    /// True if a program that has not ended still receives descriptors at this end in the record.
    fn is_received(&self, receiver: ResourceId) -> bool {
        let mut all = self.matchers.iter().enumerate();
        all.any(|(index, matcher)| {
            let streams = matcher.rest.streams.get(&receiver);
            let mut control = streams.into_iter().flat_map(|own| own.control.values());
            let is_due = control.any(|control| !control.passed.is_empty());
            is_due && (!self.started[index] || self.is_running(index))
        })
    }

    /// True if a process runs this program now.
    fn is_running(&self, index: usize) -> bool {
        let mut live = self.live.iter();
        live.any(|(pid, process)| process.role == Role::Program(index) && is_alive(*pid))
    }
}

/// The recorded resources, and the identities that files of the root have for the programs.
#[derive(Clone, Copy)]
struct Known<'a> {
    resources: &'a [Resource],
    idents: &'a HashMap<(u64, u64), (u64, u64)>,
}

impl Known<'_> {
    /// True if this descriptor may have been passed as this resource, and nothing tells the two
    /// apart.
    fn is_likely(&self, sent: &SentDescriptor, id: ResourceId) -> bool {
        match sent {
            SentDescriptor::File(file) => {
                self.may_be_file(file, id) && self.has_identity(file, id) != Some(false)
            }
            SentDescriptor::StandIn(sender) => {
                let (own, passed) = (&self.resources[*sender], &self.resources[id]);
                let same_kind = own.kind == 0 || passed.kind == 0 || own.kind == passed.kind;
                let both = own.ident.zip(passed.ident);
                same_kind && both.is_none_or(|(own, passed)| own == passed)
            }
            SentDescriptor::Lost => true,
        }
    }

    /// True unless the record says that this passed resource is another file. The output to it is
    /// not compared as that of a stream, so a file is no socket.
    fn may_be_file(&self, file: &OwnedFd, id: ResourceId) -> bool {
        let Resource { kind, link, .. } = &self.resources[id];
        let own = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
        let is_there = || own.is_ok_and(|own| is_same_path(own.as_os_str().as_bytes(), link));
        let is_same = || self.has_identity(file, id) == Some(true);
        is_of_kind(file, *kind) && (link.is_empty() || is_same() || is_there())
    }

    /// Whether a file has the recorded identity of a resource. `None`: not known.
    fn has_identity(&self, file: &OwnedFd, id: ResourceId) -> Option<bool> {
        let status = rustix::fs::fstat(file).ok()?;
        let shown = self.idents.get(&(status.st_dev, status.st_ino))?;
        Some(self.resources[id].ident? == *shown)
    }
}

/// True if two links in `/proc/self/fd` may be those of one file. Its name may have been removed
/// meanwhile. One that never had a name has its inode in the link.
fn is_same_path(one: &[u8], other: &[u8]) -> bool {
    let [one, other] = [one, other].map(|link| link.strip_suffix(REMOVED).unwrap_or(link));
    let unnamed = unnamed_in(one);
    one == other || unnamed.is_some() && unnamed == unnamed_in(other)
}

/// The directory of a file without a name (`O_TMPFILE`), by its link.
fn unnamed_in(link: &[u8]) -> Option<&[u8]> {
    let at = link.iter().rposition(|byte| *byte == b'/')?;
    let (directory, name) = link.split_at(at);
    let inode = name.strip_prefix(b"/#")?;
    let is_number = !inode.is_empty() && inode.iter().all(u8::is_ascii_digit);
    is_number.then_some(directory)
}

/// True for a file of this type, of which the record has the bits of the mode. 0: it has none.
fn is_of_kind(file: &OwnedFd, kind: u32) -> bool {
    let own = || rustix::fs::fstat(file).map(|status| status.st_mode & S_IFMT);
    kind == 0 || own().is_ok_and(|own| own == kind)
}

#[cfg(test)]
mod tests {
    use super::{Known, PassedDescriptors, SentDescriptor, is_of_kind, is_same_path};
    use crate::resource::{Origin, Resource, ResourceId};
    use libc::{S_IFCHR, S_IFIFO, S_IFREG, S_IFSOCK};
    use rustix::fs::{MemfdFlags, fstat, memfd_create};
    use rustix::pipe::pipe;
    use std::collections::{HashMap, VecDeque};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::OwnedFd;

    /// The end that receives.
    const END: ResourceId = 7;

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

    /// The queue of an end.
    fn queue(sent: impl IntoIterator<Item = Vec<SentDescriptor>>) -> PassedDescriptors {
        PassedDescriptors {
            sent: HashMap::from([(END, VecDeque::from_iter(sent))]),
        }
    }

    #[test]
    fn each_end_gets_the_descriptors_in_the_order_of_the_messages_if_there_are_enough() {
        let lost = |count| (0..count).map(|_| SentDescriptor::Lost).collect();
        let mut passed = queue([1, 2, 3, 3].map(lost));
        let mut counts = |end, count| passed.next(end, count, |_, _| true).len();
        assert_eq!(counts(8, 1), 0);
        assert_eq!(counts(END, 1), 1);
        assert_eq!(counts(END, 9), 0);
        assert_eq!(counts(END, 3), 3);
        // The receiver has room for one of three.
        assert_eq!(counts(END, 1), 1);
        assert_eq!(counts(END, 1), 0);
    }

    fn resource(kind: u32, link: &str, inode: Option<u64>) -> Resource {
        Resource {
            link: link.as_bytes().to_vec(),
            ident: inode.map(|inode| (1, inode)),
            ..Resource::new(Origin::Passed, b"", kind)
        }
    }

    /// The inode of the one file of the next message, of which the record has this resource.
    fn next(passed: &mut PassedDescriptors, known: Known<'_>, id: ResourceId) -> Option<u64> {
        let sent = passed.next(END, 1, |one, _| known.is_likely(one, id));
        match sent.first()? {
            SentDescriptor::File(file) => Some(fstat(file).unwrap().st_ino),
            SentDescriptor::StandIn(_) | SentDescriptor::Lost => None,
        }
    }

    #[test]
    fn messages_that_were_sent_in_another_order_are_told_apart_by_the_path_and_type() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().canonicalize().unwrap();
        let paths = ["one", "other"].map(|name| path.join(name));
        let files = [0, 1].map(|at| OwnedFd::from(File::create(&paths[at]).unwrap()));
        let inodes = [0, 1].map(|at| fstat(&files[at]).unwrap().st_ino);
        let links = [0, 1].map(|at| paths[at].to_str().unwrap());
        let resources = [
            resource(S_IFREG, links[0], None),
            resource(S_IFREG, links[1], None),
            resource(S_IFSOCK, "", None),
        ];
        let idents = HashMap::new();
        let known = Known {
            resources: &resources,
            idents: &idents,
        };
        let [one, other] = files.map(|file| vec![SentDescriptor::File(file)]);
        let mut passed = queue([other, vec![SentDescriptor::StandIn(2)], one]);
        assert_eq!(next(&mut passed, known, 0), Some(inodes[0]));
        assert_eq!(next(&mut passed, known, 2), None);
        assert_eq!(next(&mut passed, known, 1), Some(inodes[1]));
    }

    #[test]
    fn files_of_one_name_and_sockets_are_told_apart_by_their_identity() {
        let memory = || memfd_create("shared", MemfdFlags::CLOEXEC).unwrap();
        let files = [memory(), memory()];
        let statuses = [0, 1].map(|at| fstat(&files[at]).unwrap());
        let inodes = statuses.map(|status| status.st_ino);
        let [one, other] = statuses.map(|status| (status.st_dev, status.st_ino));
        let idents = HashMap::from([(one, (1, 10)), (other, (1, 20))]);
        let link = "/memfd:shared (deleted)";
        let resources = [
            resource(S_IFREG, link, Some(10)),
            resource(S_IFREG, link, Some(20)),
            resource(S_IFSOCK, "", Some(30)),
            resource(S_IFSOCK, "", Some(31)),
        ];
        let known = Known {
            resources: &resources,
            idents: &idents,
        };
        let mut passed = queue(files.map(|file| vec![SentDescriptor::File(file)]));
        assert_eq!(next(&mut passed, known, 1), Some(inodes[1]));
        assert_eq!(next(&mut passed, known, 0), Some(inodes[0]));
        assert!(known.is_likely(&SentDescriptor::StandIn(2), 2));
        assert!(!known.is_likely(&SentDescriptor::StandIn(2), 3));
    }

    #[test]
    fn a_file_whose_name_was_removed_or_that_never_had_one_is_found_by_its_link() {
        let is_same = |one: &str, other: &str| is_same_path(one.as_bytes(), other.as_bytes());
        assert!(is_same("/d/one", "/d/one (deleted)"));
        assert!(is_same("/d/#12 (deleted)", "/d/#34 (deleted)"));
        for other in ["/d/other", "/e/#12 (deleted)", "/d/#", "/d/#x", "#12", ""] {
            assert!(!is_same("/d/#12 (deleted)", other), "{other}");
        }
    }

    #[test]
    fn descriptors_that_no_program_receives_any_more_are_closed() {
        let (read, write) = pipe().unwrap();
        let mut passed = queue([vec![SentDescriptor::File(write)]]);
        passed.retain(|receiver| receiver == END);
        assert!(!passed.sent.is_empty());
        passed.retain(|receiver| receiver != END);
        let mut rest = Vec::new();
        // Otherwise the read would wait for ever.
        assert!(passed.sent.is_empty());
        File::from(read).read_to_end(&mut rest).unwrap();
    }
}
