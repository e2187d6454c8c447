//! Connections of ssh between two recorded machines.
//!
//! The run here has the client, and the run there has the command. Both know the connection by one
//! name, so its two directions are the same entities in both runs:
//!
//! ```text
//! run here:   ssh ──> ssh:HOST/RUN ──────────────────> standard input    run there
//!             ssh <── ssh:HOST/RUN (reply) <── standard output and error
//! ```
//!
//! Invariant: only a descriptor that sshd made is an end of the connection. A redirection of the
//! command's own leads to its file.

use std::rc::Rc;

use backstory_eventlog::event::Bytes;

use super::{CallContext, Fold};
use crate::model::{EntityKind, Sink};
use crate::object::ObjectId;
use crate::process::Descriptor;

/// The two directions of a connection: to the other machine, and from it.
pub(super) type SshChannels = (ObjectId, ObjectId);

/// True for the standard descriptors that sshd gives a command: pipes, sockets, or a terminal.
pub(super) fn is_of_ssh(target: &[u8]) -> bool {
    [&b"pipe:"[..], b"socket:", b"/dev/pts/"]
        .iter()
        .any(|kind| target.starts_with(kind))
}

impl<S: Sink> Fold<'_, S> {
    fn ssh_channels(&mut self, call: CallContext, name: &[u8]) -> SshChannels {
        let there = [b"ssh:", name].concat();
        let back = [&there, &b" (reply)"[..]].concat();
        (
            self.channel(EntityKind::Socket, there, call.time),
            self.channel(EntityKind::Socket, back, call.time),
        )
    }

    /// The connection that started the command of this run from another machine.
    pub(super) fn ssh_of_command(&mut self, call: CallContext) -> Option<SshChannels> {
        let name = self.header.ssh_connection.as_deref()?;
        Some(self.ssh_channels(call, name.as_bytes()))
    }

    /// A standard descriptor of a command that ssh started. With a terminal, or with a pair of
    /// sockets, each of the three may be read and written. The command line itself came through the
    /// connection, so that the command's first program used it.
    pub(super) fn ssh_end(
        &mut self,
        call: CallContext,
        (there, back): SshChannels,
        fd: i32,
        (reads, writes): (bool, bool),
    ) -> Descriptor {
        let end = self.end(call, there, back, reads, writes);
        let mut held = Descriptor::opened(Rc::new(end), call.time, false);
        held.own = false;
        held.read = (fd == 0).then_some(call.time);
        held
    }

    /// Notes that the program that the process executes next is the client of a connection.
    pub(super) fn connect_by_ssh(&mut self, call: CallContext, name: Bytes) {
        let epoch = self.epochs[call.epoch as usize].as_ref();
        let argv = epoch.map(|epoch| epoch.argv.clone()).unwrap_or_default();
        if let Some(process) = self.processes.get_mut(&call.pid) {
            process.connects = Some((name, argv));
        }
    }

    /// Gives the program that begins the connection that was announced for it. The client passes
    /// all on, so it reads and writes as long as it runs. Its arguments are those that the user
    /// gave: the last of them was replaced by one that records the command there.
    pub(super) fn begin_ssh(&mut self, call: CallContext) -> Result<(), S::Error> {
        let announced = self.processes.get_mut(&call.pid);
        let Some((name, argv)) = announced.and_then(|process| process.connects.take()) else {
            return Ok(());
        };
        if let Some(epoch) = &mut self.epochs[call.epoch as usize] {
            epoch.argv = argv;
        }
        let (there, back) = self.ssh_channels(call, &name);
        let end = self.end(call, back, there, true, true);
        let mut held = Descriptor::opened(Rc::new(end), call.time, true);
        (held.read, held.written) = (Some(call.time), Some(call.time));
        self.install_nameless(call, held)
    }
}
