//! A connection's bytes, and the messages in them.
//!
//! In: a target, and messages to send. Out: the server's messages, waited for or not.
//!
//! Absent: what a message means, and where it ends. A [`Framing`] of each protocol knows that.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::connection_target::ConnectionTarget;
use crate::error::Error;

/// Longest wait for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Most bytes that are read at once.
const PORTION: usize = 1 << 16;
/// Most portions between two looks at the server's log.
const PORTIONS: usize = 64;

/// Finds messages in the bytes of a connection.
pub trait Framing {
    /// A message.
    type Message;

    /// The next message, and the number of bytes that are done with. `None`: no whole one is there.
    ///
    /// # Errors
    ///
    /// The bytes are no message of the protocol.
    fn next(&mut self, bytes: &[u8]) -> Result<(Option<Self::Message>, usize), Error>;
}

/// The meaning of a message in a stream.
#[derive(Debug)]
pub enum StreamPart<T> {
    /// A part of the stream.
    Content(T),
    /// The stream is over after what arrived before.
    Over(Error),
    /// Nothing.
    Ignored,
}

#[derive(Debug)]
enum Socket {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A connection's bytes.
#[derive(Debug)]
pub struct Channel<F> {
    socket: Socket,
    /// Finds the messages.
    pub framing: F,
    unread: Vec<u8>,
    /// How much of `unread` has been taken. It is removed once no whole message is left.
    taken: usize,
    /// The stream is over, and messages from before that are still to be taken.
    over: Option<Error>,
    /// The last look left nothing unread.
    is_drained: bool,
}

impl<F: Framing> Channel<F> {
    /// Connects. `socket`: the path of the server's socket file, if the target names one.
    ///
    /// # Errors
    ///
    /// [`Error::Connect`]
    pub fn connect(
        target: &ConnectionTarget,
        socket: &str,
        framing: F,
    ) -> Result<Channel<F>, Error> {
        let address = match target.is_socket() {
            true => socket.to_owned(),
            false => target.address(),
        };
        let connected = || match target.is_socket() {
            true => {
                let stream = UnixStream::connect(socket)?;
                stream.set_read_timeout(Some(PATIENCE))?;
                Ok(Socket::Unix(stream))
            }
            false => {
                let stream = TcpStream::connect((&*target.host, target.port))?;
                stream.set_read_timeout(Some(PATIENCE))?;
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        };
        Ok(Channel {
            socket: connected().map_err(|source| Error::Connect { address, source })?,
            framing,
            unread: Vec::new(),
            taken: 0,
            over: None,
            is_drained: true,
        })
    }

    /// The next message, waited for.
    ///
    /// # Errors
    ///
    /// The connection broke, or the bytes are no message.
    pub fn message(&mut self) -> Result<F::Message, Error> {
        let mut buffer = vec![0; PORTION];
        loop {
            if let Some(message) = self.next()? {
                return Ok(message);
            }
            match self.socket.read(&mut buffer) {
                Ok(0) => return Err(Error::closed()),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(Error::Broken(error)),
            }
        }
    }

    /// From now on, [`Channel::received`] has the messages.
    ///
    /// # Errors
    ///
    /// The kernel refuses it.
    pub fn begin_stream(&mut self) -> Result<(), Error> {
        let set = match &self.socket {
            Socket::Tcp(stream) => stream.set_nonblocking(true),
            Socket::Unix(stream) => stream.set_nonblocking(true),
        };
        set.map_err(Error::Broken)
    }

    /// The parts of a stream that have arrived. Never waits.
    ///
    /// # Errors
    ///
    /// The stream is over, and all parts have been taken.
    pub fn received<T>(
        &mut self,
        part: impl Fn(F::Message) -> StreamPart<T>,
    ) -> Result<Vec<T>, Error> {
        if let Some(error) = self.over.take() {
            return Err(error);
        }
        let mut over = self.read_arrived();
        let mut arrived = Vec::new();
        while let Some(message) = self.next()? {
            match part(message) {
                StreamPart::Content(content) => arrived.push(content),
                StreamPart::Over(error) => over = Some(error),
                StreamPart::Ignored => (),
            }
        }
        self.over = over;
        parts_before_error(arrived, &mut self.over)
    }

    /// Reads what is there, and returns why there will be nothing more.
    fn read_arrived(&mut self) -> Option<Error> {
        let mut buffer = vec![0; PORTION];
        self.is_drained = true;
        for _ in 0..PORTIONS {
            match self.socket.read(&mut buffer) {
                Ok(0) => return Some(Error::closed()),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::WouldBlock => return None,
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Some(Error::Broken(error)),
            }
        }
        self.is_drained = false;
        None
    }

    /// True if the last look at the stream left nothing that had arrived.
    pub fn is_drained(&self) -> bool {
        self.is_drained
    }

    /// True if something has arrived that nothing was asked for: a last message, or the end.
    pub fn has_arrived(&self) -> bool {
        let descriptor = self.descriptor();
        let mut looked = [PollFd::new(&descriptor, PollFlags::IN)];
        let now = Timespec::default();
        let has_unread = self.taken < self.unread.len();
        has_unread || poll(&mut looked, Some(&now)).is_ok_and(|ready| ready > 0)
    }

    /// The next message, if all of it has arrived.
    fn next(&mut self) -> Result<Option<F::Message>, Error> {
        let rest = self.unread.get(self.taken..).unwrap_or_default();
        let (message, length) = self.framing.next(rest)?;
        self.taken += length;
        if message.is_none() {
            self.unread.drain(..self.taken.min(self.unread.len()));
            self.taken = 0;
        }
        Ok(message)
    }

    /// Sends bytes.
    ///
    /// # Errors
    ///
    /// The connection broke.
    pub fn send(&mut self, bytes: &[u8]) -> Result<(), Error> {
        self.socket.write_all(bytes).map_err(Error::Broken)
    }

    /// Readable when something has arrived.
    pub fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.socket {
            Socket::Tcp(stream) => stream.as_fd(),
            Socket::Unix(stream) => stream.as_fd(),
        }
    }
}

/// The parts of a stream that arrived, or the error behind them. If there are both, the error is
/// left for the next call.
///
/// # Errors
///
/// The stream is over, and nothing arrived before.
pub fn parts_before_error<T>(arrived: Vec<T>, error: &mut Option<Error>) -> Result<Vec<T>, Error> {
    match error.take() {
        Some(last) if arrived.is_empty() => Err(last),
        left => {
            *error = left;
            Ok(arrived)
        }
    }
}

impl Read for Socket {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.read(buffer),
            Socket::Unix(stream) => stream.read(buffer),
        }
    }
}

