//! Why a content is available nowhere, and the action that helps.
//!
//! The two are separate, so that no program decides by the words of a reason.

use std::fmt;

use crate::Result;
use crate::codec::{RecordReader, RecordWriter};

/// Why a content is available nowhere.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct MissingReason {
    /// The cause, in words for people: a sentence without the remedy.
    pub why: String,
    /// The action that helps.
    pub remedy: MissingRemedy,
}

/// The action that makes a content available, or the next content of its kind.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum MissingRemedy {
    /// No action is known to help.
    Unknown,
    /// The next run stores contents.
    StoreContents,
    /// The next run stores every version.
    StoreAll,
    /// Contents are stored now, and not in the background.
    StoreNow,
    /// A limit of the user's is raised.
    RaiseLimit,
    /// The store's disk gets free space.
    FreeSpace,
    /// The run with this id makes the content again.
    Replay(String),
}

impl MissingReason {
    /// A cause with its remedy.
    pub fn new(why: impl Into<String>, remedy: MissingRemedy) -> MissingReason {
        MissingReason {
            why: why.into(),
            remedy,
        }
    }

    /// The same with words after the cause.
    pub fn with(self, words: &str) -> MissingReason {
        MissingReason {
            why: format!("{}{words}", self.why),
            ..self
        }
    }

    /// Appends it to a record. A reason without a remedy has the form of earlier versions.
    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        if self.remedy == MissingRemedy::Unknown {
            out.push(2);
        } else {
            out.push(4);
            out.push(self.remedy.number());
            if let MissingRemedy::Replay(run) = &self.remedy {
                out.bytes(run.as_bytes());
            }
        }
        out.bytes(self.why.as_bytes());
    }

    /// Reads the remedy of a record, and then the cause.
    pub(super) fn decode(reader: &mut RecordReader<'_>) -> Result<MissingReason> {
        let remedy = match reader.byte()? {
            1 => MissingRemedy::StoreContents,
            2 => MissingRemedy::StoreAll,
            3 => MissingRemedy::StoreNow,
            4 => MissingRemedy::RaiseLimit,
            5 => MissingRemedy::FreeSpace,
            6 => MissingRemedy::Replay(super::record::text(reader)?),
            _ => return Err(reader.damaged()),
        };
        Ok(MissingReason {
            why: super::record::text(reader)?,
            remedy,
        })
    }
}

impl MissingRemedy {
    fn number(&self) -> u8 {
        match self {
            MissingRemedy::Unknown => 0,
            MissingRemedy::StoreContents => 1,
            MissingRemedy::StoreAll => 2,
            MissingRemedy::StoreNow => 3,
            MissingRemedy::RaiseLimit => 4,
            MissingRemedy::FreeSpace => 5,
            MissingRemedy::Replay(_) => 6,
        }
    }
}

/// The cause, then the remedy.
impl fmt::Display for MissingReason {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.why)?;
        match &self.remedy {
            MissingRemedy::Unknown => Ok(()),
            MissingRemedy::StoreContents => {
                out.write_str("; the next run can have --contents=lazy or =all")
            }
            MissingRemedy::StoreAll => {
                out.write_str("; `record --contents=all` stores every version before it changes")
            }
            MissingRemedy::StoreNow => out.write_str("; `backstory index --wait` stores it now"),
            MissingRemedy::RaiseLimit => {
                out.write_str("; `backstory config --help` says how to raise the limit")
            }
            MissingRemedy::FreeSpace => out.write_str("; `backstory store gc` frees space"),
            MissingRemedy::Replay(run) => write!(out, "; `backstory replay {run}` makes it again"),
        }
    }
}
