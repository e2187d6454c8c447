//! Where the other store is, and the program that serves it there.
//!
//! In: `[USER@]HOST:DIR`, `DIR` or `s3://BUCKET/PREFIX`. Out: a process whose input and output are
//! the connection: the real `ssh`, which runs `backstory store serve-peer` on the other machine, or
//! that command here.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::bucket::BucketAddress;
use crate::{Connection, Error, Result};

/// The place of the other store.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RemoteAddress {
    /// A directory of this machine.
    Directory(PathBuf),
    /// A directory of another machine. Relative paths begin in the user's home directory. Without
    /// one it is the store that the user has there.
    Host {
        /// `[USER@]HOST`
        host: String,
        /// The directory, as the user wrote it.
        directory: String,
    },
    /// A bucket of an object storage.
    Bucket(BucketAddress),
}

impl RemoteAddress {
    /// Reads an address as `scp` does: with a colon before the first slash it names a host.
    ///
    /// # Errors
    /// One sentence for the user.
    pub fn parse(text: &str) -> std::result::Result<RemoteAddress, String> {
        match text.split_once("://") {
            Some(("s3", place)) => return BucketAddress::parse(place).map(RemoteAddress::Bucket),
            Some((scheme, _)) => {
                return Err(format!(
                    "stores at {scheme}:// are not supported; give [USER@]HOST:DIR, a directory or s3://BUCKET/PREFIX"
                ));
            }
            None => {}
        }
        let (host, directory) = match text
            .strip_prefix('[')
            .and_then(|rest| rest.split_once("]:"))
        {
            Some((host, directory)) => (host, directory),
            None => match text.split_once(':') {
                Some((host, directory)) if !host.contains('/') => (host, directory),
                _ if text.is_empty() => return Err("give [USER@]HOST:DIR or a directory".into()),
                _ => return Ok(RemoteAddress::Directory(text.into())),
            },
        };
        let odd = |c: char| c.is_whitespace() || c.is_control();
        if host.is_empty() || host.starts_with('-') || host.contains(odd) {
            return Err(format!(
                "'{}' is not the name of a host",
                host.escape_default()
            ));
        }
        let directory = directory.strip_prefix("~/").unwrap_or(directory);
        Ok(RemoteAddress::Host {
            host: host.to_owned(),
            directory: directory.to_owned(),
        })
    }
}

impl fmt::Display for RemoteAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RemoteAddress::Directory(directory) => directory.display().fmt(f),
            RemoteAddress::Host { host, directory } => write!(f, "{host}:{directory}"),
            RemoteAddress::Bucket(address) => address.fmt(f),
        }
    }
}

/// The programs that make a connection.
#[derive(Debug, Clone)]
pub struct RemoteProgram {
    /// `ssh` and its options.
    pub ssh: Vec<String>,
    /// `backstory` on the other machine.
    pub remote: String,
    /// This program.
    pub own: PathBuf,
}

/// A process that serves the other store.
pub struct RemoteProcess {
    child: Child,
    address: RemoteAddress,
    program: RemoteProgram,
}

impl RemoteProcess {
    /// Starts the process. With `read_only`, the other store is not changed, nor made.
    pub fn start(
        address: &RemoteAddress,
        program: &RemoteProgram,
        read_only: bool,
    ) -> Result<RemoteProcess> {
        let mut words: Vec<OsString> = vec!["store".into(), "serve-peer".into()];
        words.extend(read_only.then(|| "--read-only".into()));
        let mut command = match address {
            RemoteAddress::Directory(directory) => {
                let mut command = Command::new(&program.own);
                command.args(words).arg("--").arg(directory);
                command
            }
            RemoteAddress::Bucket(bucket) => {
                let mut command = Command::new(&program.own);
                command.args(words).arg(format!("--bucket={bucket}"));
                command
            }
            RemoteAddress::Host { host, directory } => {
                let mut line = quoted(&program.remote);
                for word in words {
                    line = format!("{line} {}", word.to_string_lossy());
                }
                if !directory.is_empty() {
                    line = format!("{line} -- {}", quoted(directory));
                }
                let (ssh, options) = program
                    .ssh
                    .split_first()
                    .ok_or_else(|| Error::Connection("no program to connect with".to_owned()))?;
                let mut command = Command::new(ssh);
                command.args(options).args(["-T", "--", host, &line]);
                command
            }
        };
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let child = command.spawn().map_err(|error| {
            let name = Path::new(command.get_program()).display().to_string();
            Error::Connection(format!("cannot run {name} to reach {address}: {error}"))
        })?;
        Ok(RemoteProcess {
            child,
            address: address.clone(),
            program: program.clone(),
        })
    }

