//! The supervisor's socket for processes without the guard's filter (`--guard=auto`).
//!
//! It lies beside the arena and belongs to the user alone. A process asks whether a program is
//! plain, takes the instructions of the filter, and passes its listener. It also requests that a
//! content is preserved. Each connection has its own thread, so a stopped process delays no other
//! one.
//!
//! Invariant: a process gets a response to its listener only once a receiver or the keeper serves
//! it.
//!
//! Absent on purpose: a check of the peer's process. Another process of the user could also write
//! into the arena.

use crate::guard_filters::GuardFilters;
use crate::plain_programs::PlainPrograms;
use crate::preserve_requests::PreserveRequests;
use backstory_abi::{
    GUARD_FILTER, GUARD_LIBRARY, GUARD_LISTENER, GUARD_PRESERVE, GUARD_PROGRAM, GuardRequest,
};
use backstory_sys as sys;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::umask;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Longest wait for open connections at the end. The user's prompt waits, too.
const PATIENCE: Duration = Duration::from_secs(1);
/// Stack of a thread that serves a connection. It parses programs.
const STACK: usize = 512 << 10;
/// Bytes of the longest path in a request.
const PATH: usize = 4096;

/// The running socket.
pub(crate) struct GuardSocket {
    path: PathBuf,
    socket: Arc<OwnedFd>,
    stops: Arc<AtomicBool>,
    thread: JoinHandle<()>,
    service: Arc<Service>,
}

/// The services for processes without the filter.
pub(crate) struct GuardServices {
    pub(crate) filters: Arc<GuardFilters>,
    pub(crate) programs: PlainPrograms,
    pub(crate) contents: PreserveRequests,
    /// The instructions of the filter.
    pub(crate) instructions: Vec<u8>,
}

/// The services, and their connections.
struct Service {
    offered: GuardServices,
    /// Connections that are being served.
    open: AtomicUsize,
}

impl GuardSocket {
    /// Makes the socket, and begins to serve it.
    ///
    /// # Errors
    /// The socket or a thread cannot be made.
    pub(crate) fn begin(path: PathBuf, offered: GuardServices) -> io::Result<GuardSocket> {
        let service = Arc::new(Service {
            offered,
            open: AtomicUsize::new(0),
        });
        let socket = Arc::new(listening(&path)?);
        let stops = Arc::new(AtomicBool::new(false));
        let (mine, over) = (Arc::clone(&socket), Arc::clone(&stops));
        let serves = Arc::clone(&service);
        let started = std::thread::Builder::new()
            .name("guard-socket".into())
            .stack_size(STACK)
            .spawn(move || accept_all(&mine, &over, &serves));
        match started {
            Ok(thread) => Ok(GuardSocket {
                path,
                socket,
                stops,
                thread,
                service,
            }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Takes no more connections. Returns false if a content is still being preserved.
    pub(crate) fn end(self) -> bool {
        let _ = std::fs::remove_file(&self.path);
        self.stops.store(true, Ordering::Release);
        let _ = rustix::net::shutdown(&*self.socket, rustix::net::Shutdown::Both);
        let _ = self.thread.join();
        // A process that has installed the filter waits for the response to its listener.
        let began = Instant::now();
        while self.service.open.load(Ordering::Acquire) > 0 && began.elapsed() < PATIENCE {
            std::thread::sleep(Duration::from_millis(1));
        }
        !self.service.offered.contents.are_served()
    }
}

/// A socket at this path, of this user alone.
fn listening(path: &Path) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC;
    let socket = socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None)?;
    // The mask is this process's own: the command has got its mask from the launcher.
    let before = umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &SocketAddrUnix::new(path)?);
    umask(before);
    bound?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

fn accept_all(socket: &OwnedFd, stops: &AtomicBool, service: &Arc<Service>) {
    while !stops.load(Ordering::Acquire) {
        let Ok(connection) = accept_with(socket, SocketFlags::CLOEXEC) else {
            // No descriptor is left, or the socket ends.
            if !stops.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
            continue;
        };
        let connection = Arc::new(connection);
        service.open.fetch_add(1, Ordering::AcqRel);
        let (theirs, served) = (Arc::clone(&connection), Arc::clone(service));
        let started = std::thread::Builder::new()
            .name("guard-request".into())
            .stack_size(STACK)
            .spawn(move || served.serve(theirs.as_fd()));
        if started.is_err() {
            service.serve(connection.as_fd());
        }
    }
}

impl Service {
    /// Serves a connection, which was counted as open.
    fn serve(&self, connection: BorrowedFd<'_>) {
        self.serve_to_the_end(connection);
        self.open.fetch_sub(1, Ordering::AcqRel);
    }

    fn serve_to_the_end(&self, connection: BorrowedFd<'_>) {
        let mut bytes = [0; GuardRequest::SIZE + PATH];
        let offered = &self.offered;
        while let Some((count, file)) = sys::receive_message(connection, &mut bytes) {
            let Some(request) = GuardRequest::read(&bytes[..count]) else {
                return;
            };
            let (result, more) = match (request.kind, file) {
                (GUARD_PROGRAM, Some(file)) => {
                    (offered.programs.program(File::from(file)), &[][..])
                }
                (GUARD_LIBRARY, Some(file)) => {
                    (offered.programs.library(File::from(file)), &[][..])
                }
                (GUARD_FILTER, _) => (0, &offered.instructions[..]),
                (GUARD_PRESERVE, file) => {
                    let Some(caller) = process_of(connection) else {
                        return;
                    };
                    let path = &bytes[GuardRequest::SIZE..count];
                    (
                        offered.contents.serve(caller, &request, path, file),
                        &[][..],
                    )
                }
                (GUARD_LISTENER, Some(file)) => {
                    (self.join(connection, file, request.recorded != 0), &[][..])
                }
                _ => return,
            };
            let response = GuardRequest {
                kind: request.kind,
                result,
                ..GuardRequest::default()
            };
            let message = [&response.to_bytes()[..], more].concat();
            if sys::send_message(connection, &message, None).is_err() {
                return;
            }
        }
    }

    /// Has a listener served. Returns 0, or a negative errno.
    fn join(&self, connection: BorrowedFd<'_>, listener: OwnedFd, recorded: bool) -> i32 {
        if !is_listener(listener.as_fd()) {
            return -libc::EINVAL;
        }
        let adopted = process_of(connection).filter(|_| recorded);
        match self.offered.filters.join(listener, adopted) {
            Ok(()) => 0,
            Err(error) => -error.raw_os_error().unwrap_or(libc::EIO),
        }
    }
}

/// The process at the other end.
fn process_of(connection: BorrowedFd<'_>) -> Option<u32> {
    let caller = socket_peercred(connection).ok()?;
    Some(caller.pid.as_raw_nonzero().get() as u32)
}

/// True for the listener of a filter.
fn is_listener(file: BorrowedFd<'_>) -> bool {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:seccomp notify")
}
