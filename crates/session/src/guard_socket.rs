//! The supervisor's socket for processes without the guard's filter (`--guard=auto`).
//!
//! It lies beside the arena and belongs to the user alone. A process asks whether a program or a
//! library is plain, and passes the listener of its filter. It can request the instructions of the
//! filter, and that a content is preserved.
//!
//! Threads accept connections, and each serves one at a time. A thread is started only when the
//! last idle one takes a connection.
//!
//! Invariants:
//!
//! - A process gets a response to its listener only once a receiver or the keeper serves it.
//!   Without a response, it passes the listener to the keeper itself (`keeper_socket`).
//! - A thread that serves a connection leaves an idle one behind. So a stopped process delays no
//!   other one.
//!
//! Absent on purpose: a check of the peer's process. Another process of the user could also write
//! into the arena.

use crate::guard_filters::GuardFilters;
use crate::plain_programs::PlainPrograms;
use crate::preserve_requests::PreserveRequests;
use backstory_abi::{
    GUARD_FILTER, GUARD_LIBRARY, GUARD_LISTENER, GUARD_LOAD, GUARD_PRESERVE, GUARD_PROGRAM,
    GuardRequest,
};
use backstory_sys as sys;
use rustix::net::sockopt::socket_peercred;
use rustix::net::{
    AddressFamily, SocketAddrUnix, SocketFlags, SocketType, accept_with, bind, listen, socket_with,
};
use rustix::process::umask;
use std::borrow::Cow;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// Connections that wait to be accepted.
const BACKLOG: i32 = 1024;
/// Longest wait for open connections at the end. The user's prompt waits, too.
const PATIENCE: Duration = Duration::from_secs(1);
/// Stack of a thread that serves connections. It parses programs.
const STACK: usize = 512 << 10;
/// Threads that stay to wait for connections. More of them end after their connection.
const IDLE: usize = 4;
/// Bytes of the longest path in a request.
const PATH: usize = 4096;

/// The running socket.
pub(crate) struct GuardSocket {
    path: PathBuf,
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

/// The services, and the threads that offer them.
struct Service {
    offered: GuardServices,
    socket: OwnedFd,
    /// No more connections are to be served.
    stops: AtomicBool,
    workers: Mutex<WorkerCount>,
    /// A thread has ended.
    over: Condvar,
}

/// The threads of a socket.
#[derive(Debug, Default)]
struct WorkerCount {
    running: usize,
    /// Those of them that wait for a connection.
    idle: usize,
}

impl GuardSocket {
    /// Makes the socket, and begins to serve it.
    ///
    /// # Errors
    /// The socket or a thread cannot be made.
    pub(crate) fn begin(path: PathBuf, offered: GuardServices) -> io::Result<GuardSocket> {
        let socket = listening(&path)?;
        GuardSocket::of(path, socket, offered)
    }

    /// Serves a socket that listens at this path.
    fn of(path: PathBuf, socket: OwnedFd, offered: GuardServices) -> io::Result<GuardSocket> {
        let service = Arc::new(Service {
            offered,
            socket,
            stops: AtomicBool::new(false),
            workers: Mutex::default(),
            over: Condvar::new(),
        });
        match service.add_worker() {
            Ok(()) => Ok(GuardSocket { path, service }),
            Err(error) => {
                let _ = std::fs::remove_file(&path);
                Err(error)
            }
        }
    }

    /// Takes no more connections. Returns false if a content is still being preserved.
    pub(crate) fn end(self) -> bool {
        let _ = std::fs::remove_file(&self.path);
        self.service.stop();
        !self.service.offered.contents.are_served()
    }
}

/// A socket that listens at this path, of this user alone.
fn listening(path: &Path) -> io::Result<OwnedFd> {
    let socket = bound(path, SocketType::SEQPACKET)?;
    listen(&socket, BACKLOG)?;
    Ok(socket)
}

/// A socket at this path, of this user alone.
pub(crate) fn bound(path: &Path, kind: SocketType) -> io::Result<OwnedFd> {
    let socket = socket_with(AddressFamily::UNIX, kind, SocketFlags::CLOEXEC, None)?;
    // The mask is this process's own: the command has got its mask from the launcher.
    let before = umask(rustix::fs::Mode::from_raw_mode(0o177));
    let bound = bind(&socket, &SocketAddrUnix::new(path)?);
    umask(before);
    bound?;
    Ok(socket)
}

impl Service {
    fn workers(&self) -> MutexGuard<'_, WorkerCount> {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a thread that waits for a connection.
    fn add_worker(self: &Arc<Self>) -> io::Result<()> {
        let worker = Arc::clone(self);
        let thread = std::thread::Builder::new()
            .name("guard-request".into())
            .stack_size(STACK);
        // The thread finds itself counted.
        let mut workers = self.workers();
        thread.spawn(move || worker.work())?;
        workers.running += 1;
        workers.idle += 1;
        Ok(())
    }

