//! Seals that travel in an exported document, and their verification there.
//!
//! ```text
//! {"version": 1, "seals": [{"statement": TEXT, "signature": TEXT or null, "time_stamp": BASE64 or
//!  null, "items": [LINE …], "facts": [TEXT …]}]}
//! ```
//!
//! The proof of a content's digest has three steps. The signature covers the statement. The
//! statement has the digest of the list of items. The list has the digest of the fact, whose text
//! has the digest of the content.
//!
//! Invariant: a digest counts as proven only if all three steps hold.
//!
//! Absent: the chain. A document has the seals of its runs, and no seal between them.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use backstory_exchange::signature;
use backstory_store::{Home, RunRecord, Store};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::chain::Chain;
use crate::examine::Trust;
use crate::items::{self, Journals};
use crate::seal::Seal;
use crate::statement::{Statement, Subject};
use crate::{Error, Result, parts, time_stamp};

/// The kinds of digests that no seal covers: the name of the member, and the usual name.
const UNSEALED: [(&str, &str); 5] = [
    ("md5", "MD5"),
    ("sha1", "SHA-1"),
    ("sha256", "SHA-256"),
    ("sha384", "SHA-384"),
    ("sha512", "SHA-512"),
];

/// The name of the member that has the proof, in every JSON document.
pub const MEMBER: &str = "backstory_evidence";

/// The seals of a document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Proof {
    /// The version of this form: 1.
    pub version: u32,
    /// One seal for each run that is sealed.
    pub seals: Vec<ProvenRun>,
}

/// A seal, with what it covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProvenRun {
    /// The text of the statement.
    pub statement: String,
    /// The signature, in the armored form of OpenSSH.
    pub signature: Option<String>,
    /// The time stamp of RFC 3161, in base 64.
    pub time_stamp: Option<String>,
    /// The lines of the list of items.
    pub items: Vec<String>,
    /// The texts of the facts.
    pub facts: Vec<String>,
}

impl Proof {
    /// The proof for these runs. `None` if none of them is sealed.
    pub fn of(home: &Home, store: &dyn Store, runs: &[RunRecord]) -> Result<Option<Proof>> {
        let chain = Chain::of(home);
        let paths = chain.paths()?;
        let mut seals = Vec::new();
        let mut journals = None;
        for run in runs {
            let Some(seal) = seal_of(&chain, &paths, &run.header.id)? else {
                continue;
            };
            if journals.is_none() {
                journals = Some(Journals::read(home)?);
            }
            let Some(journals) = &journals else { continue };
            let items = items::of_run(home, store, run, journals)?;
            let encode = |stamp: &Vec<u8>| data_encoding::BASE64.encode(stamp);
            seals.push(ProvenRun {
                statement: seal.statement.text(),
                signature: seal.signature.clone(),
                time_stamp: seal.stamp.as_ref().map(encode),
                items: seal.items().unwrap_or_default(),
                facts: items.into_iter().filter_map(|item| item.fact).collect(),
            });
        }
        Ok((!seals.is_empty()).then_some(Proof { version: 1, seals }))
    }

    /// Finds the proof in a document: a member [`MEMBER`], at any depth.
    pub fn find(document: &Value) -> Option<std::result::Result<Proof, serde_json::Error>> {
        match document {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let here = name == MEMBER || name.ends_with(&format!(":{MEMBER}"));
                match (here, value) {
                    (true, Value::String(text)) => Some(serde_json::from_str(text)),
                    (true, value) => Some(serde_json::from_value(value.clone())),
                    (false, value) => Proof::find(value),
                }
            }),
            Value::Array(list) => list.iter().find_map(Proof::find),
            _ => None,
        }
    }
}

/// The last seal of a run. `None` if the run is not sealed.
fn seal_of(chain: &Chain, paths: &[(u64, String, PathBuf)], run: &str) -> Result<Option<Seal>> {
    for (_, sealed, path) in paths.iter().rev() {
        if sealed == run {
            let seal = chain.seal(path)?;
            match seal.statement.subject {
                Subject::Run(_) => return Ok(Some(seal)),
                Subject::Removed => return Ok(None),
                Subject::Forgot(_) => {}
            }
        }
    }
    Ok(None)
}

/// The verdict on a document.
#[derive(Debug, Default)]
pub struct DocumentVerdict {
    /// The runs with a valid seal.
    pub runs: Vec<String>,
    /// The mistakes.
    pub faults: Vec<String>,
    /// The digests of the document that a seal proves.
    pub proven: usize,
}

