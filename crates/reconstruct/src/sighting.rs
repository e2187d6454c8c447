//! The search for a text, or for writes to a descriptor, while a program runs again.
//!
//! In: the bytes that enter and leave by each call. Out: the places of the text in the stream of
//! each resource. A text that several calls moved is found. Memory: for each stream as many bytes
//! as the text has, and [`MOST`] places.

use crate::file_writes::FileWrites;
use crate::resource::ResourceId;
use backstory_deep::StreamTail;
use memchr::memmem::Finder;
use serde::{Deserialize, Serialize};
use std::collections::HashMap;

/// Most places that are kept. Further ones are counted.
pub const MOST: usize = 1000;
/// Most bytes of a place that are shown, from the text on.
const SHOWN: usize = 48;

/// The bytes that are sought.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Wanted {
    /// This text. `None`: all bytes that leave.
    pub text: Option<Vec<u8>>,
    /// Only bytes that leave through this descriptor number, file or address.
    pub to: Option<String>,
}

/// Whether bytes entered the program or left it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// They entered.
    Received,
    /// They left.
    Sent,
}

/// A call that moves bytes.
#[derive(Debug, Clone)]
pub struct Movement<'m> {
    /// The program in its process, as an index.
    pub process: usize,
    /// The resource. `None`: a file of the root, which the kernel reads and writes.
    pub resource: Option<ResourceId>,
    /// The descriptor.
    pub fd: i32,
    /// The resource in words.
    pub object: String,
    /// Whether the bytes entered or left.
    pub direction: Direction,
    /// Position of the first byte in the stream or file. `None`: not known.
    pub position: Option<u64>,
    /// Time-stamp counter of the recorded call.
    pub counter: u64,
    /// The bytes.
    pub bytes: &'m [u8],
}

/// A place where the text was found, or a write.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sighting {
    /// The program in its process, as an index of the recorded processes.
    pub process: usize,
    /// The recorded process id.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The number of the request that the process worked on, from 1.
    pub request: Option<usize>,
    /// Whether the bytes entered or left.
    pub direction: Direction,
    /// The descriptor.
    pub fd: i32,
    /// The resource in words.
    pub object: String,
    /// Position of the text in the stream or file. `None`: not known.
    pub position: Option<u64>,
    /// Time-stamp counter of the recorded call.
    pub counter: u64,
    /// The bytes from there on, a few.
    pub bytes: Vec<u8>,
}

/// A stream: process, descriptor or resource, direction.
type StreamKey = (usize, Result<ResourceId, i32>, Direction);

/// A stream as far as it was seen: its last bytes and the position behind them.
#[derive(Debug, Default)]
struct SeenStream {
    tail: StreamTail,
    end: Option<u64>,
}

/// The search, as far as the execution has come.
#[derive(Debug)]
pub struct SightingSearch {
    finder: Option<Finder<'static>>,
    to: Option<String>,
    streams: HashMap<StreamKey, SeenStream>,
    /// The recorded writes to files of the root.
    pub(crate) file_writes: FileWrites,
}

impl SightingSearch {
    /// A search that has seen nothing.
    pub fn new(wanted: &Wanted) -> SightingSearch {
        let text = wanted.text.as_ref().filter(|text| !text.is_empty());
        SightingSearch {
            finder: text.map(|text| Finder::new(text).into_owned()),
            to: wanted.to.clone(),
            streams: HashMap::new(),
            file_writes: FileWrites::default(),
        }
    }

    /// The positions in the bytes of a call where something sought begins. A negative one lies in
    /// an earlier call of the stream.
    pub fn look(&mut self, moved: &Movement<'_>) -> Vec<i64> {
        if !self.concerns(moved) || moved.bytes.is_empty() {
            return Vec::new();
        }
        let Some(finder) = &self.finder else {
            return match moved.direction {
                Direction::Sent => vec![0],
                Direction::Received => Vec::new(),
            };
        };
        let key = (
            moved.process,
            moved.resource.ok_or(moved.fd),
            moved.direction,
        );
        let stream = self.streams.entry(key).or_default();
        // The call is on another part of the file, or on another file.
        if stream.end != moved.position {
            stream.tail.clear();
        }
        stream.end = moved.position.map(|at| at + moved.bytes.len() as u64);
        let mut found = stream.tail.take(moved.bytes, finder);
        found.extend(finder.find_iter(moved.bytes).map(|at| at as i64));
        found
    }