    /// Serves connections until the socket ends, or until enough other threads are idle.
    fn work(self: &Arc<Self>) {
        loop {
            let accepted = self.accept();
            let was_last = self.was_last_idle();
            let Some(connection) = accepted else {
                break;
            };
            if was_last {
                // Without another thread, connections wait until this one is served.
                let _ = self.add_worker();
            }
            self.serve(connection.as_fd());
            drop(connection);
            if !self.is_idle_again() {
                break;
            }
        }
        self.workers().running -= 1;
        self.over.notify_all();
    }

    /// The next connection. `None` once the socket has ended.
    fn accept(&self) -> Option<OwnedFd> {
        while !self.stops.load(Ordering::Acquire) {
            if let Ok(connection) = accept_with(&self.socket, SocketFlags::CLOEXEC) {
                return Some(connection);
            }
            // No descriptor is left, or the socket ends.
            if !self.stops.load(Ordering::Acquire) {
                std::thread::sleep(Duration::from_millis(1));
            }
        }
        None
    }

    /// The calling thread waits for no connection any more. True if no other thread does.
    fn was_last_idle(&self) -> bool {
        let mut workers = self.workers();
        workers.idle -= 1;
        workers.idle == 0
    }

    /// The calling thread waits for a connection again. False: enough others do.
    fn is_idle_again(&self) -> bool {
        let mut workers = self.workers();
        let stays = workers.idle < IDLE;
        workers.idle += usize::from(stays);
        stays
    }

    /// Ends the threads. A process that has installed the filter waits for the response to its
    /// listener, so connections that are being served get some time.
    fn stop(&self) {
        self.stops.store(true, Ordering::Release);
        let _ = rustix::net::shutdown(&self.socket, rustix::net::Shutdown::Both);
        // A process whose connection was not accepted must not wait until the last thread has
        // ended. After the shutdown, no call waits for a connection.
        while accept_with(&self.socket, SocketFlags::CLOEXEC).is_ok() {}
        let is_running = |workers: &mut WorkerCount| workers.running > 0;
        let workers = self.workers();
        // After the time, the keeper serves the processes that are left.
        drop(self.over.wait_timeout_while(workers, PATIENCE, is_running));
    }

    /// Serves a connection to its end.
    fn serve(&self, connection: BorrowedFd<'_>) {
        let mut bytes = [0; GuardRequest::SIZE + PATH];
        while let Some((count, file)) = sys::receive_message(connection, &mut bytes) {
            let Some(request) = GuardRequest::read(&bytes[..count]) else {
                return;
            };
            let text = &bytes[GuardRequest::SIZE..count];
            let Some((result, more)) = self.respond(connection, &request, text, file) else {
                return;
            };
            let response = GuardRequest {
                kind: request.kind,
                result,
                ..GuardRequest::default()
            };
            let message = [&response.to_bytes()[..], &more].concat();
            let sent = sys::send_message(connection, &message, None);
            if request.kind == GUARD_LISTENER {
                // The process goes on meanwhile.
                self.offered.filters.settle();
            }
            if sent.is_err() {
                return;
            }
        }
    }

