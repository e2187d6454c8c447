//! Reads the contents that a run preserved.

use super::{Run, text};
use backstory_eventlog::event::{Event, Op};
use backstory_files::Ident;
use std::fs;
use std::path::PathBuf;

/// A preserved content.
pub struct Kept {
    /// The path of its file.
    pub path: PathBuf,
    /// The identity of its file before the change.
    pub ident: Option<Ident>,
    /// The preserved bytes, or the errno.
    pub bytes: Result<Vec<u8>, i32>,
}

/// All preserved contents, in the order of the log.
pub fn kept(run: &Run) -> Vec<Kept> {
    let one = |event: Event| {
        let Op::Preserved { path, number, .. } = &event.op else {
            return None;
        };
        let result = event.outcome.value().unwrap();
        let file = run.path(&format!("{}.kept/{number}", run.id));
        Some(Kept {
            path: PathBuf::from(text(path)),
            ident: event.ident,
            bytes: match result {
                0 => Ok(fs::read(file).unwrap()),
                error => Err(-error),
            },
        })
    };
    run.events().into_iter().filter_map(one).collect()
}

/// The preserved contents of a file of this name, in the order of its versions, of a run of this
/// script.
pub fn kept_of(name: &str, words: &[&str]) -> Vec<String> {
    let run = Run::new(&["--contents", "lazy"]);
    let output = run.record(words);
    assert!(
        output.status.success(),
        "{words:?}: {}",
        text(&output.stderr)
    );
    run.assert_tidy();
    let of_it = kept(&run).into_iter().filter(|k| k.path.ends_with(name));
    of_it.map(|k| text(&k.bytes.unwrap())).collect()
}