    /// The child, to be ended with this program.
    pub fn child(&self) -> &Child {
        &self.child
    }

    /// Begins the exchange with the other store.
    pub fn connect(&mut self, version: &str, select: &[String]) -> Result<Connection<'static>> {
        let (input, output) = self.streams()?;
        Connection::begin(output, input, version, select)
    }

    fn streams(&mut self) -> Result<(ChildStdin, ChildStdout)> {
        let streams = self.child.stdin.take().zip(self.child.stdout.take());
        streams.ok_or_else(|| Error::Connection("the connection was used before".to_owned()))
    }

    /// Explains a lost connection by the status of the process. Other errors stay as they are.
    pub fn explain(mut self, error: Error) -> Error {
        let Error::Connection(what) = &error else {
            return error;
        };
        let status = self.child.wait().ok().and_then(|status| status.code());
        let (address, remote) = (self.address.to_string(), &self.program.remote);
        let address = address.strip_suffix(':').unwrap_or(&address);
        let is_host = matches!(self.address, RemoteAddress::Host { .. });
        Error::Connection(match status {
            Some(127) if is_host => format!(
                "{address} has no program '{remote}': install backstory there, or give its path with --remote-program"
            ),
            Some(255) if is_host => format!("ssh cannot reach {address}, or lost the connection"),
            Some(2) if what.contains("before it began") => format!(
                "the backstory at {address} cannot exchange runs: install version {} there",
                env!("CARGO_PKG_VERSION")
            ),
            _ => format!("no exchange with {address}: {what}"),
        })
    }

    /// Waits for the end of the process after the exchange.
    pub fn wait(mut self) {
        let _ = self.child.wait();
    }
}

/// A word of a shell's command line.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./".contains(c);
    match !word.is_empty() && word.chars().all(plain) {
        true => word.to_owned(),
        false => format!("'{}'", word.replace('\'', "'\\''")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_read_as_scp_reads_it() {
        let host = |host: &str, directory: &str| {
            Ok(RemoteAddress::Host {
                host: host.into(),
                directory: directory.into(),
            })
        };
        let directory = |path: &str| Ok(RemoteAddress::Directory(path.into()));
        for (text, wanted) in [
            ("box:stores/a", host("box", "stores/a")),
            ("me@box:/srv/a b", host("me@box", "/srv/a b")),
            ("box:", host("box", "")),
            ("box:~/a", host("box", "a")),
            ("[::1]:a", host("::1", "a")),
            ("/srv/a", directory("/srv/a")),
            ("./a:b", directory("./a:b")),
            ("a", directory("a")),
            (
                "s3://bucket/a",
                BucketAddress::parse("bucket/a").map(RemoteAddress::Bucket),
            ),
        ] {
            assert_eq!(RemoteAddress::parse(text), wanted, "{text}");
        }
        for wrong in [
            "",
            ":a",
            "-oProxyCommand=x:a",
            "a b:c",
            "s3://bucket//a",
            "ftp://host/a",
        ] {
            assert!(RemoteAddress::parse(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_directory_is_one_word_of_the_other_shell() {
        assert_eq!(quoted("stores/a-b_c.d"), "stores/a-b_c.d");
        assert_eq!(quoted("a b; rm $(x) 'y'"), r"'a b; rm $(x) '\''y'\'''");
        assert_eq!(quoted(""), "''");
    }
}
