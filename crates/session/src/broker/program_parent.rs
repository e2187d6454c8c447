//! The parent of one program that the broker executes: it starts the program, and represents the
//! client to it.
//!
//! Invariants:
//!
//! - It is in the process group of the client. So it knows which signals a process sent to the
//!   whole group, the program included, and which to the client alone.
//! - The kernel sends a signal to all members of a group at once. After such a signal, the client
//!   is asked for a report. Until its response, the signal counts as one to the group, however long
//!   that takes.
//! - The client stops with the program. It can do so late, after the program has gone on or ended.
//!   So it is looked at again until it has responded to a request that came after the stop.
//! - If the program cannot be started as the client would have, it is not started. The client then
//!   executes it itself.

use super::program::{Program, ProgramFiles};
use super::{receive, send};
use crate::late_stop;
use backstory_abi::{
    BROKER_DESCRIPTORS, BROKER_ENDED, BROKER_FAILED, BROKER_HELLO, BROKER_READY, BROKER_REPORT,
    BROKER_REPORTED, BROKER_SIGNAL, BROKER_STARTED, BROKER_STOPPED, BROKER_WANTED, BrokerMessage,
};
use backstory_sys::{self as sys, Pid, process_tree as tree};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::process::{Signal, pidfd_send_signal, setpgid};
use std::io;
use std::os::fd::{AsFd, OwnedFd, RawFd};
use std::time::Duration;

#[cfg(test)]
mod tests;

/// Time within which a signal to the whole group reaches all its members.
const GROUP_SIGNAL: Duration = Duration::from_millis(3);
/// Interval between two looks at a client that may stop late.
const LOOK: Timespec = Timespec {
    tv_sec: 0,
    tv_nsec: 5_000_000,
};
/// More descriptors than the client passes.
const DESCRIPTORS: usize = 32_768;

/// The client of one program.
struct Client {
    connection: OwnedFd,
    process: OwnedFd,
    pid: u32,
}

/// The client's messages before the start.
struct Beginning {
    descriptors: ProgramFiles,
    /// Its former signal mask.
    mask: u64,
    /// Signals that it got before this process was in its group, as bits.
    early: u64,
}

/// Serves the client with this process id, which has sent a connection. Returns at the end of the
/// program.
pub(super) fn run(connection: OwnedFd, process: OwnedFd, pid: u32) {
    sys::set_disposition(libc::SIGCHLD, libc::SIG_DFL);
    sys::raise_limit(libc::RLIMIT_NOFILE);
    let client = Client {
        connection,
        process,
        pid,
    };
    let Ok(signals) = sys::signal_fd() else {
        return;
    };
    match client.start(&signals) {
        Ok((program, early)) => Running::new(client, program, signals, early).watch(),
        Err(_) => client.tell(BROKER_FAILED, 0, 0),
    }
}

impl Client {
    fn tell(&self, kind: u32, value: i32, word: u64) {
        let message = BrokerMessage { kind, value, word };
        // The client may have been killed.
        let _ = send(self.connection.as_fd(), &message.to_bytes(), &[]);
    }

    /// Waits for a message. `None` at the end of the connection.
    fn hear(&self) -> Option<(BrokerMessage, Vec<OwnedFd>)> {
        let mut bytes = [0; BrokerMessage::SIZE];
        let (size, passed) = receive(self.connection.as_fd(), &mut bytes).ok()?;
        Some((BrokerMessage::from_bytes(bytes.get(..size)?)?, passed))
    }

    fn expect(&self, kind: u32) -> io::Result<(BrokerMessage, Vec<OwnedFd>)> {
        let heard = self.hear().filter(|(message, _)| message.kind == kind);
        heard.ok_or_else(|| io::ErrorKind::InvalidData.into())
    }

    /// True if all that was read in `/proc` is the client's: it has lived until now.
    fn lives(&self) -> bool {
        let mut fds = [PollFd::new(&self.process, PollFlags::IN)];
        poll(&mut fds, Some(&Timespec::default())).is_ok_and(|ended| ended == 0)
    }

