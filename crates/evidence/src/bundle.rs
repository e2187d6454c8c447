//! Attestations as Sigstore bundles, which are verified offline with a public key.
//!
//! In: an in-toto statement and a private key. Out: a bundle of version 0.3, which has the
//! statement in a DSSE envelope. Later, in: a bundle and the public key. Out: the statement, if the
//! signature is valid. `openssl` signs and verifies.
//!
//! Absent: certificates and transparency logs, which need a network.

use std::path::Path;
use std::process::Command;

use data_encoding::BASE64;
use serde_json::{Value, json};

use crate::tools::{failed, output, temporary};
use crate::{Error, Result, time_stamp};

/// The type of a bundle, without its version.
const BUNDLE: &str = "application/vnd.dev.sigstore.bundle";
/// The type of an in-toto statement.
const STATEMENT: &str = "application/vnd.in-toto+json";

/// Signs a statement with a private key (PEM), and gets a time stamp of the signature.
///
/// # Errors
///
/// `openssl` cannot sign with this key, or the authority gives no time stamp.
pub fn sign(statement: &[u8], key: &Path, tsa: Option<&str>) -> Result<Value> {
    let mut command = Command::new("openssl");
    command.args(["dgst", "-sha256", "-sign"]).arg(key);
    let signature = output(&mut command, &signed_bytes(statement))?;
    let signature = signature.map_err(|why| {
        let what = format!(
            "openssl cannot sign with {}, which is to be a private ECDSA or RSA key (PEM)",
            key.display()
        );
        failed(&what, &why)
    })?;
    // Some readers of bundles need the list of entries in logs, also if it is empty.
    let mut material = json!({"publicKey": {"hint": hint(key)?}, "tlogEntries": []});
    if let Some(tsa) = tsa {
        let stamp = BASE64.encode(&time_stamp::request(tsa, &signature)?);
        material["timestampVerificationData"] =
            json!({"rfc3161Timestamps": [{"signedTimestamp": stamp}]});
    }
    Ok(json!({
        "mediaType": format!("{BUNDLE}.v0.3+json"),
        "verificationMaterial": material,
        "dsseEnvelope": {
            "payload": BASE64.encode(statement),
            "payloadType": STATEMENT,
            "signatures": [{"sig": BASE64.encode(&signature)}],
        },
    }))
}

/// True for a bundle, of whichever version.
pub fn is_bundle(document: &Value) -> bool {
    let kind = document["mediaType"].as_str();
    kind.is_some_and(|kind| kind.starts_with(BUNDLE))
}

/// The statement in a bundle, or why the bundle is not valid. `key` is a public key (PEM). With
/// certificates of authorities, it must have a time stamp.
///
/// # Errors
///
/// The key cannot be read, or `openssl` cannot be started.
pub fn open(
    bundle: &Value,
    key: &Path,
    authorities: Option<&Path>,
) -> Result<std::result::Result<Value, String>> {
    let envelope = &bundle["dsseEnvelope"];
    let decoded = |value: &Value| BASE64.decode(value.as_str()?.as_bytes()).ok();
    let signature = decoded(&envelope["signatures"][0]["sig"]);
    let (Some(statement), Some(signature)) = (decoded(&envelope["payload"]), signature) else {
        return Ok(Err("it has no signed statement".to_owned()));
    };
    if envelope["payloadType"] != STATEMENT {
        return Ok(Err("it is not about an in-toto statement".to_owned()));
    }
    public(key)?;
    let file = temporary(&signature)?;
    let mut command = Command::new("openssl");
    command.args(["dgst", "-sha256", "-verify"]).arg(key);
    command.arg("-signature").arg(file.path());
    if output(&mut command, &signed_bytes(&statement))?.is_err() {
        let key = key.display();
        return Ok(Err(format!("its signature is not one of the key {key}")));
    }
    if let Some(trusted) = authorities {
        let stamps = &bundle["verificationMaterial"]["timestampVerificationData"];
        let Some(stamp) = decoded(&stamps["rfc3161Timestamps"][0]["signedTimestamp"]) else {
            return Ok(Err("its time stamp is missing or damaged".to_owned()));
        };
        if let Some(why) = time_stamp::verify(&signature, &stamp, trusted)? {
            return Ok(Err(format!("its time stamp is not valid: {why}")));
        }
    }
    let statement = serde_json::from_slice(&statement);
    Ok(statement.map_err(|error| format!("its statement is no JSON document: {error}")))
}

/// Makes sure that a file has a public key.
fn public(key: &Path) -> Result<()> {
    std::fs::File::open(key).map_err(Error::io("read", key))?;
    let mut command = Command::new("openssl");
    command.args(["pkey", "-pubin", "-noout", "-in"]).arg(key);
    let read = output(&mut command, &[])?;
    read.map(|_| ()).map_err(|_| {
        let key = key.display();
        Error::Tool(format!(
            "{key} is no public key (PEM): `openssl pkey -pubout` writes that of a private key"
        ))
    })
}

/// The bytes that are signed: DSSE's "pre-authentication encoding" of an in-toto statement.
fn signed_bytes(statement: &[u8]) -> Vec<u8> {
    let head = format!(
        "DSSEv1 {} {STATEMENT} {} ",
        STATEMENT.len(),
        statement.len()
    );
    [head.as_bytes(), statement].concat()
}

/// The name of the key for verifiers with several: the SHA-256 digest of its public part.
fn hint(key: &Path) -> Result<String> {
    let run = |command: &mut Command, input: &[u8]| -> Result<Vec<u8>> {
        let told = output(command, input)?;
        told.map_err(|why| failed(&format!("openssl cannot read {}", key.display()), &why))
    };
    let mut public = Command::new("openssl");
    public.args(["pkey", "-pubout", "-outform", "DER", "-in"]);
    let public = run(public.arg(key), &[])?;
    let digest = run(
        Command::new("openssl").args(["dgst", "-sha256", "-binary"]),
        &public,
    )?;
    match digest.is_empty() {
        true => Err(Error::Tool(format!("{} has no public part", key.display()))),
        false => Ok(BASE64.encode(&digest)),
    }
}
