//! A connection to the server: the client's half of the protocol, as far as it is needed.
//!
//! In: statements as text. Out: rows as text, or a stream of binlog events. Blocking, but for
//! [`Connection::received`]. `https://mariadb.com/kb/en/clientserver-protocol/`

use std::os::fd::BorrowedFd;

use backstory_database::channel::{Channel, Framing, StreamPart};
use backstory_database::connection_target::ConnectionTarget;
use backstory_database::error::Error;
use sha1::{Digest, Sha1};

use crate::byte_reader::ByteReader;

/// A packet of this length goes on in the next one.
const FULL: usize = 0xff_ffff;
/// Longest message that is taken: the server's own limit, and a head.
const LONGEST: usize = (1 << 30) + FULL;
/// The abilities of this client: long passwords and flags, a database, the protocol of version 4.1,
/// transactions, authentication, and its plug-ins.
const CAPABILITIES: u32 = 0x1 | 0x4 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
/// `utf8mb4_general_ci`
const CHARSET: u8 = 45;
/// `BINLOG_SEND_ANNOTATE_ROWS_EVENT`
const ANNOTATE: u16 = 2;
/// `ER_ACCESS_DENIED_ERROR`: a wrong password, or a connection that is not encrypted.
const DENIED: u16 = 1045;
const COM_QUERY: u8 = 3;
const COM_BINLOG_DUMP: u8 = 18;
const NATIVE: &str = "mysql_native_password";

/// A message is one packet, or several of which all but the last are full.
#[derive(Debug, Default)]
pub(crate) struct PacketFraming {
    /// The beginning of a message of several packets.
    partial: Vec<u8>,
    /// The number of the next packet that is sent.
    sequence: u8,
}

impl Framing for PacketFraming {
    type Message = Vec<u8>;

    fn next(&mut self, bytes: &[u8]) -> Result<(Option<Vec<u8>>, usize), Error> {
        let mut done = 0;
        loop {
            let rest = bytes.get(done..).unwrap_or_default();
            let Some([a, b, c, number]) = rest.first_chunk::<4>() else {
                return Ok((None, done));
            };
            let length = u32::from_le_bytes([*a, *b, *c, 0]) as usize;
            let Some(body) = rest.get(4..4 + length) else {
                return Ok((None, done));
            };
            self.sequence = number.wrapping_add(1);
            if self.partial.len() + length > LONGEST {
                return Err(Error::Protocol(format!(
                    "a message of over {LONGEST} bytes"
                )));
            }
            self.partial.extend_from_slice(body);
            done += length + 4;
            if length < FULL {
                return Ok((Some(std::mem::take(&mut self.partial)), done));
            }
        }
    }
}

/// A row: its columns as text, `None` for NULL.
pub(crate) type TextRow = Vec<Option<String>>;

/// A connection that is logged in.
#[derive(Debug)]
pub(crate) struct Connection {
    channel: Channel<PacketFraming>,
    /// The server's number of this connection.
    pub(crate) id: u64,
}

impl Connection {
    /// Connects and logs in.
    pub(crate) fn open(target: &ConnectionTarget) -> Result<Connection, Error> {
        Self::logged_in(target).map_err(|error| error.at_log_in(target))
    }

    fn logged_in(target: &ConnectionTarget) -> Result<Connection, Error> {
        let mut connection = Connection {
            channel: Channel::connect(target, &target.host, PacketFraming::default())?,
            id: 0,
        };
        let greeting = connection.channel.message()?;
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
        match connection.log_in(password) {
            Err(Error::Refused { code, message, .. }) if code == DENIED && !target.is_socket() => {
                Err(Error::Denied {
                    message,
                    remedy: "if it accepts encrypted connections alone, connect through its socket: \
                        mysql://USER@/DATABASE?socket=PATH",
                })
            }
            other => other.map(|()| connection),
        }
    }

    fn log_in(&mut self, password: &str) -> Result<(), Error> {
        loop {
            let message = self.channel.message()?;
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
                        other => {
                            return Err(Error::LogIn {
                                wanted: format!("the log-in {other}"),
                                remedy: "create the user with mysql_native_password or unix_socket",
                            });
                        }
                    }
                }
                _ => return Err(unexpected(&message)),
            }
        }
    }

    /// Executes a statement, and returns its rows.
    pub(crate) fn query(&mut self, statement: &str) -> Result<Vec<TextRow>, Error> {
        self.command(COM_QUERY, statement.as_bytes())?;
        let head = self.channel.message()?;
        match head.first() {
            Some(0) => return Ok(Vec::new()),
            Some(0xff) => return Err(refused(statement, &head)),
            Some(0xfb) | None => return Err(unexpected(&head)),
            Some(_) => (),
        }
        let is_end = |message: &[u8]| message.first() == Some(&0xfe) && message.len() < 9;
        while !is_end(&self.channel.message()?) {}
        let mut rows = Vec::new();
        loop {
            let message = self.channel.message()?;
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
        self.channel.begin_stream()
    }

    /// The events that have arrived. Never waits. A stream that is over is an error once all events
    /// have been taken.
    pub(crate) fn received(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        self.channel.received(|mut message| match message.first() {
            Some(0) => StreamPart::Content(message.split_off(1)),
            Some(0xff) => StreamPart::Over(refused("to send row changes", &message)),
            _ => StreamPart::Over(Error::closed()),
        })
    }

    /// True if the last look left nothing that had arrived.
    pub(crate) fn is_drained(&self) -> bool {
        self.channel.is_drained()
    }

    /// True if the server ended the connection. It sends nothing else without a question.
    pub(crate) fn is_over(&self) -> bool {
        self.channel.has_arrived()
    }

    /// Readable when something has arrived.
    pub(crate) fn descriptor(&self) -> BorrowedFd<'_> {
        self.channel.descriptor()
    }

    fn command(&mut self, kind: u8, body: &[u8]) -> Result<(), Error> {
        self.channel.framing.sequence = 0;
        self.send(&[&[kind][..], body].concat())
    }

    /// Sends a message, which is shorter than a packet can be.
    fn send(&mut self, body: &[u8]) -> Result<(), Error> {
        let [a, b, c, _] = (body.len() as u32).to_le_bytes();
        let message = [&[a, b, c, self.channel.framing.sequence][..], body].concat();
        self.channel.send(&message)
    }
}

/// The number of the connection and the salt of a greeting.
pub(crate) fn greeted(message: &[u8]) -> Option<(u64, Vec<u8>)> {
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

fn unexpected(message: &[u8]) -> Error {
    Error::Protocol(format!("a packet that begins with {:?}", message.first()))
}

/// The columns of a row of text.
pub(crate) fn row(message: &[u8]) -> Option<TextRow> {
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
pub(crate) fn refused(what: &str, message: &[u8]) -> Error {
    let mut reader = ByteReader(message.get(1..).unwrap_or_default());
    let code = reader.number(2).unwrap_or_default() as u16;
    // Then a mark and five characters of the SQL state.
    let text = match reader.0.first() {
        Some(b'#') => reader.0.get(6..).unwrap_or_default(),
        _ => reader.0,
    };
    let remedy = match code {
        DENIED => Some("check the user, and the password in MYSQL_PWD"),
        1044 | 1142 | 1143 | 1227 => Some(
            "the user needs REPLICATION SLAVE, BINLOG MONITOR, PROCESS, SELECT, SHOW VIEW and \
             TRIGGER on all databases",
        ),
        _ => None,
    };
    Error::refused(what, code, text, remedy)
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
