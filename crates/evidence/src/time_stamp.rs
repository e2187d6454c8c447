//! Time stamps of RFC 3161. `openssl ts` makes requests and verifies replies, `curl` sends them.
//!
//! In: a statement or a signature, and the address of an authority. Out: its reply, which proves
//! that these bytes existed at that time. Nothing but their SHA-256 digest leaves the machine.

use std::path::Path;
use std::process::Command;

use crate::Result;
use crate::tools::{failed, output, temporary};

/// Requests a time stamp for some bytes.
pub fn request(address: &str, bytes: &[u8]) -> Result<Vec<u8>> {
    let file = temporary(bytes)?;
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
pub fn verify(bytes: &[u8], stamp: &[u8], trusted: &Path) -> Result<Option<String>> {
    let (data, reply) = (temporary(bytes)?, temporary(stamp)?);
    let mut command = Command::new("openssl");
    command.args(["ts", "-verify", "-data"]).arg(data.path());
    command.arg("-in").arg(reply.path());
    command.arg("-CAfile").arg(trusted);
    // The reply has the certificate of the signer, and these also serve as its issuers.
    command.arg("-untrusted").arg(trusted);
    Ok(output(&mut command, &[])?.err())
}
