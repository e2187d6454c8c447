//! Patterns that users give, matched with names and arguments that programs choose. The first line
//! is the pattern. The rest is the name, or one argument on each line.

use backstory_query::Globs;
use backstory_session::fuzz_entry;

/// Matches them.
pub fn run(data: &[u8]) {
    let at = data.iter().position(|b| *b == b'\n').unwrap_or(data.len());
    let (pattern, name) = (&data[..at], data.get(at + 1..).unwrap_or_default());
    let pattern = String::from_utf8_lossy(pattern);
    if let Ok(globs) = Globs::new(&[&pattern]) {
        globs.matches(name);
    }
    let name: Vec<u8> = name.iter().copied().filter(|b| *b != 0).collect();
    let kept = fuzz_entry::redacted(&pattern, &name);
    assert!(kept.len() <= name.len(), "it would not fit where it stood");
    let end = name
        .iter()
        .position(|b| *b == b'=')
        .map_or(name.len(), |at| at + 1);
    assert_eq!(kept.get(..end), name.get(..end), "the name is kept");
    let words: Vec<Vec<u8>> = name.split(|b| *b == b'\n').map(<[u8]>::to_vec).collect();
    let command = fuzz_entry::redacted_command(&pattern, &words);
    assert_eq!(command.len(), words.len(), "no argument comes or goes");
    for (kept, word) in command.iter().zip(&words) {
        assert!(kept.len() <= word.len(), "it would not fit where it stood");
    }
}