    /// Starts the program. The signals that it should have got until then are sent to it.
    ///
    /// Returns also, as bits, the signals that this process got as a member of the group. The
    /// client may report them later.
    fn start(&self, signals: &OwnedFd) -> io::Result<(Pid, u64)> {
        self.join_group()?;
        let beginning = self.receive_beginning()?;
        let program = Program::of_client(self.pid, beginning.mask)?;
        if !self.lives() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let mut to_group = 0;
        let pid = program.start(beginning.descriptors, || {
            let mut early = beginning.early;
            while let Some(info) = sys::read_signal(signals.as_fd()) {
                let signal = 1u64.checked_shl(info.ssi_signo - 1).unwrap_or(0);
                early |= signal;
                to_group |= if sys::sent_by_process(&info) {
                    signal
                } else {
                    0
                };
            }
            let own = 1 << (libc::SIGCHLD - 1) | 1 << (libc::SIGCONT - 1);
            early & !own
        })?;
        self.tell(BROKER_STARTED, 0, std::process::id().into());
        Ok((pid, to_group))
    }

    /// Joins the process group of the client. Its child, the program, begins there.
    fn join_group(&self) -> io::Result<()> {
        let group = sys::group_of(self.pid as Pid)?;
        // The leader may be outside of a container. No process can join its group, and this one
        // is in it as long as no process before it left.
        if group == sys::group_of(sys::own_pid())? {
            return Ok(());
        }
        match rustix::process::Pid::from_raw(group) {
            Some(group) => Ok(setpgid(None, Some(group))?),
            None => Err(io::ErrorKind::PermissionDenied.into()),
        }
    }

    /// Requests and receives the descriptors of the client.
    fn receive_beginning(&self) -> io::Result<Beginning> {
        let (hello, _) = self.expect(BROKER_HELLO)?;
        let numbers = self.descriptors(hello.value)?;
        self.request(&numbers)?;
        let mut files = Vec::with_capacity(numbers.len());
        while files.len() < numbers.len() {
            files.extend(self.expect(BROKER_DESCRIPTORS)?.1);
        }
        let (ready, _) = self.expect(BROKER_READY)?;
        Ok(Beginning {
            descriptors: numbers.into_iter().zip(files).collect(),
            mask: hello.word,
            early: ready.word,
        })
    }

