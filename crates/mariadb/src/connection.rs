//! A connection to the server: the client's half of the protocol, as far as it is needed.
//!
//! In: statements as text. Out: rows as text, or a stream of binlog events. Blocking, but for
//! [`Connection::received`]. `https://mariadb.com/kb/en/clientserver-protocol/`

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use sha1::{Digest, Sha1};

use crate::byte_reader::ByteReader;
use crate::{ConnectionTarget, Error};

/// Longest wait for an answer of the server.
const PATIENCE: Duration = Duration::from_secs(60);
/// A packet of this length goes on in the next one.
const FULL: usize = 0xff_ffff;
/// The abilities of this client: long passwords and flags, a database, the protocol of version 4.1,
/// transactions, authentication, and its plug-ins.
const CAPABILITIES: u32 = 0x1 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
/// `utf8mb4_general_ci`
const CHARSET: u8 = 45;
/// `BINLOG_SEND_ANNOTATE_ROWS_EVENT`
const ANNOTATE: u16 = 2;
const COM_QUERY: u8 = 3;
const COM_BINLOG_DUMP: u8 = 18;
const NATIVE: &str = "mysql_native_password";

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
    /// How much of `unread` has been taken. It is removed once no whole packet is left.
    taken: usize,
    /// The beginning of a message of several packets.
    partial: Vec<u8>,
    /// The number of the next packet that is sent.
    sequence: u8,
    /// The stream is over, and events from before that are still to be taken.
    over: Option<Error>,
    /// The server's number of this connection.
    pub(crate) id: u64,
}

impl Connection {
    /// Connects and logs in.
    pub(crate) fn open(target: &ConnectionTarget) -> Result<Connection, Error> {
        let mut connection = Connection {
            channel: channel(target)?,
            unread: Vec::new(),
            taken: 0,
            partial: Vec::new(),
            sequence: 0,
            over: None,
            id: 0,
        };
        let greeting = connection.message()?;
        if greeting.first() == Some(&0xff) {
            return Err(refused("the connection", &greeting));
        }
        let (id, salt) = greeted(&greeting).ok_or_else(|| unexpected(&greeting))?;
        connection.id = id;
        let password = target.password.as_deref().unwrap_or_default();
        let mut answer = CAPABILITIES.to_le_bytes().to_vec();
        answer.extend_from_slice(&(FULL as u32).to_le_bytes());
        answer.push(CHARSET);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(target.user.as_bytes());
        answer.push(0);
        let proof = native(password, &salt);
        answer.push(proof.len() as u8);
        answer.extend_from_slice(&proof);
        for text in [target.database.as_str(), NATIVE] {
            answer.extend_from_slice(text.as_bytes());
            answer.push(0);
        }
        connection.send(&answer)?;
        connection.log_in(password)?;
        Ok(connection)
    }

    fn log_in(&mut self, password: &str) -> Result<(), Error> {
        loop {
            let message = self.message()?;
            match message.first() {
                Some(0) => return Ok(()),
                Some(0xff) => return Err(refused("the connection", &message)),
                Some(0xfe) => {
                    let mut reader = ByteReader(message.get(1..).unwrap_or_default());
                    let plugin = reader.until_nul().unwrap_or_default();
                    match &*String::from_utf8_lossy(plugin) {
                        NATIVE => {
                            let salt = reader.0.strip_suffix(&[0]).unwrap_or(reader.0);
                            let proof = native(password, salt);
                            self.send(&proof)?;
                        }
                        "unix_socket" | "auth_socket" => self.send(&[])?,
                        other => return Err(Error::LogIn(other.to_owned())),
                    }
                }
                _ => return Err(unexpected(&message)),
            }
        }
    }

