//! A connection to the server: the frontend's half of the protocol, as far as it is needed.
//!
//! In: statements as text. Out: rows as text, or a stream of replication messages. Blocking, but
//! for [`Connection::received`].

use std::collections::VecDeque;
use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

use crate::{ConnectionTarget, Error};

/// Longest wait for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(60);
/// Longest message that is taken: PostgreSQL's own limit.
const LONGEST: usize = 1 << 30;

#[derive(Debug)]
enum Channel {
    Tcp(TcpStream),
    Unix(UnixStream),
}

/// A row: its columns as text, `None` for NULL.
pub(crate) type TextRow = Vec<Option<String>>;

/// A connection that is logged in.
#[derive(Debug)]
pub(crate) struct Connection {
    channel: Channel,
    unread: Vec<u8>,
    /// How much of `unread` has been taken. It is removed once no whole message is left.
    taken: usize,
    /// The stream is over, and messages from before that are still to be taken.
    over: Option<Error>,
    /// The server's process for this connection.
    pub(crate) server_pid: u32,
}

impl Connection {
    /// Connects and logs in. `replication`: the connection can stream changes.
    pub(crate) fn open(target: &ConnectionTarget, replication: bool) -> Result<Connection, Error> {
        let mut connection = Connection {
            channel: channel(target)?,
            unread: Vec::new(),
            taken: 0,
            over: None,
            server_pid: 0,
        };
        let mut body = 196_608_u32.to_be_bytes().to_vec();
        let mut parameter = |name: &str, value: &str| {
            for text in [name, value] {
                body.extend_from_slice(text.as_bytes());
                body.push(0);
            }
        };
        parameter("user", &target.user);
        parameter("database", &target.database);
        parameter("application_name", "backstory watch");
        parameter("client_encoding", "UTF8");
        if replication {
            parameter("replication", "database");
        }
        body.push(0);
        connection.send_body(&body)?;
        connection.log_in(target)?;
        Ok(connection)
    }

    fn log_in(&mut self, target: &ConnectionTarget) -> Result<(), Error> {
        let password = || {
            let password = target.password.as_deref();
            password
                .ok_or_else(|| Error::LogIn("a password, and none is given (PGPASSWORD)".into()))
        };
        let mut scram = None;
        loop {
            let (tag, body) = self.message()?;
            let code = body
                .first_chunk()
                .map_or(0, |four| u32::from_be_bytes(*four));
            match (tag, code) {
                (b'R', 0) => (),
                (b'R', 3) => self.send(b'p', &with_nul(password()?))?,
                (b'R', 5) => {
                    let salt = body
                        .get(4..8)
                        .and_then(|salt| salt.first_chunk::<4>().copied());
                    let salt = salt.ok_or_else(|| unexpected(tag))?;
                    let hash = md5_hash(target.user.as_bytes(), password()?.as_bytes(), salt);
                    self.send(b'p', &with_nul(&hash))?;
                }
                (b'R', 10) => {
                    let binding = ChannelBinding::unsupported();
                    let exchange = ScramSha256::new(password()?.as_bytes(), binding);
                    let first = exchange.message();
                    let mut body = with_nul(SCRAM_SHA_256);
                    body.extend_from_slice(&(first.len() as u32).to_be_bytes());
                    body.extend_from_slice(first);
                    self.send(b'p', &body)?;
                    scram = Some(exchange);
                }
                (b'R', 11) => {
                    let exchange = scram.as_mut().ok_or_else(|| unexpected(tag))?;
                    exchange.update(&body[4..]).map_err(Error::Broken)?;
                    let next = exchange.message().to_vec();
                    self.send(b'p', &next)?;
                }
                (b'R', 12) => {
                    let exchange = scram.as_mut().ok_or_else(|| unexpected(tag))?;
                    exchange.finish(&body[4..]).map_err(Error::Broken)?;
                }
                (b'R', other) => return Err(Error::LogIn(format!("a log-in of kind {other}"))),
                (b'K', _) => self.server_pid = code,
                (b'E', _) => return Err(refused("the connection", &body)),
                (b'Z', _) => return Ok(()),
                _ => (),
            }
        }
    }