    fn concerns(&self, moved: &Movement<'_>) -> bool {
        let Some(to) = &self.to else { return true };
        moved.direction == Direction::Sent
            && match to.parse::<i32>() {
                Ok(fd) => fd == moved.fd,
                Err(_) => is_named(&moved.object, to),
            }
    }
}

/// True if the words of a resource end with this file or address.
fn is_named(object: &str, name: &str) -> bool {
    let before = object.strip_suffix(name);
    before.is_some_and(|before| before.is_empty() || before.ends_with(['/', ' ', ':', '[']))
}

/// The few bytes of a call that a report shows, from a position on.
pub fn excerpt(bytes: &[u8], at: i64) -> Vec<u8> {
    let from = usize::try_from(at).unwrap_or(0).min(bytes.len());
    bytes[from..].iter().copied().take(SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::{Direction, Movement, SightingSearch, Wanted};

    fn moved<'m>(fd: i32, direction: Direction, bytes: &'m [u8]) -> Movement<'m> {
        Movement {
            process: 0,
            resource: None,
            fd,
            object: "/srv/up/x.txt".to_owned(),
            direction,
            position: None,
            counter: 0,
            bytes,
        }
    }

    fn search(text: Option<&str>, to: Option<&str>) -> SightingSearch {
        SightingSearch::new(&Wanted {
            text: text.map(|text| text.as_bytes().to_vec()),
            to: to.map(str::to_owned),
        })
    }

    #[test]
    fn a_text_is_found_in_a_call_and_across_calls_of_its_stream_alone() {
        let mut all = search(Some("secret"), None);
        let (sent, received) = (Direction::Sent, Direction::Received);
        assert_eq!(all.look(&moved(3, sent, b"a secret, a secret")), [2, 12]);
        assert!(all.look(&moved(3, sent, b"sec")).is_empty());
        assert!(all.look(&moved(4, sent, b"ret")).is_empty());
        assert!(all.look(&moved(3, received, b"ret")).is_empty());
        assert_eq!(all.look(&moved(3, sent, b"ret")), [-3]);
        let other_part = Movement {
            position: Some(100),
            ..moved(6, sent, b"ret")
        };
        assert!(all.look(&moved(6, sent, b"sec")).is_empty());
        assert!(all.look(&other_part).is_empty());
        for byte in b"secre" {
            assert!(all.look(&moved(5, received, &[*byte])).is_empty());
        }
        assert_eq!(all.look(&moved(5, received, b"t and more")), [-5]);
    }

    #[test]
    fn a_text_that_overlaps_itself_is_found_once_at_each_place() {
        let mut all = search(Some("aa"), None);
        assert_eq!(all.look(&moved(1, Direction::Sent, b"aaaa")), [0, 2]);
        assert!(all.look(&moved(2, Direction::Sent, b"a")).is_empty());
        assert_eq!(all.look(&moved(2, Direction::Sent, b"ab")), [-1]);
    }

    #[test]
    fn writes_are_chosen_by_descriptor_or_by_the_end_of_a_name() {
        let write = |to: &str| search(None, Some(to)).look(&moved(3, Direction::Sent, b"x"));
        assert_eq!(
            [write("3"), write("x.txt"), write("up/x.txt")],
            [[0], [0], [0]]
        );
        assert!(write("4").is_empty() && write("txt").is_empty());
        let mut read = search(None, Some("3"));
        assert!(read.look(&moved(3, Direction::Received, b"x")).is_empty());
    }
}
