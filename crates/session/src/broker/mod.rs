//! Executes set-user-id programs of a recorded shell outside of the recording.
//!
//! The filter of an ordinary user makes the kernel ignore set-id bits and file capabilities. The
//! broker is a process that the launcher forks before the filter exists. A recorder executes the
//! broker's client (`crates/recorder/client`) in the place of such a program. The client asks the
//! supervisor, which checks the conditions (`conditions`) and joins client and broker by a socket.
//! A child of the broker (`program_parent`) then starts the program as the client would have
//! (`program`), and reports its stops and its end.
//!
//! Invariants:
//!
//! - The broker serves only requests that come from the supervisor. It has no name in the file
//!   system.
//! - The program of a caller that differs from the broker in a right, or may be restricted, is
//!   executed by the caller itself.
//!
//! `docs/design/shell.md` has the reasons.

mod conditions;
mod program;
mod program_parent;

use crate::Options;
use backstory_sys::{self as sys, Pid};
use backstory_vocabulary::GuardMode;
use rustix::io::Errno;
use rustix::net::{
    AddressFamily, RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer,
    SendAncillaryMessage, SendFlags, SocketFlags, SocketType, recvmsg, sendmsg, socketpair,
};
use rustix::process::geteuid;
use rustix::thread::{capabilities, no_new_privs};
use std::io::{self, IoSlice, IoSliceMut};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};

/// Most descriptors in one message of the client.
const AT_ONCE: usize = 128;

/// True if a run has a broker: its user could lose a privilege, and has none to give away.
pub(crate) fn is_wanted(options: &Options) -> bool {
    let has_none = capabilities(None).is_ok_and(|sets| sets.permitted.is_empty());
    options.broker
        && options.guard == GuardMode::On
        && !geteuid().is_root()
        && has_none
        && !no_new_privs().unwrap_or(true)
}

/// The supervisor's connection to the broker.
pub(crate) struct BrokerLink {
    socket: OwnedFd,
    broker: Pid,
    /// A caller could not be marked: no condition holds any more.
    revoked: AtomicBool,
}

impl BrokerLink {
    /// Forks the broker. `None` if that fails: programs are then executed as without a broker. The
    /// caller must have one thread and block all signals.
    pub(crate) fn fork() -> Option<BrokerLink> {
        let (socket, brokers) = message_sockets().ok()?;
        match sys::fork() {
            Ok(0) => {
                // Neither a return nor a panic may bring this copy of the launcher back into the
                // launcher's code.
                let life = std::panic::AssertUnwindSafe(|| serve(&brokers));
                let _ = std::panic::catch_unwind(life);
                sys::exit_now(0)
            }
            Ok(broker) => Some(BrokerLink {
                socket,
                broker,
                revoked: AtomicBool::new(false),
            }),
            Err(_) => None,
        }
    }

    /// True if the broker may execute a program for this thread, as far as its process shows.
    pub(crate) fn may_serve(&self, tid: u32) -> bool {
        !self.revoked.load(Ordering::Acquire) && conditions::hold(self.broker as u32, tid)
    }

    /// Marks a process, which is about to restrict itself, and with it its children.
    pub(crate) fn mark(&self, tid: u32) {
        if conditions::mark(self.broker as u32, tid).is_err() {
            self.revoked.store(true, Ordering::Release);
        }
    }

    /// Passes a connection to the broker, if it may serve the caller. Returns the caller's end.
    pub(crate) fn connect(&self, tid: u32, waits: &dyn Fn() -> bool) -> Option<OwnedFd> {
        let process = sys::pidfd_open(tid, false).ok()?;
        if !self.may_serve(tid) {
            return None;
        }
        let (mine, callers) = message_sockets().ok()?;
        // All that was read above is about this caller, if it has waited until now.
        if !waits() {
            return None;
        }
        let passed = [mine.as_fd(), process.as_fd()];
        send(self.socket.as_fd(), &tid.to_ne_bytes(), &passed).ok()?;
        Some(callers)
    }
}

/// The life of the broker: a child for each request, until the supervisor has ended.
fn serve(socket: &OwnedFd) {
    sys::set_name(c"backstory-brok");
    // Orphans of the programs come here.
    sys::become_subreaper();
    sys::forget_children();
    sys::nullify(&[0, 1, 2]);
    if sys::close_all_but(socket.as_fd()).is_err() || rustix::process::chdir("/").is_err() {
        return;
    }
    let mut caller = [0; 4];
    while let Ok((4, passed)) = receive(socket.as_fd(), &mut caller) {
        let Ok([connection, process]) = <[OwnedFd; 2]>::try_from(passed) else {
            continue;
        };
        // Without a child, the end of the connection tells the client.
        if let Ok(0) = sys::fork() {
            program_parent::run(connection, process, u32::from_ne_bytes(caller));
            sys::exit_now(0);
        }
    }
}

/// Two connected sockets that preserve the boundaries of messages.
fn message_sockets() -> io::Result<(OwnedFd, OwnedFd)> {
    let pair = socketpair(
        AddressFamily::UNIX,
        SocketType::SEQPACKET,
        SocketFlags::CLOEXEC,
        None,
    )?;
    Ok(pair)
}

/// Sends a message with descriptors, without waiting.
fn send(socket: BorrowedFd<'_>, bytes: &[u8], passed: &[BorrowedFd<'_>]) -> io::Result<()> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(2))];
    let mut control = SendAncillaryBuffer::new(&mut space);
    if !passed.is_empty() {
        control.push(SendAncillaryMessage::ScmRights(passed));
    }
    let flags = SendFlags::NOSIGNAL | SendFlags::DONTWAIT;
    sendmsg(socket, &[IoSlice::new(bytes)], &mut control, flags)?;
    Ok(())
}

/// Waits for a message and its descriptors. Returns 0 at the end of the connection.
fn receive(socket: BorrowedFd<'_>, bytes: &mut [u8]) -> io::Result<(usize, Vec<OwnedFd>)> {
    let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(AT_ONCE))];
    let mut control = RecvAncillaryBuffer::new(&mut space);
    let got = loop {
        let mut parts = [IoSliceMut::new(bytes)];
        match recvmsg(socket, &mut parts, &mut control, RecvFlags::CMSG_CLOEXEC) {
            Err(Errno::INTR) => {}
            other => break other?,
        }
    };
    let mut passed = Vec::new();
    for message in control.drain() {
        if let RecvAncillaryMessage::ScmRights(descriptors) = message {
            passed.extend(descriptors);
        }
    }
    Ok((got.bytes, passed))
}