impl Write for Socket {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match self {
            Socket::Tcp(stream) => stream.write(bytes),
            Socket::Unix(stream) => stream.write(bytes),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        match self {
            Socket::Tcp(stream) => stream.flush(),
            Socket::Unix(stream) => stream.flush(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::net::UnixListener;

    /// A message is a byte with a length, and so many bytes.
    struct Counted;

    impl Framing for Counted {
        type Message = Vec<u8>;

        fn next(&mut self, bytes: &[u8]) -> Result<(Option<Vec<u8>>, usize), Error> {
            let whole = bytes
                .split_first()
                .and_then(|(length, rest)| rest.get(..usize::from(*length)));
            Ok((
                whole.map(<[u8]>::to_vec),
                whole.map_or(0, |one| one.len() + 1),
            ))
        }
    }

    #[test]
    fn what_arrived_before_an_error_is_returned_first() {
        let mut error = Some(Error::closed());
        assert_eq!(parts_before_error(vec![1], &mut error).unwrap(), [1]);
        assert!(error.is_some());
        assert!(parts_before_error(Vec::<u8>::new(), &mut error).is_err());
        let nothing = parts_before_error(Vec::<u8>::new(), &mut error);
        assert!(nothing.unwrap().is_empty());
    }

    #[test]
    fn the_parts_before_the_end_of_a_stream_arrive_before_its_error() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("socket");
        let listener = UnixListener::bind(&path).unwrap();
        let path = path.to_str().unwrap();
        let target = ConnectionTarget {
            scheme: "test",
            host: path.to_owned(),
            port: 0,
            user: String::new(),
            database: String::new(),
            password: None,
        };
        let mut channel = Channel::connect(&target, path, Counted).unwrap();
        let (mut server, _) = listener.accept().unwrap();
        server.write_all(&[1, 5]).unwrap();
        assert_eq!(channel.message().unwrap(), [5]);
        assert!(!channel.has_arrived());
        server.write_all(&[1, 7, 2, 8]).unwrap();
        assert!(channel.has_arrived());
        assert_eq!(channel.message().unwrap(), [7]);
        channel.begin_stream().unwrap();
        assert!(channel.received(StreamPart::Content).unwrap().is_empty());
        server.write_all(&[9, 1, 6, 1]).unwrap();
        drop(server);
        let arrived = channel.received(StreamPart::Content).unwrap();
        assert_eq!(arrived, [vec![8, 9], vec![6]]);
        let end = channel.received(StreamPart::Content);
        assert!(matches!(end, Err(Error::Broken(_))));
    }
}
