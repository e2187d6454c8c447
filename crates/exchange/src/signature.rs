//! Signatures of runs and of seals, made and verified by `ssh-keygen -Y`.
//!
//! The signature of a run covers the run's id, the digest of its log, and the digests of its files.
//! It does not cover annotations, which every user of a store may add. `DIR/runs/ID.sig` has the
//! signatures of a run, one after the other, in the armored form of OpenSSH.
//!
//! ```text
//! backstory run
//! id 7hx2k9qa
//! log BLAKE3 of the log
//! files BLAKE3 of the sorted lines "device inode size mtime birth digest"
//! ```

use backstory_ordering::SmallSort;
use sha2::Digest as _;
use std::fs;
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::Command;

use backstory_files::{Digest, regular};
use backstory_store::Home;
use backstory_store::facts::JournalRecord;

use crate::program_run;
use crate::temporary_file::TemporaryFile;
use crate::{Error, Result};

/// The namespace of the signatures (`ssh-keygen -n`).
const NAMESPACE: &str = "backstory";
/// Most signatures of a run.
const MOST: usize = 16;
/// Longest signatures of a run together, in bytes.
pub const LONGEST: u64 = 1 << 16;

const BEGIN: &str = "-----BEGIN SSH SIGNATURE-----";
const END: &str = "-----END SSH SIGNATURE-----";

/// The text that is signed.
pub fn statement(run: &str, log: &Digest, learned: &[JournalRecord]) -> String {
    let mut files: Vec<String> = learned
        .iter()
        .filter_map(|record| match record {
            JournalRecord::Fact(fact) => {
                let (ident, digest) = (&fact.ident, fact.digest?);
                Some(format!(
                    "{} {} {} {} {} {digest}\n",
                    ident.dev, ident.ino, ident.size, ident.mtime, ident.birth
                ))
            }
            _ => None,
        })
        .collect();
    files.sort_small();
    files.dedup();
    let mut hash = blake3::Hasher::new();
    files.iter().for_each(|line| {
        hash.update(line.as_bytes());
    });
    let files = Digest(*hash.finalize().as_bytes());
    format!("backstory run\nid {run}\nlog {log}\nfiles {files}\n")
}

/// The path of the signatures of a run.
pub fn path(home: &Home, run: &str) -> PathBuf {
    home.runs_dir().join(format!("{run}.sig"))
}

/// The signatures of a run. Empty if it has none.
pub fn of_run(home: &Home, run: &str) -> Vec<String> {
    let mut text = Vec::new();
    if let Ok(file) = regular::open(path(home, run)) {
        let _ = file.take(LONGEST).read_to_end(&mut text);
    }
    blocks(&text)
}

/// The signatures in a text, each with its first and last line.
pub fn blocks(text: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(text);
    let mut found: Vec<String> = text
        .split(BEGIN)
        .skip(1)
        .filter_map(|rest| Some(format!("{BEGIN}{}{END}\n", rest.split_once(END)?.0)))
        .filter(|block| block.is_ascii())
        .collect();
    found.sort_small();
    found.dedup();
    found.truncate(MOST);
    found
}

/// Adds signatures to those of a run. Returns whether one is new.
pub fn add(home: &Home, run: &str, new: Vec<String>) -> Result<bool> {
    let mut all = of_run(home, run);
    let before = all.len();
    for block in new {
        let length: usize = all.iter().map(String::len).sum();
        let fits = all.len() < MOST && length + block.len() <= LONGEST as usize;
        if fits && !all.contains(&block) {
            all.push(block);
        }
    }
    if all.len() == before {
        return Ok(false);
    }
    all.sort_small();
    let mut beside = TemporaryFile::new(home)?;
    let written = beside.file.write_all(all.concat().as_bytes());
    written.map_err(Error::io("write", &beside.path))?;
    beside.rename(&path(home, run))?;
    Ok(true)
}

/// Signs a statement with a key: a private key, or a public one whose private key an agent has.
pub fn sign(key: &Path, statement: &str) -> Result<String> {
    let mut command = Command::new("ssh-keygen");
    command
        .args(["-q", "-Y", "sign", "-n", NAMESPACE, "-f"])
        .arg(key);
    let (status, out, err) = run(command, statement)?;
    let signed = blocks(&out).pop();
    match signed.filter(|_| status) {
        Some(block) => Ok(block),
        None => Err(Error::Signature(format!(
            "ssh-keygen cannot sign with {}: {}",
            key.display(),
            String::from_utf8_lossy(&err).trim()
        ))),
    }
}

