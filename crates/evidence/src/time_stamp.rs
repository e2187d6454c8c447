//! Time stamps of RFC 3161. `openssl ts` makes requests and verifies replies, `curl` sends them.
//!
//! In: a statement, and the address of an authority. Out: its reply, which proves that the
//! statement existed at that time. Nothing but the statement's SHA-256 digest leaves the machine.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::{Error, Result};

/// Requests a time stamp for a text.
pub fn request(address: &str, text: &str) -> Result<Vec<u8>> {
    let file = temporary(text.as_bytes())?;
    let mut query = Command::new("openssl");
    query.args(["ts", "-query", "-sha256", "-cert", "-data"]);
    let query = output(query.arg(file.path()), &[])?;
    let query =
        query.map_err(|why| failed("openssl cannot make a request for a time stamp", &why))?;
    let mut post = Command::new("curl");
    post.args([
        "-sS",
        "--fail",
        "--max-time",
        "60",
        "--max-filesize",
        "1048576",
    ])
    .args(["--proto", "=http,https"])
    .args(["-H", "Content-Type: application/timestamp-query"])
    .args(["--data-binary", "@-", "--url", address]);
    let reply = output(&mut post, &query)?;
    let reply = reply.map_err(|why| failed(&format!("{address} gives no time stamp"), &why))?;
    // A reply may be a refusal, or about something else. Its certificate is verified later.
    let reply_file = temporary(&reply)?;
    let mut read = Command::new("openssl");
    read.args(["ts", "-reply", "-text", "-in"])
        .arg(reply_file.path());
    let told = output(&mut read, &[])?
        .map_err(|why| failed(&format!("{address} gives no time stamp"), &why))?;
    match String::from_utf8_lossy(&told).contains("Status: Granted") {
        true => Ok(reply),
        false => Err(failed(
            &format!("{address} gives no time stamp"),
            "it refuses",
        )),
    }
}

/// Verifies a time stamp with the certificates that are trusted. Returns why it is wrong, or
/// nothing.
pub fn verify(text: &str, stamp: &[u8], trusted: &Path) -> Result<Option<String>> {
    let (data, reply) = (temporary(text.as_bytes())?, temporary(stamp)?);
    let mut command = Command::new("openssl");
    command.args(["ts", "-verify", "-data"]).arg(data.path());
    command.arg("-in").arg(reply.path());
    command.arg("-CAfile").arg(trusted);
    // The reply has the certificate of the signer, and these also serve as its issuers.
    command.arg("-untrusted").arg(trusted);
    Ok(output(&mut command, &[])?.err())
}

fn temporary(bytes: &[u8]) -> Result<tempfile::NamedTempFile> {
    tempfile::NamedTempFile::new()
        .and_then(|mut file| file.write_all(bytes).map(|()| file))
        .map_err(Error::io("create a file in", &std::env::temp_dir()))
}

fn failed(what: &str, why: &str) -> Error {
    Error::TimeStamp(format!("{what}: {why}"))
}

/// Runs a program with an input. Returns its output, or the last line that it complained.
fn output(command: &mut Command, input: &[u8]) -> Result<std::result::Result<Vec<u8>, String>> {
    let program = command.get_program().to_string_lossy().into_owned();
    let fail = |error: std::io::Error| {
        failed(
            &format!("cannot run {program}, which time stamps need"),
            &error.to_string(),
        )
    };
    let child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let mut child = child.map_err(fail)?;
    if let Some(mut stdin) = child.stdin.take() {
        // A program that does not read its input reports why by its status.
        let _ = stdin.write_all(input);
    }
    let output = child.wait_with_output().map_err(fail)?;
    match output.status.success() {
        true => Ok(Ok(output.stdout)),
        false => {
            let complaint = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            Ok(Err(complaint
                .lines()
                .last()
                .unwrap_or("it failed")
                .to_owned()))
        }
    }
}
