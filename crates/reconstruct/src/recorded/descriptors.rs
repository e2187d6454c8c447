//! Follows the descriptors of each process, so that each call finds its resource.

use super::{Arranging, ended};
use crate::control::{RecordedControl, passed_descriptors};
use crate::process::{AcceptedConnection, Made, ResourceStreams};
use crate::resource::{
    NamedDirectory, Origin, Resource, ResourceId, address_words, descriptor_path, path_below,
    through_directory,
};
use crate::temporary_names::Creation;
use backstory_abi::deep;
use backstory_deep::Call;
use libc::{S_IFDIR, S_IFIFO, S_IFREG, S_IFSOCK, c_long};

impl Arranging {
    /// A fact about a descriptor before its first use.
    pub(super) fn descriptor(&mut self, call: &Call) {
        let kind = call.result as u32;
        // A listing belongs to the whole path of its directory.
        let is_whole = kind != S_IFDIR || !call.is_cut;
        let given = call.path().filter(|name| !name.is_empty() && is_whole);
        let name = given.filter(|name| *name != [deep::NO_NAME]);
        let name = name.unwrap_or_default();
        let ident = call.section(deep::IDENT, 0).and_then(|bytes| {
            let word = |at: usize| Some(u64::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
            Some((word(0)?, word(8)?))
        });
        let known = self.table.get(&call.fd).copied().filter(|id| {
            let resource = &self.run.resources[*id];
            let same = resource.ident.is_none() || ident.is_none() || resource.ident == ident;
            same && (resource.kind == 0 || resource.kind == kind)
        });
        let shared = ident.and_then(|ident| self.by_ident.get(&ident).copied());
        if let (Some(vague), Some(shared)) = (known, shared)
            && vague != shared
            && self.run.resources[vague].is_vague()
        {
            self.is_same(vague, shared);
        }
        let known = self
            .table
            .get(&call.fd)
            .copied()
            .filter(|_| known.is_some());
        // Of a resource without an identity, another process may know more.
        let is_stream = matches!(kind, S_IFIFO | S_IFSOCK);
        let known = known.filter(|id| {
            let resource = &self.run.resources[*id];
            let is_sure = resource.ident.is_some() || resource.origin != Origin::Inherited;
            is_sure || !is_stream || shared.is_none()
        });
        let known = known.or_else(|| self.moved_file(call.fd, kind, ident));
        if let (None, Some(id)) = (known, shared) {
            // It had the descriptor from the start, although its parent never used it.
            self.process.inherited.push((call.fd, id, None));
        }
        // An earlier call of the process had the number, so it was not open from the start. A child
        // opened it in the same table of descriptors (`CLONE_FILES`).
        let is_opened_aside = kind == S_IFREG && self.made_at.contains_key(&call.fd);
        let id = known.or(shared).unwrap_or_else(|| match is_opened_aside {
            true => self.new_resource(Resource::new(Origin::Opened, name, kind)),
            false => {
                let id = self.new_resource(Resource::new(Origin::Inherited, name, kind));
                self.process.inherited.push((call.fd, id, None));
                id
            }
        });
        if kind == S_IFREG
            && let Ok(position) = u64::try_from(call.b as i64)
        {
            self.offsets.insert(id, position);
            // A call that asked about it may have introduced it before.
            let own = self.process.inherited.iter_mut();
            own.filter(|(_, known, _)| *known == id)
                .for_each(|(_, _, first)| *first = first.or(Some(position)));
        }
        let resource = &mut self.run.resources[id];
        resource.kind = kind;
        // Without a path, the file was opened by its name.
        let link = given.unwrap_or(&resource.name);
        if link.starts_with(b"/") {
            resource.link = link.to_vec();
        }
        resource.ident = resource.ident.or(ident);
        if resource.name.is_empty() || resource.name.starts_with(b"descriptor ") {
            resource.name = name.to_vec();
        }
        // The program makes these again, each with its own state in the kernel.
        if resource.is_kernel_object() {
            self.process.inherited.retain(|(_, known, _)| *known != id);
        }
        // A file can be opened twice. Inherited descriptors are one open file.
        if let Some(ident) = ident
            && (is_stream || resource.origin == Origin::Inherited)
        {
            self.by_ident.entry(ident).or_insert(id);
        }
        self.table.insert(call.fd, id);
        // References are to files.
        if kind == S_IFREG {
            self.numbers.insert(call.a, id);
        }
    }

    /// The file with this identity that the parent had opened under another number. A child in its
    /// parent's memory moves descriptors before it executes a program, and has no record of that.
    fn moved_file(&mut self, fd: i32, kind: u32, ident: Option<(u64, u64)>) -> Option<ResourceId> {
        let ident = ident.filter(|_| kind == S_IFREG)?;
        let mut held = self.process.held.iter().map(|(_, id)| *id);
        let id = held.find(|id| {
            let resource = &self.run.resources[*id];
            resource.origin == Origin::Opened && resource.ident == Some(ident)
        })?;
        self.process.held.push((fd, id));
        Some(id)
    }

    /// A call told the kind and identity of a descriptor. If the parent had something else under
    /// its number, the process has another resource there from its start.
    pub(super) fn has_status(&mut self, fd: i32, kind: u32, ident: (u64, u64)) {
        let is_other = |id: &ResourceId| {
            let known = self.run.resources[*id].kind;
            known != 0 && known != kind && self.process.held.contains(&(fd, *id))
        };
        if !self.table.get(&fd).is_some_and(is_other) {
            return;
        }
        if let Some(id) = self.moved_file(fd, kind, Some(ident)) {
            self.table.insert(fd, id);
            return;
        }
        let shared = self.by_ident.get(&ident).copied();
        let id = shared.unwrap_or_else(|| {
            let name = format!("descriptor {fd}");
            let resource = Resource::new(Origin::Inherited, name.as_bytes(), kind);
            self.new_resource(Resource {
                ident: Some(ident),
                ..resource
            })
        });
        self.by_ident.entry(ident).or_insert(id);
        self.process.inherited.push((fd, id, None));
        self.table.insert(fd, id);
    }

    pub(super) fn new_resource(&mut self, resource: Resource) -> ResourceId {
        self.run.resources.push(resource);
        self.run.resources.len() - 1
    }

    /// The resource behind a descriptor, which the process had from its start if no call made it.
    pub(super) fn behind(&mut self, fd: i32, kind: u32) -> ResourceId {
        if let Some(id) = self.table.get(&fd) {
            return *id;
        }
        let name = format!("descriptor {fd}");
        let id = self.new_resource(Resource::new(Origin::Inherited, name.as_bytes(), kind));
        self.process.inherited.push((fd, id, None));
        self.table.insert(fd, id);
        self.vague_since.insert(id, self.run.processes.len());
        id
    }

    pub(super) fn streams(&mut self, id: ResourceId) -> &mut ResourceStreams {
        self.process.streams.entry(id).or_default()
    }

    pub(super) fn opened(&mut self, call: &Call) {
        let Some(path) = call.path().map(<[u8]>::to_vec) else {
            return;
        };
        let same = descriptor_path(&path, self.process.own_pid);
        let same = same.and_then(|fd| self.table.get(&fd)).copied();
        if let Ok(fd) = i32::try_from(call.result) {
            self.made_at.insert(fd, ended(call));
        }
        let made = match (same, i32::try_from(call.result)) {
            // A name of an open descriptor: `/dev/fd/63`.
            (Some(id), Ok(fd)) if fd >= 0 => {
                self.table.insert(fd, id);
                Made::Resource(id)
            }
            _ => {
                let name = self.behind_directory(&path);
                let name = name.as_ref().unwrap_or(&path);
                self.made(call.result, || Resource::new(Origin::Opened, name, 0))
            }
        };
        if self.in_outline {
            return;
        }
        self.note_temporary(call, Creation::of_file(call.a as i32, call.b as u32));
        let queue = self.process.opens.entry(path).or_default();
        queue.push_back((made, ended(call)));
    }

    /// The name of a file that was opened through a name of a directory in `/proc`. It is a file of
    /// that directory, and the kernel does not make it up.
    pub(super) fn behind_directory(&self, path: &[u8]) -> Option<Vec<u8>> {
        let (directory, rest) = through_directory(path, self.process.own_pid)?;
        let base: &[u8] = match directory {
            NamedDirectory::Open(fd) => {
                let resource = &self.run.resources[*self.table.get(&fd)?];
                match resource.link.is_empty() {
                    true => &resource.name,
                    false => &resource.link,
                }
            }
            NamedDirectory::Current => b".",
            NamedDirectory::Root => b"",
        };
        Some(path_below(base, rest))
    }

    /// The result of a call that makes a descriptor.
    pub(super) fn made(&mut self, result: i64, resource: impl FnOnce() -> Resource) -> Made {
        match i32::try_from(result) {
            Ok(fd) if fd >= 0 => {
                let id = self.new_resource(resource());
                self.table.insert(fd, id);
                Made::Resource(id)
            }
            _ => Made::Failed(result.unsigned_abs() as i32),
        }
    }

    /// A descriptor is closed. A call of another thread may have got its number while this call
    /// was made: that descriptor stays.
    pub(super) fn closed(&mut self, call: &Call) {
        let made = self.made_at.get(&call.fd);
        if made.is_none_or(|returned| *returned <= call.time) {
            self.table.remove(&call.fd);
        }
    }

    /// An object without a name that the kernel makes again.
    pub(super) fn kernel_object(&mut self, call: &Call) {
        if let Ok(fd) = i32::try_from(call.result)
            && fd >= 0
        {
            let id = self.new_resource(Resource::new(Origin::Opened, b"anon_inode:", 0));
            self.table.insert(fd, id);
        }
    }

    pub(super) fn socket(&mut self, call: &Call) {
        self.note_mover(call);
        let kind = call.b as i32 & !(libc::SOCK_CLOEXEC | libc::SOCK_NONBLOCK);
        let socket = (call.a as i32, kind);
        let made = self.made(call.result, || Resource {
            socket: Some(socket),
            ..Resource::new(Origin::Socket, b"", S_IFSOCK)
        });
        if self.in_outline {
            return;
        }
        self.process
            .sockets
            .entry(socket)
            .or_default()
            .push_back((made, ended(call)));
    }

    pub(super) fn accepted(&mut self, call: &Call) {
        let listener = self.behind(call.fd, S_IFSOCK);
        let is_omitted = call.result >= 0 && self.omits_accepted(self.run.resources.len());
        if !is_omitted {
            self.note_mover(call);
        }
        let address = match is_omitted || self.in_outline {
            true => Vec::new(),
            false => call.address().unwrap_or_default().to_vec(),
        };
        let socket = self.run.resources[listener].socket;
        let peer = call.address().filter(|_| !is_omitted);
        let made = self.made(call.result, || Resource {
            socket,
            peer: peer.and_then(address_words),
            ..Resource::new(Origin::Accepted(listener), b"", S_IFSOCK)
        });
        let first = self.process.first_contact.get_or_insert(ended(call));
        *first = ended(call).min(*first);
        let streams = self.streams(listener);
        streams.is_listener = true;
        streams.accepted.push_back(AcceptedConnection {
            made,
            address,
            time: ended(call),
        });
    }

    /// Control messages came with bytes. Passed descriptors are resources of the process from here.
    pub(super) fn controlled(&mut self, id: ResourceId, call: &Call, bytes: &[u8]) {
        let mut passed = Vec::new();
        for (at, fd) in passed_descriptors(bytes) {
            let resource = self.new_resource(Resource::new(Origin::Passed, b"", 0));
            self.table.insert(fd, resource);
            passed.push((at, resource));
        }
        if self.omits(id) {
            return;
        }
        let control = RecordedControl {
            bytes: bytes.to_vec(),
            passed,
        };
        self.streams(id).control.insert(ended(call), control);
    }

    pub(super) fn connected(&mut self, call: &Call) {
        let id = self.behind(call.fd, S_IFSOCK);
        let peer = call.address().and_then(address_words);
        self.run.resources[id].peer.clone_from(&peer);
        self.connects(call, id, peer.as_ref());
        if !self.omits(id) {
            self.streams(id).connected.push_back((call.result, peer));
        }
    }

    pub(super) fn pair(&mut self, call: &Call) {
        self.note_mover(call);
        let socket = c_long::from(call.number) == libc::SYS_socketpair;
        let kind = if socket { S_IFSOCK } else { S_IFIFO };
        let arg = if socket { 3 } else { 0 };
        let Some((one, two)) = call.entered_at(arg).and_then(|bytes| {
            let word = |at: usize| Some(i32::from_le_bytes(*bytes.get(at..)?.first_chunk()?));
            Some((word(0)?, word(4)?))
        }) else {
            return;
        };
        // A pipe is one resource: its two ends have one inode.
        let first = self.new_resource(Resource::new(Origin::Paired, b"", kind));
        let second = match socket {
            true => self.new_resource(Resource::new(Origin::Paired, b"", kind)),
            false => first,
        };
        self.table.extend([(one, first), (two, second)]);
        let ends = (first, second);
        self.run.pairs.push(ends);
        // `pipe` and `pipe2` are one call for libc.
        let time = ended(call);
        let call = if socket {
            call.number
        } else {
            libc::SYS_pipe2 as u16
        };
        if self.in_outline {
            return;
        }
        let queue = self.process.pairs.entry(call).or_default();
        queue.push_back((ends, time));
    }

    pub(super) fn duplicated(&mut self, call: &Call) {
        if let Ok(new) = i32::try_from(call.result)
            && new >= 0
        {
            // A copy leads to the same, even if no call has said where that is.
            let id = self.behind(call.fd, 0);
            self.table.insert(new, id);
        }
    }
}