    /// Executes a statement, and returns its rows.
    pub(crate) fn query(&mut self, statement: &str) -> Result<Vec<TextRow>, Error> {
        self.command(COM_QUERY, statement.as_bytes())?;
        let head = self.message()?;
        match head.first() {
            Some(0) => return Ok(Vec::new()),
            Some(0xff) => return Err(refused(statement, &head)),
            Some(0xfb) | None => return Err(unexpected(&head)),
            Some(_) => (),
        }
        let is_end = |message: &[u8]| message.first() == Some(&0xfe) && message.len() < 9;
        while !is_end(&self.message()?) {}
        let mut rows = Vec::new();
        loop {
            let message = self.message()?;
            if is_end(&message) {
                return Ok(rows);
            }
            if message.first() == Some(&0xff) {
                return Err(refused(statement, &message));
            }
            rows.push(row(&message).ok_or_else(|| unexpected(&message))?);
        }
    }

    /// The single value of a statement's single row.
    pub(crate) fn value(&mut self, statement: &str) -> Result<String, Error> {
        let rows = self.query(statement)?;
        let first = rows.into_iter().next();
        let first = first.and_then(|row| row.into_iter().next());
        Ok(first.flatten().unwrap_or_default())
    }

    /// Begins a stream of events from a position on. [`Connection::received`] then has them.
    pub(crate) fn stream(&mut self, file: &str, position: u32, server: u32) -> Result<(), Error> {
        let mut body = position.to_le_bytes().to_vec();
        body.extend_from_slice(&ANNOTATE.to_le_bytes());
        body.extend_from_slice(&server.to_le_bytes());
        body.extend_from_slice(file.as_bytes());
        self.command(COM_BINLOG_DUMP, &body)?;
        let set = match &self.channel {
            Channel::Tcp(stream) => stream.set_nonblocking(true),
            Channel::Unix(stream) => stream.set_nonblocking(true),
        };
        set.map_err(Error::Broken)
    }

    /// The events that have arrived. Never waits. A stream that is over is an error once all events
    /// have been taken.
    pub(crate) fn received(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        if let Some(error) = self.over.take() {
            return Err(error);
        }
        let mut over = None;
        let mut buffer = vec![0; 1 << 16];
        // Bounded, so that the log of statements has its turn.
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
        let mut events = Vec::new();
        while let Some(mut message) = self.taken() {
            match message.first() {
                Some(0) => events.push(message.split_off(1)),
                Some(0xff) => over = Some(refused("to send row changes", &message)),
                _ => over = over.or_else(|| Some(broken())),
            }
        }
        match over {
            Some(error) if events.is_empty() => Err(error),
            over => {
                self.over = over;
                Ok(events)
            }
        }
    }

