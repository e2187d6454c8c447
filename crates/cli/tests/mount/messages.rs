//! The lines that a process writes.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, channel};

use crate::mount::mounted::{MountedDirectory, PATIENCE};

/// The lines of a pipe. A thread reads them, so that a test does not wait for ever.
pub struct Messages(Receiver<String>);

impl Messages {
    pub fn of(pipe: impl Read + Send + 'static) -> Messages {
        let (sender, lines) = channel();
        std::thread::spawn(move || {
            for line in BufReader::new(pipe).lines().map_while(Result::ok) {
                // The test may have ended. The process goes on writing.
                let _ = sender.send(line);
            }
        });
        Messages(lines)
    }

    /// The next line. The test fails if none comes.
    #[track_caller]
    pub fn line(&self) -> String {
        let line = self.0.recv_timeout(PATIENCE);
        line.expect("the process writes a further line")
    }

    /// The lines until the end of the pipe.
    #[track_caller]
    pub fn rest(self) -> Vec<String> {
        let mut rest = Vec::new();
        loop {
            match self.0.recv_timeout(PATIENCE) {
                Ok(line) => rest.push(line),
                Err(RecvTimeoutError::Disconnected) => return rest,
                Err(RecvTimeoutError::Timeout) => panic!("the pipe stays open: {rest:?}"),
            }
        }
    }
}

impl MountedDirectory {
    /// The messages of the server after the first one, which says that it records.
    #[track_caller]
    pub fn later_messages(&mut self) -> Messages {
        let messages = Messages::of(self.server.stderr.take().unwrap());
        let first = messages.line();
        assert!(first.contains("records"), "{first}");
        messages
    }
}
