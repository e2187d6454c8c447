//! The result of a reconstruction.

use crate::divergence::Divergence;
use crate::sighting::Sighting;
use serde::{Deserialize, Serialize};

/// The result for one program in one process.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProcessVerdict {
    /// The recorded process id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// Recorded calls.
    pub recorded_calls: u64,
    /// Calls of the new execution that the record answered.
    pub matched: u64,
    /// Bytes that entered from the record.
    pub entered: u64,
    /// Bytes that left, and were compared.
    pub left: u64,
    /// Calls of the new execution that concern a resource, or make a process.
    pub came: u64,
    /// Of the bytes in `left`, those of which the log has the number only.
    pub counted: u64,
    /// The first difference.
    pub divergence: Option<Divergence>,
    /// Output differs before the part that is compared.
    #[serde(default)]
    pub differs_before: bool,
    /// The names of the volatile parts of its output that differ.
    #[serde(default)]
    pub volatile: Vec<String>,
    /// Why its log is not whole.
    pub gap: Option<String>,
}

/// How a reconstruction compares with the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Likeness {
    /// All outputs are equal, byte for byte.
    Equal,
    /// All differences are in volatile parts, which have names.
    EqualButVolatile,
    /// Something differs.
    Different,
}

/// The result for one request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RequestVerdict {
    /// Its number.
    pub number: usize,
    /// Further requests that were fed.
    pub fed: Vec<usize>,
    /// Calls from the first one on its connection to the end.
    pub calls: u64,
    /// Bytes on its connection that were compared.
    pub compared: u64,
    /// The position of the first difference in the answers to requests that were fed before it on
    /// its connection. They prepare it, and are no part of it.
    #[serde(default)]
    pub differs_before: Option<u64>,
    /// True if all of its recorded bytes went in and out.
    pub is_served: bool,
    /// True if the program took the time while it worked on it.
    pub took_time: bool,
    /// Added to the recorded time, in ns.
    pub shift: i64,
    /// Number of attempts, this one included.
    pub tries: u32,
}

/// The result of a reconstruction.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Reconstruction {
    /// By process, in the order of their beginning.
    pub processes: Vec<ProcessVerdict>,
    /// The wait status of the first process. `None`: it had to be killed.
    pub status: Option<i32>,
    /// Why the supervisor ended it.
    pub stopped: Option<String>,
    /// Recorded programs that were not started again.
    pub not_started: Vec<String>,
    /// Calls of the recorded run.
    pub recorded_calls: u64,
    /// The chosen request, if one was chosen.
    pub request: Option<RequestVerdict>,
    /// Files whose content is not the one that the recorded program read: the path, and the
    /// position of the first range that differs.
    #[serde(default)]
    pub other_files: Vec<(String, u64)>,
    /// Programs that ran again without a deep record: their calls were not compared.
    pub shallow: u64,
    /// The places of the text that was looked for, or the writes, in the order of the execution.
    #[serde(default)]
    pub sightings: Vec<Sighting>,
    /// Number of further ones, which are not in the list.
    #[serde(default)]
    pub more_sightings: u64,
    /// Bytes that left the first process through descriptor 1, up to a limit.
    #[serde(skip)]
    pub output: Vec<u8>,
}

impl Reconstruction {
    /// The comparison with the record.
    pub fn likeness(&self) -> Likeness {
        let mut all = self.processes.iter().filter_map(|p| p.divergence.as_ref());
        let unserved = self.request.as_ref().is_some_and(|r| !r.is_served);
        if unserved || self.stopped.is_some() || !self.not_started.is_empty() {
            return Likeness::Different;
        }
        match (
            all.clone().next(),
            all.all(|divergence| divergence.volatile.is_some()),
        ) {
            (None, _) => Likeness::Equal,
            (Some(_), true) => Likeness::EqualButVolatile,
            (Some(_), false) => Likeness::Different,
        }
    }

    /// The first difference, in the order of the processes.
    pub fn first_difference(&self) -> Option<&Divergence> {
        self.processes.iter().find_map(|p| p.divergence.as_ref())
    }

    /// The names of all volatile parts that differ, each once.
    pub fn volatile_parts(&self) -> Vec<&str> {
        let mut all: Vec<&str> = Vec::new();
        for name in self.processes.iter().flat_map(|p| &p.volatile) {
            if !all.contains(&name.as_str()) {
                all.push(name);
            }
        }
        all
    }

    /// Calls of the new execution.
    pub fn calls(&self) -> u64 {
        self.processes.iter().map(|process| process.came).sum()
    }

    /// Bytes that were compared.
    pub fn compared(&self) -> u64 {
        self.processes.iter().map(|process| process.left).sum()
    }
}
