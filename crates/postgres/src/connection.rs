//! A connection to the server: the frontend's half of the protocol, as far as it is needed.
//!
//! In: statements as text. Out: rows as text, or a stream of replication messages. Blocking, but
//! for [`Connection::received`].

use backstory_database::channel::{Channel, Framing, StreamPart};
use backstory_database::connection_target::ConnectionTarget;
use backstory_database::error::Error;
use postgres_protocol::authentication::md5_hash;
use postgres_protocol::authentication::sasl::{ChannelBinding, SCRAM_SHA_256, ScramSha256};

/// Longest message that is taken: PostgreSQL's own limit.
const LONGEST: usize = 1 << 30;

/// A message is a tag, a length, and a body.
#[derive(Debug)]
pub(crate) struct TaggedFraming;

impl Framing for TaggedFraming {
    type Message = (u8, Vec<u8>);

    fn next(&mut self, bytes: &[u8]) -> Result<(Option<Self::Message>, usize), Error> {
        let Some([tag, length @ ..]) = bytes.first_chunk::<5>() else {
            return Ok((None, 0));
        };
        let length = u32::from_be_bytes(*length) as usize;
        if !(4..LONGEST).contains(&length) {
            return Err(Error::Protocol(format!("a message of {length} bytes")));
        }
        let body = bytes.get(5..=length);
        let message = body.map(|body| (*tag, body.to_vec()));
        let done = message.as_ref().map_or(0, |_| length + 1);
        Ok((message, done))
    }
}

/// A row: its columns as text, `None` for NULL.
pub(crate) type TextRow = Vec<Option<String>>;

/// A connection that is logged in.
#[derive(Debug)]
pub(crate) struct Connection {
    channel: Channel<TaggedFraming>,
    /// The server's process for this connection.
    pub(crate) server_pid: u32,
}

impl Connection {
    /// Connects and logs in. `replication`: the connection can stream changes.
    pub(crate) fn open(target: &ConnectionTarget, replication: bool) -> Result<Connection, Error> {
        Self::logged_in(target, replication).map_err(|error| error.at_log_in(target))
    }

    fn logged_in(target: &ConnectionTarget, replication: bool) -> Result<Connection, Error> {
        let socket = format!("{}/.s.PGSQL.{}", target.host, target.port);
        let mut connection = Connection {
            channel: Channel::connect(target, &socket, TaggedFraming)?,
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
            password.ok_or_else(|| log_in("a password", "give one in PGPASSWORD"))
        };
        let mut scram = None;
        loop {
            let (tag, body) = self.channel.message()?;
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
                (b'R', other) => {
                    let remedy = "allow scram-sha-256, md5 or trust for this user in pg_hba.conf";
                    return Err(log_in(&format!("a log-in of kind {other}"), remedy));
                }
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
            let (tag, body) = self.channel.message()?;
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
            let (tag, body) = self.channel.message()?;
            match tag {
                b'W' => return self.channel.begin_stream(),
                b'E' => return Err(refused("to send row changes", &body)),
                b'Z' => return Err(unexpected(tag)),
                _ => (),
            }
        }
    }

    /// The messages of a stream that have arrived. Never waits. A stream that is over is an error
    /// once all messages have been taken.
    pub(crate) fn received(&mut self) -> Result<Vec<Vec<u8>>, Error> {
        self.channel.received(|(tag, body)| match tag {
            b'd' => StreamPart::Content(body),
            b'E' => StreamPart::Over(refused("to go on", &body)),
            b'c' | b'C' => StreamPart::Over(Error::closed()),
            _ => StreamPart::Ignored,
        })
    }

    /// Sends a message of a stream.
    pub(crate) fn reply(&mut self, message: &[u8]) -> Result<(), Error> {
        self.send(b'd', message)
    }

    /// True if the last look left nothing that had arrived.
    pub(crate) fn is_drained(&self) -> bool {
        self.channel.is_drained()
    }

    fn send(&mut self, tag: u8, body: &[u8]) -> Result<(), Error> {
        let mut message = vec![tag];
        message.extend_from_slice(&(body.len() as u32 + 4).to_be_bytes());
        message.extend_from_slice(body);
        self.channel.send(&message)
    }

    /// Sends a message without a tag: the first one.
    fn send_body(&mut self, body: &[u8]) -> Result<(), Error> {
        let mut message = (body.len() as u32 + 4).to_be_bytes().to_vec();
        message.extend_from_slice(body);
        self.channel.send(&message)
    }
}

fn with_nul(text: &str) -> Vec<u8> {
    [text.as_bytes(), &[0]].concat()
}

fn log_in(wanted: &str, remedy: &'static str) -> Error {
    Error::LogIn {
        wanted: wanted.to_owned(),
        remedy,
    }
}

fn unexpected(tag: u8) -> Error {
    Error::Protocol(format!("a message of kind {:?}", char::from(tag)))
}

/// The columns of a `DataRow`.
pub(crate) fn row(body: &[u8]) -> Option<TextRow> {
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
pub(crate) fn refused(what: &str, body: &[u8]) -> Error {
    let field = |wanted: u8| {
        let mut fields = body.split(|byte| *byte == 0);
        let found = fields.find(|field| field.first() == Some(&wanted));
        found.and_then(|field| field.get(1..)).unwrap_or_default()
    };
    let message = field(b'M');
    // The end of the message about a connection that no rule of pg_hba.conf allows.
    if message.ends_with(b", no encryption") {
        return Error::Denied {
            message: String::from_utf8_lossy(message).into_owned(),
            remedy: "it accepts encrypted connections alone, so connect through its socket: \
                postgres:///DATABASE?host=DIRECTORY",
        };
    }
    let remedy = match field(b'C') {
        // No privilege.
        b"42501" => Some("watch as a superuser of the server, as `postgres` is"),
        // A log-in that failed.
        b"28000" | b"28P01" => Some("check the user, and the password in PGPASSWORD"),
        _ => None,
    };
    Error::refused(what, 0, message, remedy)
}