    /// Executes a statement, and returns its rows.
    pub(crate) fn query(&mut self, statement: &str) -> Result<Vec<TextRow>, Error> {
        self.send(b'Q', &with_nul(statement))?;
        let (mut rows, mut failed) = (Vec::new(), None);
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'D' => rows.push(row(&body).ok_or_else(|| unexpected(tag))?),
                b'E' => failed = Some(refused(statement, &body)),
                b'Z' => return failed.map_or(Ok(rows), Err),
                _ => (),
            }
        }
    }

    /// The single value of a statement's single row.
    pub(crate) fn value(&mut self, statement: &str) -> Result<String, Error> {
        let rows = self.query(statement)?;
        let first = rows
            .into_iter()
            .next()
            .and_then(|row| row.into_iter().next());
        Ok(first.flatten().unwrap_or_default())
    }

    /// Executes a statement that begins a stream in both directions. From then on
    /// [`Connection::received`] has its messages.
    pub(crate) fn stream(&mut self, statement: &str) -> Result<(), Error> {
        self.send(b'Q', &with_nul(statement))?;
        loop {
            let (tag, body) = self.message()?;
            match tag {
                b'W' => return self.wait(false),
                b'E' => return Err(refused("to send row changes", &body)),
                b'Z' => return Err(unexpected(tag)),
                _ => (),
            }
        }
    }

    /// The messages of a stream that have arrived. Never waits. A stream that is over is an error
    /// once all messages have been taken.
    pub(crate) fn received(&mut self) -> Result<VecDeque<Vec<u8>>, Error> {
        if let Some(error) = self.over.take() {
            return Err(error);
        }
        let mut arrived = VecDeque::new();
        let mut over = None;
        let mut buffer = vec![0; 1 << 16];
        // Bounded, so that the server's log has its turn.
        for _ in 0..64 {
            match self.read(&mut buffer) {
                Ok(0) => over = Some(broken()),
                Ok(count) => {
                    self.unread.extend_from_slice(&buffer[..count]);
                    continue;
                }
                Err(error) if error.kind() == ErrorKind::WouldBlock => (),
                Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                Err(error) => over = Some(Error::Broken(error)),
            }
            break;
        }
        while let Some((tag, body)) = self.taken()? {
            match tag {
                b'd' => arrived.push_back(body),
                b'E' => over = Some(refused("to go on", &body)),
                b'c' | b'C' => over = over.or_else(|| Some(broken())),
                _ => (),
            }
        }
        match over {
            Some(error) if arrived.is_empty() => Err(error),
            over => {
                self.over = over;
                Ok(arrived)
            }
        }
    }

    /// Sends a message of a stream.
    pub(crate) fn reply(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send(b'd', message)
    }

    /// Readable when something has arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.channel {
            Channel::Tcp(stream) => stream.as_fd(),
            Channel::Unix(stream) => stream.as_fd(),
        }
    }

    fn wait(&mut self, blocking: bool) -> Result<(), Error> {
        let set = match &self.channel {
            Channel::Tcp(stream) => stream.set_nonblocking(!blocking),
            Channel::Unix(stream) => stream.set_nonblocking(!blocking),
        };
        set.map_err(Error::Broken)
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.channel {
            Channel::Tcp(stream) => stream.read(buffer),
            Channel::Unix(stream) => stream.read(buffer),
        }
    }

    /// The next message, waited for.
    fn message(&mut self) -> Result<(u8, Vec<u8>), Error> {
        let mut buffer = vec![0; 1 << 14];
        loop {
            if let Some(message) = self.taken()? {
                return Ok(message);
            }
            match self.read(&mut buffer) {
                Ok(0) => return Err(broken()),
                Ok(count) => self.unread.extend_from_slice(&buffer[..count]),
                Err(error) if error.kind() == ErrorKind::Interrupted => (),
                Err(error) => return Err(Error::Broken(error)),
            }
        }
    }

    /// The next message, if all of it has arrived.
    fn taken(&mut self) -> Result<Option<(u8, Vec<u8>)>, Error> {
        let rest = self.unread.get(self.taken..).unwrap_or_default();
        let head = rest.first_chunk::<5>().copied();
        let length = head.map(|[_, length @ ..]| u32::from_be_bytes(length) as usize);
        if let Some(length) = length.filter(|length| !(4..LONGEST).contains(length)) {
            return Err(Error::Protocol(format!("a message of {length} bytes")));
        }
        let whole = length.and_then(|length| rest.get(5..=length));
        let (Some([tag, ..]), Some(body)) = (head, whole) else {
            self.unread.drain(..self.taken);
            self.taken = 0;
            return Ok(None);
        };
        let body = body.to_vec();
        self.taken += body.len() + 5;
        Ok(Some((tag, body)))
    }

    fn send(&mut self, tag: u8, body: &[u8]) -> Result<(), Error> {
        let mut message = vec![tag];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        self.write(&message)
    }

    /// Sends a message without a tag: the first one.
    fn send_body(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
        message.extend_from_slice(body);
        self.write(&message)
    }

    fn write(&mut self, message: &[u8]) -> Result<(), Error> {
        let written = match &mut self.channel {
            Channel::Tcp(stream) => stream.write_all(message),
            Channel::Unix(stream) => stream.write_all(message),
        };
        written.map_err(Error::Broken)
    }
}

