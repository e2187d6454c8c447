//! A client that stops after its program went on or ended.

use super::*;
use crate::broker::message_sockets;
use backstory_testkit::procs::eventually;
use std::process::{Child, Command};

const PATIENCE: Duration = Duration::from_secs(60);

fn sleeper() -> Child {
    Command::new("sleep").arg("600").spawn().unwrap()
}

/// Waits for an event, and wakes the program's parent until then. The kernel does not wake it,
/// because the process of a test has other threads.
fn wait_for(connection: &OwnedFd, what: &str, mut event: impl FnMut() -> bool) {
    let wake = BrokerMessage {
        kind: BROKER_REPORTED,
        value: -1,
        word: 0,
    };
    let came = eventually(PATIENCE, || {
        let _ = send(connection.as_fd(), &wake.to_bytes(), &[]);
        event()
    });
    assert!(came, "{what}");
}

/// True if a message of this kind has come.
fn has_come(connection: &OwnedFd, kind: u32) -> bool {
    let mut fds = [PollFd::new(connection, PollFlags::IN)];
    let mut bytes = [0; BrokerMessage::SIZE];
    while poll(&mut fds, Some(&Timespec::default())).is_ok_and(|news| news > 0) {
        match receive(connection.as_fd(), &mut bytes) {
            Ok((size, _)) if size > 0 => {}
            _ => return false,
        }
        if BrokerMessage::from_bytes(&bytes).unwrap().kind == kind {
            return true;
        }
    }
    false
}

#[test]
fn a_client_that_stops_late_goes_on_with_the_program() {
    for (signal, news) in [(libc::SIGCONT, None), (libc::SIGKILL, Some(BROKER_ENDED))] {
        let (mut program, mut stands) = (sleeper(), sleeper());
        let (pid, client_pid) = (program.id() as Pid, stands.id() as Pid);
        let (connection, clients) = message_sockets().unwrap();
        let client = Client {
            connection,
            process: sys::pidfd_open(stands.id(), false).unwrap(),
            pid: stands.id(),
        };
        let watch = std::thread::spawn(move || {
            Running::new(client, pid, sys::signal_fd().unwrap(), 0).watch();
        });
        sys::kill(pid, libc::SIGSTOP).unwrap();
        wait_for(&clients, "the stop", || has_come(&clients, BROKER_STOPPED));
        sys::kill(pid, signal).unwrap();
        match news {
            Some(kind) => wait_for(&clients, "the end", || has_come(&clients, kind)),
            None => wait_for(&clients, "the program", || !tree::stopped(pid)),
        }
        // The client gets its signal to go on before it stops.
        std::thread::sleep(GROUP_SIGNAL * 20);
        sys::kill(client_pid, libc::SIGSTOP).unwrap();
        wait_for(&clients, "the client goes on", || {
            let change = sys::child_change(Some(client_pid), libc::WCONTINUED);
            matches!(change, Ok(Some(change)) if change.code == libc::CLD_CONTINUED)
        });
        if news.is_none() {
            program.kill().unwrap();
        }
        stands.kill().unwrap();
        wait_for(&clients, "the end of the watch", || watch.is_finished());
        watch.join().unwrap();
        // The watch may have reaped the program.
        let _ = (program.wait(), stands.wait());
    }
}
