//! Damaged files of databases of SQLite: their pages, write-ahead log and rollback journal.
//!
//! The reader runs in the test's own process. A panic, an overflow or a place outside of the file
//! fails the test.

#[path = "../../../../fuzz/src/sqlite.rs"]
mod fuzzed;

use backstory_testkit::corpus::replay;

use super::malformed::Dice;

/// A choice of files and question, with one to seven changes, in the form of the target.
fn damage(dice: &mut Dice) -> Vec<u8> {
    let mut input = vec![dice.below(64) as u8];
    for _ in 0..=dice.below(7) {
        let file = dice.below(3) as u8;
        // Heads are small, and say how to read the rest.
        let span = if dice.below(2) == 0 { 64 } else { 1 << 15 };
        let [a, b, c, _] = (dice.below(span) as u32).to_le_bytes();
        let length = match dice.below(8) {
            0 => 0,
            _ => 1 + dice.below(4),
        };
        input.extend([file, a, b, c, length as u8]);
        let extreme = dice.below(2) == 0;
        input.extend((0..length).map(|_| match extreme {
            true => [0, 1, 0x7f, 0xff][dice.below(4)],
            false => dice.below(256) as u8,
        }));
    }
    input
}

fn try_random(seed: u64, many: usize) {
    let mut dice = Dice(seed);
    for number in 0..many {
        let input = damage(&mut dice);
        let tried = std::panic::catch_unwind(|| fuzzed::run(&input));
        assert!(tried.is_ok(), "input {number} of seed {seed}: {input:02x?}");
    }
}

#[test]
fn databases_of_the_corpus_are_read_or_refused() {
    replay("sqlite", fuzzed::run);
}

#[test]
fn a_database_with_random_damage_is_read_or_refused() {
    try_random(0x2545_f491_4f6c_dd1d, 300);
}

#[test]
#[ignore = "10,000 inputs"]
fn thousands_of_databases_with_random_damage_are_read_or_refused() {
    try_random(0x9e37_79b9_7f4a_7c15, 10_000);
}