fn channel(target: &ConnectionTarget) -> Result<Channel, Error> {
    let path = format!("{}/.s.PGSQL.{}", target.host, target.port);
    let unix = target.host.starts_with('/');
    let address = match unix {
        true => path.clone(),
        false => format!("{}:{}", target.host, target.port),
    };
    let limited = || match unix {
        true => {
            let stream = UnixStream::connect(&path)?;
            stream.set_read_timeout(Some(PATIENCE))?;
            Ok(Channel::Unix(stream))
        }
        false => {
            let stream = TcpStream::connect((&*target.host, target.port))?;
            stream.set_read_timeout(Some(PATIENCE))?;
            stream.set_nodelay(true)?;
            Ok(Channel::Tcp(stream))
        }
    };
    limited().map_err(|source| Error::Connect { address, source })
}

fn with_nul(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

fn broken() -> Error {
    Error::Broken(ErrorKind::UnexpectedEof.into())
}

fn unexpected(tag: u8) -> Error {
    Error::Protocol(format!("a message of kind {:?}", char::from(tag)))
}

/// The columns of a `DataRow`.
fn row(body: &[u8]) -> Option<TextRow> {
    let (count, mut rest) = body.split_first_chunk::<2>()?;
    let mut columns = Vec::new();
    for _ in 0..u16::from_be_bytes(*count) {
        let (length, after) = rest.split_first_chunk::<4>()?;
        rest = after;
        match usize::try_from(i32::from_be_bytes(*length)) {
            Ok(length) => {
                let text = rest.get(..length)?;
                columns.push(Some(String::from_utf8_lossy(text).into_owned()));
                rest = &rest[length..];
            }
            Err(_) => columns.push(None),
        }
    }
    Some(columns)
}

/// The error of an `ErrorResponse`.
fn refused(what: &str, body: &[u8]) -> Error {
    let fields = body.split(|byte| *byte == 0);
    let message = fields
        .filter_map(|field| field.split_first())
        .find(|(kind, _)| **kind == b'M')
        .map(|(_, text)| String::from_utf8_lossy(text).into_owned());
    Error::Refused {
        what: what.chars().take(120).collect(),
        message: message.unwrap_or_default(),
    }
}