    /// The numbers of its open descriptors, but for its socket.
    fn descriptors(&self, socket: RawFd) -> io::Result<Vec<RawFd>> {
        let mut numbers = Vec::new();
        for entry in std::fs::read_dir(format!("/proc/{}/fd", self.pid))? {
            let name = entry?.file_name();
            let number: Option<RawFd> = name.to_str().and_then(|name| name.parse().ok());
            numbers.extend(number.filter(|number| *number != socket));
        }
        match numbers.len() {
            0..=DESCRIPTORS => Ok(numbers),
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    fn request(&self, numbers: &[RawFd]) -> io::Result<()> {
        let head = BrokerMessage {
            kind: BROKER_WANTED,
            value: numbers.len() as i32,
            word: 0,
        };
        let mut message = head.to_bytes().to_vec();
        message.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        send(self.connection.as_fd(), &message, &[])
    }
}

/// A program that runs.
struct Running {
    /// `None` after the client was killed.
    client: Option<Client>,
    program: Pid,
    signals: OwnedFd,
    /// The signals that a process sent to the whole group. For each, the number of a request: with
    /// its response, the client has reported the signal.
    to_group: [Option<i32>; 65],
    /// The number of the last request.
    requests: i32,
    /// The client has not responded to the last request.
    is_asked: bool,
    /// The number of a request after the last stop: without its response, the client is stopped,
    /// or is about to stop.
    stop: Option<i32>,
}

impl Running {
    /// `early` are signals to the group before the start, as bits.
    fn new(client: Client, program: Pid, signals: OwnedFd, early: u64) -> Running {
        let mut running = Running {
            client: Some(client),
            program,
            signals,
            to_group: [None; 65],
            requests: 0,
            is_asked: false,
            stop: None,
        };
        for (signal, request) in running.to_group.iter_mut().enumerate().skip(1) {
            *request = (early & 1 << (signal - 1) != 0).then_some(1);
        }
        running.ask();
        running
    }

    /// Watches the program until it ends.
    fn watch(mut self) {
        while !self.look_at_program() {
            let mut fds = vec![PollFd::new(&self.signals, PollFlags::IN)];
            let connection = self.client.as_ref().map(|client| &client.connection);
            fds.extend(connection.map(|fd| PollFd::new(fd, PollFlags::IN)));
            let timeout = self.client_must_go_on().then_some(LOOK);
            if poll(&mut fds, timeout.as_ref()).is_err() {
                continue;
            }
            let news = fds.get(1).is_some_and(|fd| !fd.revents().is_empty());
            self.count_signals();
            if news {
                self.hear();
            }
            if self.client_must_go_on() {
                self.continue_stopped_client();
            }
        }
        self.let_client_end();
    }

    /// True if the client stops, or is about to, for a stop of the program that is over.
    fn client_must_go_on(&self) -> bool {
        self.stop.is_some() && !tree::stopped(self.program)
    }

    /// Continues the client if it is stopped.
    fn continue_stopped_client(&self) {
        let client = self.client.as_ref();
        if client.is_some_and(|client| tree::stopped(client.pid as Pid)) {
            self.continued();
        }
    }

    /// Continues the client until it has ended, if it may stop after the end of the program.
    fn let_client_end(&self) {
        if let Some(client) = self.client.as_ref().filter(|_| self.stop.is_some()) {
            let pid = client.pid as Pid;
            late_stop::continue_until(pid, || !client.lives(), || self.continued());
        }
    }

    /// Reports a change of the program. True if it has ended.
    fn look_at_program(&mut self) -> bool {
        let changes = libc::WEXITED | libc::WSTOPPED | libc::WCONTINUED;
        while let Ok(Some(change)) = sys::child_change(Some(self.program), changes) {
            match change.code {
                libc::CLD_STOPPED => self.stopped(change.status),
                libc::CLD_CONTINUED => self.continued(),
                _ => {
                    self.tell(BROKER_ENDED, change.wait_status());
                    // It may have stopped with the program, which a process then killed.
                    self.continued();
                    return true;
                }
            }
        }
        false
    }

    fn tell(&self, kind: u32, value: i32) {
        if let Some(client) = &self.client {
            client.tell(kind, value, 0);
        }
    }

    /// Lets the client stop, too, unless the program goes on at once. A signal to the whole group
    /// does not reach all its members at the same time.
    fn stopped(&mut self, signal: i32) {
        std::thread::sleep(GROUP_SIGNAL);
        if tree::stopped(self.program) {
            self.tell(BROKER_STOPPED, signal);
            self.stop = Some(self.requests.wrapping_add(1));
            self.ask();
        }
    }

    /// Lets the client go on. It may have stopped after the signal to the whole group.
    fn continued(&self) {
        if let Some(client) = &self.client {
            let _ = pidfd_send_signal(&client.process, Signal::CONT);
        }
    }

    fn count_signals(&mut self) {
        while let Some(info) = sys::read_signal(self.signals.as_fd()) {
            if let Some(request) = self.to_group.get_mut(info.ssi_signo as usize)
                && sys::sent_by_process(&info)
            {
                *request = Some(self.requests.wrapping_add(1));
            }
        }
        self.ask();
    }

    /// Asks the client for a report, if a signal to the group or a stop waits for a later one than
    /// it was asked for. One request at a time fits into the socket, even if the client is stopped.
    fn ask(&mut self) {
        let next = Some(self.requests.wrapping_add(1));
        let is_due = self.stop == next || self.to_group.contains(&next);
        if self.is_asked || !is_due {
            return;
        }
        std::thread::sleep(GROUP_SIGNAL);
        self.requests = self.requests.wrapping_add(1);
        self.is_asked = true;
        self.tell(BROKER_REPORT, self.requests);
    }

    /// The client has reported all signals that it got before this request.
    fn reported(&mut self, response: i32) {
        for request in &mut self.to_group {
            request.take_if(|request| *request == response);
        }
        self.stop.take_if(|request| *request == response);
        self.is_asked = false;
        self.ask();
    }

    /// Takes a message of the client.
    fn hear(&mut self) {
        match self.client.as_ref().and_then(Client::hear) {
            Some((message, _)) if message.kind == BROKER_SIGNAL => self.pass_on(&message),
            Some((message, _)) if message.kind == BROKER_REPORTED => self.reported(message.value),
            Some(_) => {}
            None => (self.client, self.stop) = (None, None),
        }
    }

    /// Passes on a signal that the client got alone.
    fn pass_on(&mut self, message: &BrokerMessage) {
        let signal = message.value;
        let sent_by_process = message.word != 0;
        let copied = sent_by_process
            && (self.is_copy(signal) || {
                std::thread::sleep(GROUP_SIGNAL);
                self.count_signals();
                self.is_copy(signal)
            });
        if !copied {
            // The program may have another user, as when the client's sender had sent it natively.
            let _ = sys::kill(self.program, signal);
        }
    }

    /// True if this process has got the same signal as a member of the group.
    fn is_copy(&self, signal: i32) -> bool {
        matches!(self.to_group.get(signal as usize), Some(Some(_)))
    }
}