    /// Readable when something has arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        match &self.channel {
            Channel::Tcp(stream) => stream.as_fd(),
            Channel::Unix(stream) => stream.as_fd(),
        }
    }

    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        match &mut self.channel {
            Channel::Tcp(stream) => stream.read(buffer),
            Channel::Unix(stream) => stream.read(buffer),
        }
    }

    /// The next message, waited for.
    fn message(&mut self) -> Result<Vec<u8>, Error> {
        let mut buffer = vec![0; 1 << 14];
        loop {
            if let Some(message) = self.taken() {
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
    fn taken(&mut self) -> Option<Vec<u8>> {
        loop {
            let rest = self.unread.get(self.taken..).unwrap_or_default();
            let head = rest.first_chunk::<4>().copied();
            let length = head.map(|[a, b, c, _]| u32::from_le_bytes([a, b, c, 0]) as usize);
            let whole = length.and_then(|length| rest.get(4..4 + length));
            let (Some([.., number]), Some(body)) = (head, whole) else {
                self.unread.drain(..self.taken);
                self.taken = 0;
                return None;
            };
            self.sequence = number.wrapping_add(1);
            self.partial.extend_from_slice(body);
            let length = body.len();
            self.taken += length + 4;
            if length < FULL {
                return Some(std::mem::take(&mut self.partial));
            }
        }
    }

    fn command(&mut self, kind: u8, body: &[u8]) -> Result<(), Error> {
        self.sequence = 0;
        self.send(&[&[kind][..], body].concat())
    }

    /// Sends a message, which is shorter than a packet can be.
    fn send(&mut self, body: &[u8]) -> Result<(), Error> {
        let [a, b, c, _] = (body.len() as u32).to_le_bytes();
        let message = [&[a, b, c, self.sequence][..], body].concat();
        let written = match &mut self.channel {
            Channel::Tcp(stream) => stream.write_all(&message),
            Channel::Unix(stream) => stream.write_all(&message),
        };
        written.map_err(Error::Broken)
    }
}

fn channel(target: &ConnectionTarget) -> Result<Channel, Error> {
    let unix = target.host.starts_with('/');
    let address = match unix {
        true => target.host.clone(),
        false => format!("{}:{}", target.host, target.port),
    };
    let limited = || match unix {
        true => {
            let stream = UnixStream::connect(&target.host)?;
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

/// The number of the connection and the salt of a greeting.
fn greeted(message: &[u8]) -> Option<(u64, Vec<u8>)> {
    let mut reader = ByteReader(message);
    (reader.byte()? == 10).then_some(())?;
    reader.until_nul()?;
    let id = reader.number(4)?;
    let mut salt = reader.take(8)?.to_vec();
    // A zero, capabilities, character set, status, capabilities, the salt's length.
    reader.take(1 + 2 + 1 + 2 + 2 + 1 + 10)?;
    salt.extend_from_slice(reader.take(12)?);
    Some((id, salt))
}

/// The proof of `mysql_native_password`.
fn native(password: &str, salt: &[u8]) -> Vec<u8> {
    if password.is_empty() {
        return Vec::new();
    }
    let once = Sha1::digest(password.as_bytes());
    let twice = Sha1::digest(once);
    let salted = Sha1::new()
        .chain_update(salt)
        .chain_update(twice)
        .finalize();
    once.iter().zip(salted).map(|(a, b)| a ^ b).collect()
}

fn broken() -> Error {
    Error::Broken(ErrorKind::UnexpectedEof.into())
}

fn unexpected(message: &[u8]) -> Error {
    Error::Protocol(format!("a packet that begins with {:?}", message.first()))
}

/// The columns of a row of text.
fn row(message: &[u8]) -> Option<TextRow> {
    let mut reader = ByteReader(message);
    let mut columns = Vec::new();
    while !reader.0.is_empty() {
        columns.push(match reader.0.first() {
            Some(0xfb) => {
                reader.byte()?;
                None
            }
            _ => {
                let length = reader.length()?;
                Some(String::from_utf8_lossy(reader.take(length)?).into_owned())
            }
        });
    }
    Some(columns)
}

/// The error of an error packet.
fn refused(what: &str, message: &[u8]) -> Error {
    let mut reader = ByteReader(message.get(1..).unwrap_or_default());
    let code = reader.number(2).unwrap_or_default() as u16;
    // Then a mark and five characters of the SQL state.
    let text = match reader.0.first() {
        Some(b'#') => reader.0.get(6..).unwrap_or_default(),
        _ => reader.0,
    };
    Error::Refused {
        what: what.chars().take(120).collect(),
        code,
        message: String::from_utf8_lossy(text).into_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_is_proved_without_being_sent() {
        let salt: Vec<u8> = (1..=20).collect();
        let proof = native("secret", &salt);
        assert_eq!(proof.len(), 20);
        // SHA1(salt, SHA1(SHA1(password))) and the proof give SHA1(password).
        let once = Sha1::digest(b"secret");
        let twice = Sha1::digest(once);
        let mask = Sha1::digest([&salt[..], &twice].concat());
        let back: Vec<u8> = proof.iter().zip(mask).map(|(a, b)| a ^ b).collect();
        assert_eq!(back, once.to_vec());
        assert!(native("", &salt).is_empty());
    }

    #[test]
    fn a_row_that_is_cut_is_refused() {
        let message = [2, b'a', b'b', 0xfb, 1, b'c'];
        let wanted = vec![Some("ab".to_owned()), None, Some("c".to_owned())];
        assert_eq!(row(&message), Some(wanted));
        assert_eq!(row(&message[..2]), None);
    }
}
