//! Requests to a bucket. `curl` makes the connections and the signatures (`--aws-sigv4`).
//!
//! In: requests, each with a file that it sends or receives. Out: the status of each. One `curl`
//! makes many requests at a time. A client library of S3 with its own TLS would add a fifth to the
//! size of the program.
//!
//! Invariant: keys and secrets pass through a pipe, and never through arguments, which other users
//! can read.

use std::collections::HashMap;
use std::fmt::Write as _;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use sha2::{Digest as _, Sha256};

use crate::{Error, Result};

use super::account::Account;

/// Requests that are under way at a time.
const AT_A_TIME: usize = 16;
/// Requests of one process.
const OF_ONE_PROCESS: usize = 500;
/// Most bytes of a reply that says why a request failed.
const LONGEST_REASON: u64 = 16 << 10;
/// SHA-256 of nothing.
const OF_NOTHING: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

/// A request about one object, or about a list of keys.
#[derive(Debug)]
pub struct Request {
    /// The method of HTTP.
    pub method: Method,
    /// The rest of the URL behind that of the bucket: a slash, the key, and for a list the query.
    pub target: String,
}

/// The operation of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Method {
    /// Reads an object or a list into this file.
    Get(PathBuf),
    /// Asks whether there is an object.
    Head,
    /// Writes this file as an object.
    Put(PathBuf),
    /// Removes an object.
    Delete,
}

/// The end of a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answer {
    /// The server did it.
    Done,
    /// There is no such object.
    Absent,
}

/// Makes requests.
pub struct Curl {
    account: Account,
    /// A directory for replies, of this process alone.
    replies: PathBuf,
}

impl Curl {
    /// `replies` is a directory of this process alone.
    pub fn new(account: Account, replies: &Path) -> Curl {
        Curl {
            account,
            replies: replies.to_owned(),
        }
    }

    /// Makes all requests, and returns their answers in the same order.
    ///
    /// # Errors
    /// [`Error::Connection`] if the server cannot be reached, and [`Error::Refused`] if it refuses a
    /// request. Then any of the requests may have been done.
    pub fn make(&self, requests: &[Request]) -> Result<Vec<Answer>> {
        let mut answers = Vec::with_capacity(requests.len());
        for part in requests.chunks(OF_ONE_PROCESS) {
            answers.extend(self.make_part(part)?);
        }
        Ok(answers)
    }

    fn make_part(&self, requests: &[Request]) -> Result<Vec<Answer>> {
        let mut config = String::new();
        for (number, request) in requests.iter().enumerate() {
            let next = if number == 0 { "" } else { "next\n" };
            config += next;
            self.describe(&mut config, number, request)?;
        }
        let lines = self.run(&config)?;
        let mut ended: HashMap<usize, &str> = HashMap::new();
        for line in lines.lines() {
            if let Some((number, rest)) = line.split_once('\t')
                && let Ok(number) = number.parse()
            {
                ended.insert(number, rest);
            }
        }
        (0..requests.len())
            .map(|number| match ended.get(&number) {
                Some(line) => self.answer(number, &requests[number], line),
                None => Err(Error::Connection(
                    "curl ended before all requests were made".to_owned(),
                )),
            })
            .collect()
    }

    /// The options of one request, as curl(1) reads them from a file.
    fn describe(&self, config: &mut String, number: usize, request: &Request) -> Result<()> {
        let Account {
            base,
            region,
            key,
            secret,
            token,
        } = &self.account;
        let mut option = |name: &str, value: &str| {
            let _ = writeln!(
                config,
                "{name} = \"{}\"",
                value.replace('\\', "\\\\").replace('"', "\\\"")
            );
        };
        option("url", &format!("{base}{}", request.target));
        option("aws-sigv4", &format!("aws:amz:{region}:s3"));
        option("user", &format!("{key}:{secret}"));
        if let Some(token) = token {
            option("header", &format!("x-amz-security-token: {token}"));
        }
        let payload = match &request.method {
            Method::Put(file) => sha256_of(file)?,
            _ => OF_NOTHING.to_owned(),
        };
        option("header", &format!("x-amz-content-sha256: {payload}"));
        option("output", &self.reply(number, request).to_string_lossy());
        match &request.method {
            Method::Get(_) => {}
            Method::Head => *config += "head\n",
            Method::Put(file) => {
                let mut option = |name: &str, value: &str| {
                    let _ = writeln!(config, "{name} = \"{value}\"");
                };
                option("upload-file", &file.to_string_lossy());
                // A server that knows no "Expect: 100-continue" does not say when to go on.
                option("expect100-timeout", "0.2");
            }
            Method::Delete => *config += "request = \"DELETE\"\n",
        }
        let _ = writeln!(
            config,
            "write-out = \"{number}\\t%{{http_code}}\\t%{{exitcode}}\\t%{{errormsg}}\\n\""
        );
        // A connection without any byte for a minute is lost. Busy servers are asked again.
        *config += "silent\nproto = \"=http,https\"\nconnect-timeout = 20\nspeed-limit = 1\nspeed-time = 60\nretry = 4\n";
        Ok(())
    }