/// The public key of a signature, in the form of `sshsig` (PROTOCOL.sshsig of OpenSSH).
pub fn public_key(signature: &str) -> Option<Vec<u8>> {
    let text: String = signature
        .strip_prefix(BEGIN)?
        .split_once(END)?
        .0
        .split_whitespace()
        .collect();
    let bytes = data_encoding::BASE64.decode(text.as_bytes()).ok()?;
    // "SSHSIG", a version, then the key with its length before it.
    let rest = bytes.strip_prefix(b"SSHSIG")?.get(4..)?;
    let (length, rest) = rest.split_at_checked(4)?;
    let length = u32::from_be_bytes(length.try_into().ok()?) as usize;
    Some(rest.get(..length)?.to_vec())
}

/// The fingerprint of a key file, as `ssh-keygen -l` prints it: `SHA256:…`.
pub fn fingerprint_of_key(key: &Path) -> Result<String> {
    let mut command = Command::new("ssh-keygen");
    command.args(["-l", "-E", "sha256", "-f"]).arg(key);
    let (status, out, err) = run(command, "")?;
    let line = String::from_utf8_lossy(&out).into_owned();
    let word = line.split(' ').nth(1).filter(|_| status);
    word.map(str::to_owned).ok_or_else(|| {
        Error::Signature(format!(
            "ssh-keygen finds no key in {}: {}",
            key.display(),
            String::from_utf8_lossy(&err).trim()
        ))
    })
}

/// The fingerprint of the key that made a signature, if the signature is of this statement. It does
/// not tell whose key that is.
pub fn fingerprint_of_signer(statement: &str, signature: &str) -> Result<Option<String>> {
    let file = signature_file(signature)?;
    let mut command = Command::new("ssh-keygen");
    command.args(["-Y", "check-novalidate", "-n", NAMESPACE, "-s"]);
    command.arg(file.path());
    let (status, ..) = run(command, statement)?;
    let key = public_key(signature).filter(|_| status);
    Ok(key.map(|key| {
        let digest = sha2::Sha256::digest(key);
        format!("SHA256:{}", data_encoding::BASE64_NOPAD.encode(&digest))
    }))
}

/// A signature in a file, for `ssh-keygen -s`.
fn signature_file(signature: &str) -> Result<tempfile::NamedTempFile> {
    let mut file = tempfile::NamedTempFile::new()
        .map_err(Error::io("create a file in", &std::env::temp_dir()))?;
    let written = file.write_all(signature.as_bytes());
    written.map_err(Error::io("write", file.path()))?;
    Ok(file)
}

/// The signers whose runs are accepted.
#[derive(Debug)]
pub struct AllowedSigners {
    file: PathBuf,
}

impl AllowedSigners {
    /// Reads a file in the form that `ssh-keygen(1)` describes under ALLOWED SIGNERS.
    pub fn open(file: &Path) -> Result<AllowedSigners> {
        fs::metadata(file).map_err(Error::io("read", file))?;
        Ok(AllowedSigners {
            file: file.to_owned(),
        })
    }

    /// The signer of a statement, if one of the signatures is of an allowed signer.
    pub fn signer(&self, statement: &str, signatures: &[String]) -> Result<Option<String>> {
        for signature in signatures {
            let file = signature_file(signature)?;
            let keygen = |operation: &str| {
                let mut command = Command::new("ssh-keygen");
                command.args(["-Y", operation, "-f"]).arg(&self.file);
                command.arg("-s").arg(file.path());
                command
            };
            let (known, names, _) = run(keygen("find-principals"), "")?;
            let names = String::from_utf8_lossy(&names).into_owned();
            for name in names.lines().filter(|name| known && !name.starts_with('-')) {
                let mut verify = keygen("verify");
                verify.args(["-n", NAMESPACE, "-I", name]);
                if run(verify, statement)?.0 {
                    return Ok(Some(name.to_owned()));
                }
            }
        }
        Ok(None)
    }
}

/// Runs `ssh-keygen` with an input. Returns whether it succeeded, and its outputs.
fn run(mut command: Command, input: &str) -> Result<(bool, Vec<u8>, Vec<u8>)> {
    let output = program_run::with_input(&mut command, input.as_bytes()).map_err(|error| {
        Error::Signature(format!(
            "cannot run ssh-keygen, which signs and verifies runs: {error}"
        ))
    })?;
    Ok((output.status.success(), output.stdout, output.stderr))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signatures_of_a_run_are_a_bounded_set() {
        let tmp = tempfile::tempdir().unwrap();
        let home = Home::open(tmp.path()).unwrap();
        let block = |n: usize| format!("{BEGIN}\nabc{n}\n{END}\n");
        assert!(add(&home, "aaaa0000", vec![block(1), block(2)]).unwrap());
        assert!(!add(&home, "aaaa0000", vec![block(2)]).unwrap());
        assert!(add(&home, "aaaa0000", (0..40).map(block).collect()).unwrap());
        let all = of_run(&home, "aaaa0000");
        assert_eq!(all.len(), MOST);
        assert!(all.contains(&block(1)) && all.contains(&block(2)));
        assert_eq!(
            blocks(b"-----BEGIN SSH SIGNATURE-----\nno end"),
            Vec::<String>::new()
        );
    }
}
