//! Damaged files: the worker answers, or says why not, and never hurts its caller.

#[path = "../../../../fuzz/src/inspect.rs"]
mod fuzzed;

use std::sync::atomic::{AtomicUsize, Ordering};

use backstory_inspect::{NamedContent, by_name};
use backstory_inspection::Trouble;
use backstory_testkit::corpus::replay;
use sha1::{Digest, Sha1};

use super::{Samples, ask, ask_entry};

/// Numbers that are the same in each run.
pub(super) struct Dice(pub(super) u64);

impl Dice {
    /// A number less than this one.
    pub(super) fn below(&mut self, most: usize) -> usize {
        // Marsaglia's xorshift64.
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % most as u64) as usize
    }
}

/// Damaged forms of a content: cut, with flipped bits, with bytes repeated.
pub(super) fn damaged(content: &[u8], many: usize) -> Vec<Vec<u8>> {
    let mut dice = Dice(0x2545_f491_4f6c_dd1d);
    let cut = |dice: &mut Dice| content[..dice.below(content.len())].to_vec();
    let flipped = |dice: &mut Dice| {
        let mut content = content.to_vec();
        for _ in 0..=dice.below(8) {
            let at = dice.below(content.len());
            content[at] ^= 1 << dice.below(8);
        }
        content
    };
    let repeated = |dice: &mut Dice| {
        let at = dice.below(content.len());
        [&content[..at], &content[at / 2..]].concat()
    };
    let all = (0..many).map(|at| match at % 4 {
        0 => cut(&mut dice),
        1 => repeated(&mut dice),
        _ => flipped(&mut dice),
    });
    all.collect()
}

/// Asks about each damaged form. Returns how many of them were answered.
fn try_all(many: usize) {
    let Some(samples) = Samples::made() else {
        return;
    };
    for sample in samples.each() {
        let inspector = sample.format.split(' ').next().unwrap();
        // A variant shares most of its reader with the format's first sample.
        let is_variant = sample.format.contains(" with ");
        let all = damaged(&sample.old, if is_variant { many / 4 } else { many });
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    while let Some(content) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let found = ask_entry(inspector, sample.name, &sample.old, Some(content));
                        let is_fair = matches!(found, Ok(_) | Err(Trouble::Unreadable { .. }));
                        assert!(is_fair, "{}: {found:?}", sample.format);
                    }
                });
            }
        });
    }
}

#[test]
fn a_damaged_file_is_answered_or_refused_by_its_inspector() {
    try_all(24);
}

#[test]
fn files_of_the_corpus_are_inspected_or_refused() {
    replay("inspect", fuzzed::run);
}

#[test]
fn a_file_that_asks_for_too_much_or_leads_in_circles_does_not_crash_its_inspector() {
    let Some(samples) = Samples::made() else {
        return;
    };
    let all = std::fs::read_dir(samples.directory.path().join("hostile")).unwrap();
    for entry in all {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_str().unwrap();
        let found = ask(name, &std::fs::read(&path).unwrap(), None);
        let is_fair = matches!(found, Ok(_) | Err(Trouble::Unreadable { .. }));
        assert!(is_fair, "{name}: {found:?}");
    }
}

/// Makes the checksum at the end right, so that what is before it is read.
fn sign(content: &mut [u8]) {
    if let Some(body) = content.len().checked_sub(20) {
        let checksum = Sha1::digest(&content[..body]);
        content[body..].copy_from_slice(&checksum);
    }
}

#[test]
fn a_reader_that_this_project_wrote_survives_any_bytes() {
    let Some(samples) = Samples::made() else {
        return;
    };
    let own = [
        "pickle",
        "sql",
        "sqlite-wal",
        "git",
        "pack",
        "text",
        "csv",
        "ipynb",
    ];
    for sample in samples.each() {
        let name = sample.format.split(' ').next().unwrap();
        if !own.contains(&name) {
            continue;
        }
        let inspector = by_name(name).unwrap();
        // Checksums take their time in a program that is not optimized.
        let many = if name == "pack" { 400 } else { 3000 };
        for mut content in damaged(&sample.old, many) {
            if name == "pack" {
                sign(&mut content);
            }
            let content = NamedContent {
                name: sample.name,
                bytes: &content,
                key: &[],
            };
            // A panic fails the test. An error is an answer.
            if let Err(error) = inspector.facts(content) {
                assert!(!error.to_string().is_empty(), "{name}");
            }
        }
    }
}

#[test]
#[ignore = "half an hour"]
fn thousands_of_damaged_files_are_answered_or_refused_by_their_inspector() {
    try_all(3000);
}
