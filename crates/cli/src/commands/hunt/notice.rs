//! Sends a match in a run in progress to a file, a command, or a webhook on this machine.

use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use crate::args::hunt::WatchReport;
use crate::error::{Failure, complain};

/// The longest that a webhook may take to be reached, and to take the message.
const REACH: Duration = Duration::from_secs(1);
/// Most commands that run at the same time.
const MOST: usize = 16;
/// How long commands may still run after the end of the run.
const COMPLETE: Duration = Duration::from_secs(10);
/// Between two looks at commands.
const STEP: Duration = Duration::from_millis(5);

/// A webhook on this machine.
#[derive(Debug)]
struct Webhook {
    address: SocketAddr,
    host: String,
    path: String,
}

/// The destinations of matches.
#[derive(Debug)]
pub struct Notices {
    file: Option<File>,
    command: Option<String>,
    running: Vec<Child>,
    webhook: Option<Webhook>,
}

/// Reads a URL on the loopback.
fn webhook(url: &str) -> Option<Webhook> {
    let rest = url.strip_prefix("http://")?;
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    let numeric = match host.strip_prefix("localhost") {
        Some(port) => format!("127.0.0.1{port}"),
        None => host.to_owned(),
    };
    let address: SocketAddr = numeric.parse().ok()?;
    let is_plain = !path.bytes().any(|byte| byte <= b' ' || byte == 0x7f);
    (address.ip().is_loopback() && is_plain).then(|| Webhook {
        address,
        host: host.to_owned(),
        path: if path.is_empty() { "/" } else { path }.to_owned(),
    })
}

/// Checks a URL before the command starts.
///
/// # Errors
///
/// It is no URL on this machine.
pub fn check_url(url: &str) -> Result<(), Failure> {
    match webhook(url) {
        Some(_) => Ok(()),
        None => Err(Failure::misuse(format!(
            "--watch-post {url}: expected http://HOST:PORT/PATH, where HOST is 127.0.0.1, [::1] or localhost"
        ))),
    }
}

impl Notices {
    /// Opens the destinations.
    ///
    /// # Errors
    ///
    /// The file cannot be opened.
    pub fn new(report: &WatchReport) -> Result<Notices, Failure> {
        let open = |path: &std::path::PathBuf| {
            let file = OpenOptions::new()
                .append(true)
                .create(true)
                .mode(0o600)
                .open(path);
            file.map_err(|error| {
                Failure::misuse(format!("cannot write to {}: {error}", path.display()))
            })
        };
        Ok(Notices {
            file: report.watch_to.as_ref().map(open).transpose()?,
            command: report.watch_run.clone(),
            running: Vec::new(),
            webhook: report.watch_post.as_deref().and_then(webhook),
        })
    }

    /// Sends a match, one line of JSON, everywhere. A destination that fails is reported.
    pub fn send(&mut self, json: &[u8]) {
        if let Some(Err(error)) = self.file.as_mut().map(|file| file.write_all(json)) {
            complain(&format!("cannot write the match to its file: {error}"));
        }
        if let Some(Err(error)) = self.webhook.as_ref().map(|hook| post(hook, json)) {
            complain(&format!("cannot post the match: {error}"));
        }
        if let Err(error) = self.run_command(json) {
            complain(&format!("cannot start the command for the match: {error}"));
        }
    }

    fn run_command(&mut self, json: &[u8]) -> io::Result<()> {
        let Some(command) = &self.command else {
            return Ok(());
        };
        self.running
            .retain_mut(|child| matches!(child.try_wait(), Ok(None)));
        if self.running.len() >= MOST {
            return Err(io::Error::other("16 of them still run"));
        }
        let mut shell = Command::new("/bin/sh");
        let mut child = shell.args(["-c", command]).stdin(Stdio::piped()).spawn()?;
        if let Some(mut input) = child.stdin.take() {
            // A match can be larger than a pipe, and a command may read nothing.
            let json = json.to_owned();
            std::thread::Builder::new().spawn(move || input.write_all(&json))?;
        }
        self.running.push(child);
        Ok(())
    }
}

impl Drop for Notices {
    fn drop(&mut self) {
        let begun = Instant::now();
        while !self.running.is_empty() && begun.elapsed() < COMPLETE {
            let goes_on = |child: &mut Child| matches!(child.try_wait(), Ok(None));
            self.running.retain_mut(goes_on);
            std::thread::sleep(STEP);
        }
        for child in &self.running {
            complain(&format!(
                "process {} of --watch-run still runs, and is left running",
                child.id()
            ));
        }
    }
}

/// Posts a match. The answer is not waited for.
fn post(hook: &Webhook, json: &[u8]) -> io::Result<()> {
    let mut stream = TcpStream::connect_timeout(&hook.address, REACH)?;
    stream.set_write_timeout(Some(REACH))?;
    let head = format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        hook.path,
        hook.host,
        json.len()
    );
    stream.write_all(&[head.as_bytes(), json].concat())
}

#[cfg(test)]
mod tests {
    use super::webhook;

    #[test]
    fn a_webhook_is_on_this_machine() {
        for url in [
            "http://127.0.0.1:80",
            "http://localhost:8080/x?y=1",
            "http://[::1]:9/",
        ] {
            assert!(webhook(url).is_some(), "{url}");
        }
        for url in [
            "http://192.0.2.7:80/",
            "https://127.0.0.1:80/",
            "http://127.0.0.1/",
            "http://localhost.example.org:80/",
            "http://127.0.0.1:80@192.0.2.7/",
            "http://127.0.0.1:80/a b",
            "",
        ] {
            assert!(webhook(url).is_none(), "{url}");
        }
    }
}
