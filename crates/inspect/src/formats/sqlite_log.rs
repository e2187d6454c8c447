//! Write-ahead logs of SQLite: the transactions that are in it, and the pages that each one wrote.
//!
//! ```text
//! head  := magic, version, page size, number of the checkpoint, 2 salts, 2 sums   (4 bytes each)
//! frame := page, pages of the database after a commit or 0, 2 salts, 2 sums, the page's content
//! ```
//!
//! A frame counts if its salts are those of the head and its sums are right. The frames after the
//! last commit belong to a transaction that was not finished. Frames with other salts are of before
//! the last checkpoint.
//!
//! Source: <https://www.sqlite.org/fileformat2.html>, section 4.

use serde_json::json;

use crate::{FileFacts, Inspector, NamedContent, Read, UnreadableContent};

pub struct SqliteLog;

const HEAD: usize = 32;
const FRAME_HEAD: usize = 24;
/// The magic number of a log whose sums are of little-endian numbers. The last bit says big-endian.
const MAGIC: u32 = 0x377f_0682;
const VERSION: u32 = 3_007_000;

/// The two running sums of a log.
#[derive(Clone, Copy, PartialEq, Eq)]
struct RunningSums(u32, u32);

impl RunningSums {
    fn add(&mut self, bytes: &[u8], is_big: bool) {
        let number = |four: &[u8]| {
            let four = four.first_chunk().copied().unwrap_or_default();
            match is_big {
                true => u32::from_be_bytes(four),
                false => u32::from_le_bytes(four),
            }
        };
        for pair in bytes.chunks_exact(8) {
            self.0 = self.0.wrapping_add(number(pair)).wrapping_add(self.1);
            self.1 = self.1.wrapping_add(number(&pair[4..])).wrapping_add(self.0);
        }
    }
}

fn number(bytes: &[u8], at: usize) -> u32 {
    let four = bytes.get(at..).and_then(<[u8]>::first_chunk);
    four.copied().map_or(0, u32::from_be_bytes)
}

/// A log, with the frames of it that count.
pub struct LogFrames<'l> {
    /// Bytes of a page.
    pub page_size: usize,
    /// How often the log was written anew from its beginning.
    pub checkpoint: u32,
    /// The two numbers that are in each frame of this writing.
    pub salts: &'l [u8],
    /// The frames, in order.
    pub frames: Vec<LogFrame<'l>>,
    /// The number of frames behind them that do not count: of before the last checkpoint, or
    /// damaged.
    pub others: usize,
    /// The log ends within a frame.
    pub is_torn: bool,
}

/// A page that a transaction wrote.
pub struct LogFrame<'l> {
    /// The page's number, from 1.
    pub page: u32,
    /// The pages of the database after the transaction, if this is its last frame.
    pub commits: Option<u32>,
    /// The page's content.
    pub content: &'l [u8],
}

impl<'l> LogFrames<'l> {
    /// Reads a log.
    pub fn read(bytes: &'l [u8]) -> Read<LogFrames<'l>> {
        let refused = |why: &str| Err(UnreadableContent(why.to_owned()));
        let magic = number(bytes, 0);
        let size = number(bytes, 8) as usize;
        if bytes.len() < HEAD || magic & !1 != MAGIC {
            return refused("it is no write-ahead log of SQLite");
        }
        if number(bytes, 4) != VERSION {
            return refused("it is a write-ahead log of another version");
        }
        if !size.is_power_of_two() || !(512..=65536).contains(&size) {
            return refused("its page size is not possible");
        }
        let is_big = magic & 1 == 1;
        let mut sums = RunningSums(0, 0);
        sums.add(&bytes[..24], is_big);
        if sums != RunningSums(number(bytes, 24), number(bytes, 28)) {
            return refused("the sums of its head are wrong");
        }
        let all = bytes[HEAD..].chunks_exact(FRAME_HEAD + size);
        let is_torn = !all.remainder().is_empty();
        let places = all.len();
        let mut frames = Vec::new();
        for frame in all {
            sums.add(&frame[..8], is_big);
            sums.add(&frame[FRAME_HEAD..], is_big);
            let is_right = sums == RunningSums(number(frame, 16), number(frame, 20));
            if frame[8..16] != bytes[16..24] || !is_right {
                break;
            }
            let after = number(frame, 4);
            frames.push(LogFrame {
                page: number(frame, 0),
                commits: (after != 0).then_some(after),
                content: &frame[FRAME_HEAD..],
            });
        }
        Ok(LogFrames {
            page_size: size,
            checkpoint: number(bytes, 12),
            salts: &bytes[16..24],
            others: places - frames.len(),
            frames,
            is_torn,
        })
    }
}

impl Inspector for SqliteLog {
    fn facts(&self, content: NamedContent<'_>) -> Read<FileFacts> {
        let log = LogFrames::read(content.bytes)?;
        let mut transactions = Vec::new();
        let mut pages = Vec::new();
        for frame in &log.frames {
            pages.push(frame.page);
            if let Some(after) = frame.commits {
                pages.sort_unstable();
                pages.dedup();
                let name = (transactions.len() + 1).to_string();
                let told = json!({"pages": listed(&pages), "pages_of_database": after});
                transactions.push((name, told));
                pages.clear();
            }
        }
        let mut facts = FileFacts::default();
        facts.value("page_size", log.page_size);
        facts.value("checkpoint", log.checkpoint);
        facts.value("frames", log.frames.len());
        if !pages.is_empty() {
            facts.value("frames_without_commit", pages.len());
        }
        if log.others > 0 {
            facts.value("frames_of_before", log.others);
        }
        facts.positions(("transaction", "transactions"), transactions);
        Ok(facts)
    }
}

/// The numbers of pages, with ranges: `1, 4-7`.
fn listed(pages: &[u32]) -> String {
    let mut ranges: Vec<(u32, u32)> = Vec::new();
    for &page in pages {
        match ranges.last_mut() {
            Some((_, last)) if last.checked_add(1) == Some(page) => *last = page,
            _ => ranges.push((page, page)),
        }
    }
    let shown = ranges.iter().map(|(first, last)| match first == last {
        true => first.to_string(),
        false => format!("{first}-{last}"),
    });
    shown.collect::<Vec<_>>().join(", ")
}
