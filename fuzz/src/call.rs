//! The guard logs a readable record or none, whichever arguments a notified call has.
//!
//! Input: the kind of call, its number (two bytes), six arguments, then memory. An argument is a
//! byte for its kind, and eight bytes. The eight bytes are a number or, if the kind is odd, an
//! offset into the memory. Words of the memory may be marked as pointers in the same way.

use backstory_eventlog::chunk::{ChunkView, SkippedRecords};
use backstory_eventlog::record::RawRecord;
use backstory_guard::fuzz_entry;

const X64: u32 = 0xc000_003e;
const I386: u32 = 0x4000_0003;
const X32: u32 = 0x4000_0000;

/// Lets the guard read the call.
pub fn run(data: &[u8]) {
    let Some(([kind, low, high], rest)) = data.split_first_chunk::<3>() else {
        return;
    };
    let number = u32::from(u16::from_le_bytes([*low, *high])) % 512;
    let (arch, number) = match kind % 4 {
        0 | 1 => (X64, number),
        2 => (I386, number),
        _ => (X64, number | X32),
    };
    let Some((arguments, memory)) = rest.split_at_checked(6 * 9) else {
        return;
    };
    // The words do not move while the call is read. Marked words become pointers into the memory
    // itself.
    let mut words: Vec<u64> = memory.chunks(8).map(number_of).collect();
    let (base, bytes) = (words.as_ptr() as u64, words.len() as u64 * 8);
    for word in &mut words {
        if *word >> 48 == 0xffff && bytes > 0 {
            *word = base + *word % bytes;
        }
    }
    let args = std::array::from_fn(|i| {
        let argument = &arguments[9 * i..9 * i + 9];
        let value = number_of(&argument[1..]);
        if argument[0] % 2 == 1 && bytes > 0 {
            base + value % bytes
        } else {
            value
        }
    });
    let records = fuzz_entry::call(arch, number, args);
    drop(words);
    let view = ChunkView::bare(&records);
    let (mut at, mut skipped) = (0, SkippedRecords::default());
    while let Some((found, record)) = view.next(at, &mut skipped) {
        assert_eq!(found, at, "a gap between records");
        assert!(
            RawRecord::parse(view.from(found)).is_some(),
            "a record that cannot be read"
        );
        at = found + usize::from(record.size);
    }
    assert_eq!(
        (at, skipped),
        (records.len(), SkippedRecords::default()),
        "a record that is none"
    );
}

fn number_of(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_le_bytes(word)
}