    /// The file for the reply. That of an object is the caller's.
    fn reply(&self, number: usize, request: &Request) -> PathBuf {
        match &request.method {
            Method::Get(file) => file.clone(),
            _ => self.replies.join(format!("reply.{number}")),
        }
    }

    fn run(&self, config: &str) -> Result<String> {
        let mut command = Command::new("curl");
        command.args([
            "-q",
            "--parallel",
            "--parallel-max",
            &AT_A_TIME.to_string(),
            "--config",
            "-",
        ]);
        command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null());
        let mut child = command.spawn().map_err(|error| {
            Error::Connection(format!(
                "cannot run curl, which makes the connection to a bucket: {error}"
            ))
        })?;
        let mut input = child.stdin.take();
        // curl reads its options whole before it writes.
        let written = input
            .as_mut()
            .map(|input| input.write_all(config.as_bytes()));
        drop(input);
        let output = child.wait_with_output();
        let lost = |error| Error::Connection(format!("curl fails: {error}"));
        let output = output.map_err(lost)?;
        written.transpose().map_err(lost)?;
        if output.status.code() == Some(2) && output.stdout.is_empty() {
            return Err(Error::Connection(
                "the installed curl is too old to sign requests: version 7.75 or newer is needed"
                    .to_owned(),
            ));
        }
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }

    fn answer(&self, number: usize, request: &Request, line: &str) -> Result<Answer> {
        let mut fields = line.splitn(3, '\t');
        let mut next = || fields.next().unwrap_or_default();
        let (status, exit, message) = (next(), next(), next());
        let reply = self.reply(number, request);
        let found = match (status, exit) {
            ("200" | "204", "0") => Ok(Answer::Done),
            ("404", _) if request.method == Method::Delete => Ok(Answer::Done),
            // A request for a list answers 404 if there is no bucket.
            ("404", _) if !request.target.starts_with("/?") => Ok(Answer::Absent),
            ("000", _) => Err(Error::Connection(format!(
                "{} cannot be reached: {message}",
                self.server()
            ))),
            (_, "0") => Err(self.refusal(status, &reply)),
            _ => Err(Error::Connection(format!(
                "the connection to {} was lost: {message}",
                self.server()
            ))),
        };
        if !matches!(
            (&found, &request.method),
            (Ok(Answer::Done), Method::Get(_))
        ) {
            let _ = fs::remove_file(&reply);
        }
        found
    }

    fn server(&self) -> &str {
        let base = &self.account.base;
        let after = base.find("://").map_or(0, |at| at + 3);
        base[after..].split('/').next().unwrap_or(base)
    }

    /// The reason that S3 gives as XML: `<Error><Code>…</Code><Message>…</Message>`.
    fn refusal(&self, status: &str, reply: &Path) -> Error {
        let mut text = Vec::new();
        if let Ok(file) = fs::File::open(reply) {
            let _ = file.take(LONGEST_REASON).read_to_end(&mut text);
        }
        let text = String::from_utf8_lossy(&text);
        let part = |name| super::listing::element(&text, name).unwrap_or_default();
        let (code, message) = (part("Code"), part("Message"));
        let reason = match (code.is_empty(), message.is_empty()) {
            (true, _) => format!("status {status}"),
            (false, true) => code.into_owned(),
            (false, false) => format!("{code}: {message}"),
        };
        let reason: String = reason
            .chars()
            .map(|c| if c.is_control() { ' ' } else { c })
            .collect();
        Error::Refused(format!("{} refuses a request: {reason}", self.server()))
    }
}

fn sha256_of(path: &Path) -> Result<String> {
    let mut hash = Sha256::new();
    let mut buffer = vec![0; 64 << 10];
    let mut file = fs::File::open(path).map_err(Error::io("read", path))?;
    loop {
        match file.read(&mut buffer).map_err(Error::io("read", path))? {
            0 => break,
            bytes => hash.update(&buffer[..bytes]),
        }
    }
    Ok(data_encoding::HEXLOWER.encode(&hash.finalize()))
}