    /// Does what a request wants. Returns its result, and the bytes behind the response. `None`:
    /// there is no such request.
    fn respond(
        &self,
        connection: BorrowedFd<'_>,
        request: &GuardRequest,
        text: &[u8],
        file: Option<OwnedFd>,
    ) -> Option<(i32, Cow<'_, [u8]>)> {
        let offered = &self.offered;
        let result = match (request.kind, file) {
            (GUARD_PROGRAM, Some(file)) => offered.programs.program(File::from(file)),
            (GUARD_LIBRARY, Some(file)) => offered.programs.library(File::from(file)),
            (GUARD_LOAD, file) => {
                let (verdict, paths) = offered.programs.load(file.map(File::from), text);
                return Some((verdict, Cow::Owned(paths)));
            }
            (GUARD_FILTER, _) => return Some((0, Cow::Borrowed(&offered.instructions[..]))),
            (GUARD_PRESERVE, file) => {
                let caller = process_of(connection)?;
                offered.contents.serve(caller, request, text, file)
            }
            (GUARD_LISTENER, Some(file)) => self.join(connection, file, request.recorded != 0),
            _ => return None,
        };
        Some((result, Cow::Borrowed(&[])))
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
pub(crate) fn is_listener(file: BorrowedFd<'_>) -> bool {
    use std::os::fd::AsRawFd;
    let link = std::fs::read_link(format!("/proc/self/fd/{}", file.as_raw_fd()));
    link.is_ok_and(|link| link.as_os_str() == "anon_inode:seccomp notify")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::guard_filters::tests::{NoServices, filters};
    use crate::plain_programs::KnownPrograms;
    use backstory_plain::Classifier;

    /// A socket in this directory. `None`, with a line that says so, if the programs of this
    /// machine cannot be classified.
    fn socket_in(directory: &Path, test: &str) -> Option<GuardSocket> {
        let Some(classifier) = Classifier::of_machine() else {
            let why = "the loader's cache of this machine cannot be used";
            backstory_testkit::need::skipped(test, why);
            return None;
        };
        let (filters, stock, _) = filters(test);
        let (filters, hooks) = (Arc::new(filters), Arc::new(NoServices));
        let known = KnownPrograms::begin(classifier, Path::new("/bin/true"));
        let offered = GuardServices {
            programs: PlainPrograms::begin(known, &stock),
            contents: PreserveRequests::new(hooks, &filters, &stock),
            filters,
            instructions: vec![1, 2, 3],
        };
        // The mask of the other tests stays as it is.
        let (path, socket) = (directory.join("socket"), unconnected());
        bind(&socket, &SocketAddrUnix::new(&path).unwrap()).unwrap();
        listen(&socket, BACKLOG).unwrap();
        Some(GuardSocket::of(path, socket, offered).unwrap())
    }

    fn unconnected() -> OwnedFd {
        let flags = SocketFlags::CLOEXEC;
        socket_with(AddressFamily::UNIX, SocketType::SEQPACKET, flags, None).unwrap()
    }

    fn connect(path: &Path) -> io::Result<OwnedFd> {
        let socket = unconnected();
        rustix::net::connect(&socket, &SocketAddrUnix::new(path)?)?;
        Ok(socket)
    }

    /// The instructions, as a recorder requests them.
    fn instructions(path: &Path) -> Vec<u8> {
        let connection = connect(path).unwrap();
        let request = GuardRequest {
            kind: GUARD_FILTER,
            ..GuardRequest::default()
        };
        sys::send_message(connection.as_fd(), &request.to_bytes(), None).unwrap();
        let mut bytes = [0; 64];
        let (count, _) = sys::receive_message(connection.as_fd(), &mut bytes).unwrap();
        bytes[GuardRequest::SIZE..count].to_vec()
    }

    #[test]
    fn connections_that_stay_silent_delay_no_other_and_leave_few_threads() {
        let directory = tempfile::tempdir().unwrap();
        let Some(socket) = socket_in(directory.path(), "silent") else {
            return;
        };
        let silent: Vec<OwnedFd> = (0..3 * IDLE)
            .map(|_| connect(&socket.path).unwrap())
            .collect();
        for _ in 0..3 {
            assert_eq!(instructions(&socket.path), [1, 2, 3]);
        }
        drop(silent);
        while socket.service.workers().running > IDLE {
            std::thread::yield_now();
        }
        assert_eq!(instructions(&socket.path), [1, 2, 3]);
        assert!(socket.end());
    }

    #[test]
    fn at_the_end_all_threads_end_and_no_connection_is_taken() {
        let directory = tempfile::tempdir().unwrap();
        let Some(socket) = socket_in(directory.path(), "end") else {
            return;
        };
        assert_eq!(instructions(&socket.path), [1, 2, 3]);
        let (path, service) = (socket.path.clone(), Arc::clone(&socket.service));
        assert!(socket.end());
        assert_eq!(service.workers().running, 0);
        assert!(connect(&path).is_err());
    }
}
