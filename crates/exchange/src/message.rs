//! Requests and replies, in JSON.

use backstory_files::Digest;
use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// Most runs in a reply, and most digests in a request or reply.
pub const PAGE: usize = 1000;

/// A run that a store has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RunEntry {
    /// Its id.
    pub run: String,
    /// BLAKE3 of its log, 64 hexadecimal digits.
    pub digest: String,
    /// Bytes of its log.
    pub bytes: u64,
    /// A digest of its annotations with their history. Empty if it has none.
    #[serde(default)]
    pub annotations: String,
    /// A digest of its signatures. Empty if it has none.
    #[serde(default)]
    pub signatures: String,
}

/// A request of the side that the user started.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "request", rename_all = "snake_case")]
pub enum Request {
    /// The first request.
    Hello {
        /// `backstory --version`
        program: String,
        /// Options of `log` that select the runs to offer.
        #[serde(default)]
        select: Vec<String>,
    },
    /// The runs behind this one, in the order of their ids.
    Runs { after: Option<String> },
    /// The stored contents of a run behind this one, in the order of their digests.
    ContentsOf { run: String, after: Option<String> },
    /// Those of these contents that the store does not have.
    Lacking { digests: Vec<String> },
    /// An archive with a run, without contents.
    ReadRun { run: String },
    /// An archive with contents.
    ReadContents { digests: Vec<String> },
    /// An archive with the annotations and signatures of runs.
    ReadAnnotations { runs: Vec<String> },
    /// An archive follows, to be added to the store.
    Accept,
    /// Nothing more follows: the store brings its database up to date.
    Finish,
}

/// A reply.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "reply", rename_all = "snake_case")]
pub enum Reply {
    Hello {
        program: String,
    },
    Runs {
        runs: Vec<RunEntry>,
    },
    Contents {
        contents: Vec<(String, u64)>,
    },
    Lacking {
        digests: Vec<String>,
    },
    /// An archive follows.
    Archive,
    Accepted {
        added: Vec<String>,
        known: Vec<String>,
        lacking: Vec<String>,
        annotations: u64,
    },
    Finished {
        problems: Vec<String>,
    },
    Failed {
        message: String,
    },
}

/// Digests as a message has them.
pub fn texts(digests: &[Digest]) -> Vec<String> {
    digests.iter().map(Digest::to_string).collect()
}

/// Digests of a message.
pub fn digests(texts: &[String]) -> Result<Vec<Digest>> {
    if texts.len() > PAGE {
        return Err(Error::Protocol(format!(
            "{} digests are more than {PAGE}",
            texts.len()
        )));
    }
    texts.iter().map(|text| digest(text)).collect()
}

/// A digest of a message.
pub fn digest(text: &str) -> Result<Digest> {
    text.parse()
        .map_err(|_| Error::Protocol("a digest is not 64 hexadecimal digits".to_owned()))
}

/// Checks the id of a run in a message.
pub fn check_run(run: &str) -> Result<()> {
    match backstory_store::is_run_id(run) {
        true => Ok(()),
        false => Err(Error::Protocol(format!(
            "'{}' cannot be the id of a run",
            shortened(run, 40).escape_default()
        ))),
    }
}

/// A digest that tells two texts apart, of 16 hexadecimal digits. Empty for no text.
pub fn short_digest(text: &str) -> String {
    match text.is_empty() {
        true => String::new(),
        false => blake3::hash(text.as_bytes()).to_hex()[..16].to_owned(),
    }
}

/// The beginning of a text, of at most `most` bytes.
pub fn shortened(text: &str, most: usize) -> &str {
    let mut end = most.min(text.len());
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}