/// Verifies a document with a proof. `document` is without digests if `digests` lists them.
///
/// Errors: if a program that verifies cannot be started.
pub fn verify(document: &Value, proof: &Proof, trust: &Trust) -> Result<DocumentVerdict> {
    let mut verdict = DocumentVerdict::default();
    let mut proven = BTreeSet::new();
    for seal in &proof.seals {
        let statement = match Statement::parse(&seal.statement) {
            Ok(statement) => statement,
            Err(what) => {
                verdict.faults.push(format!("a seal is damaged: {what}"));
                continue;
            }
        };
        match wrong(seal, &statement, trust)? {
            Some(what) => verdict
                .faults
                .push(format!("run {}: {what}", statement.run)),
            None => {
                proven.extend(proven_digests(seal));
                verdict.runs.push(statement.run);
            }
        }
    }
    let mut claimed = BTreeSet::new();
    collect_digests(document, "blake3", &mut claimed);
    for digest in claimed {
        match proven.contains(&digest) {
            true => verdict.proven += 1,
            false => verdict
                .faults
                .push(format!("content {digest}: no valid seal covers it")),
        }
    }
    Ok(verdict)
}

/// The mistake in a seal of a document.
fn wrong(seal: &ProvenRun, statement: &Statement, trust: &Trust) -> Result<Option<String>> {
    let Subject::Run(parts) = &statement.subject else {
        return Ok(Some("its seal is a note about a removal".to_owned()));
    };
    let list = items::digest_of_list(seal.items.iter().map(String::as_str));
    if parts.last().copied().flatten() != Some(list) {
        return Ok(Some("the list of items is not the sealed one".to_owned()));
    }
    match (&statement.key, &seal.signature) {
        (None, None) if trust.signers.is_none() => {}
        (Some(key), Some(signature)) => {
            let text = &seal.statement;
            if signature::fingerprint_of_signer(text, signature)?.as_ref() != Some(key) {
                return Ok(Some("its signature is not valid".to_owned()));
            }
            let blocks = [signature.clone()];
            if let Some(signers) = &trust.signers
                && signers.signer(text, &blocks)?.is_none()
            {
                return Ok(Some("its signature is of no allowed signer".to_owned()));
            }
        }
        _ => return Ok(Some("its signature is missing".to_owned())),
    }
    let Some(trusted) = &trust.authorities else {
        return Ok(None);
    };
    let stamp = seal.time_stamp.as_deref().map(str::as_bytes);
    let stamp = stamp.map(|stamp| data_encoding::BASE64.decode(stamp));
    match (&statement.tsa, stamp) {
        (Some(_), Some(Ok(stamp))) => {
            let why = time_stamp::verify(seal.statement.as_bytes(), &stamp, trusted)?;
            Ok(why.map(|why| format!("its time stamp is not valid: {why}")))
        }
        _ => Ok(Some("its time stamp is missing or damaged".to_owned())),
    }
}

/// The digests of contents whose facts are in the list of items.
fn proven_digests(seal: &ProvenRun) -> BTreeSet<String> {
    let sealed: BTreeSet<&str> = seal
        .items
        .iter()
        .filter_map(|line| line.split_once(' '))
        .filter(|(word, _)| matches!(*word, "stored" | "known"))
        .map(|(_, digest)| digest)
        .collect();
    let facts = seal.facts.iter();
    let proven = facts.filter(|text| {
        let digest = items::item_digest(text.as_bytes()).to_string();
        sealed.contains(digest.as_str())
    });
    proven
        .filter_map(|text| text.split(' ').nth(6).map(str::to_owned))
        .collect()
}

/// Digests of one kind that no seal covers, so that nothing checks them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct UnsealedDigests {
    /// The name of their member in the document.
    pub member: &'static str,
    /// The usual name of the kind.
    pub kind: &'static str,
    /// How many different ones the document has.
    pub count: usize,
}

/// The digests of a document that no seal covers, by their kind.
pub fn unsealed_digests(document: &Value) -> Vec<UnsealedDigests> {
    let of_kind = |(member, kind)| {
        let mut found = BTreeSet::new();
        collect_digests(document, member, &mut found);
        UnsealedDigests {
            member,
            kind,
            count: found.len(),
        }
    };
    let mut all: Vec<UnsealedDigests> = UNSEALED.into_iter().map(of_kind).collect();
    all.retain(|one| one.count > 0);
    all
}

/// The digests of one kind in a document: members of this name, also behind a prefix and a colon.
fn collect_digests(value: &Value, kind: &str, found: &mut BTreeSet<String>) {
    let is_it = |name: &str| name.rsplit(':').next() == Some(kind);
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str() {
                    Some(digest) if is_it(name) => {
                        found.insert(digest.to_owned());
                    }
                    _ => collect_digests(value, kind, found),
                }
            }
        }
        Value::Array(list) => {
            for one in list {
                collect_digests(one, kind, found);
            }
        }
        _ => {}
    }
}

/// Reads the document in a file.
pub fn read_document(path: &Path) -> Result<Value> {
    let bytes = backstory_files::regular::read(path).map_err(Error::io("read", path))?;
    serde_json::from_slice(&bytes)
        .map_err(|error| Error::damaged(path, format!("it is no JSON document: {error}")))
}

/// The digests of all files below a directory, as a part of a document.
pub fn digests_below(top: &Path) -> Result<Value> {
    let mut list = Vec::new();
    for path in parts::files_below(top)? {
        if let Some(digest) = parts::of_file(&path)? {
            list.push(serde_json::json!({"blake3": digest.to_string()}));
        }
    }
    Ok(Value::Array(list))
}
