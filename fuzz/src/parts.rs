//! Places of parts in the formats whose files this project follows by what a library tells of them:
//! archives, documents, tables, arrays.
//!
//! The first byte selects the format and the kind of the name, and the second one is the length of
//! the name. The name and the content follow. The headers of a tar archive get the right sums.
//!
//! A panic of a library is no finding: the worker makes an answer of it. The same holds for the
//! memory that a library takes, which is limited in the worker.

use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};
use std::sync::Once;

use backstory_inspect::{NamedContent, PartName, by_name};

/// Inspectors, each with the name of a file that it takes.
const FORMATS: [(&str, &str); 9] = [
    ("zip", "a.zip"),
    ("tar", "a.tar"),
    ("xlsx", "a.xlsx"),
    ("docx", "a.docx"),
    ("odt", "a.odt"),
    ("arrow", "a.arrow"),
    ("parquet", "a.parquet"),
    ("safetensors", "a.safetensors"),
    ("hdf5", "a.h5"),
];

/// Parts of the paths of this project's sources.
const OURS: [&str; 2] = ["crates/", "fuzz/src/"];

/// A block of a tar archive.
const BLOCK: usize = 512;

/// Asks for a part.
pub fn run(data: &[u8]) {
    let Some(([choice, length], rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let (name, content) = rest.split_at(usize::from(*length).min(rest.len()));
    let name = String::from_utf8_lossy(name).into_owned();
    let name = match choice % 2 {
        0 => PartName::Cell(name),
        _ => PartName::Member(name),
    };
    let (format, file) = FORMATS[usize::from(choice / 2) % FORMATS.len()];
    // The readers of some formats are features.
    let Some(inspector) = by_name(format) else {
        return;
    };
    let mut content = content.to_vec();
    if format == "tar" {
        sign(&mut content);
    }
    let named = NamedContent {
        name: file,
        bytes: &content,
        key: &[],
    };
    let Some(Ok(place)) = answer(|| inspector.part(named, &name)) else {
        return;
    };
    let mut ranges = place.ranges.iter();
    assert!(ranges.all(|range| range.start <= range.end && range.end <= content.len()));
}

/// Makes the sums of the headers of a tar archive right.
fn sign(content: &mut [u8]) {
    for header in content.chunks_exact_mut(BLOCK) {
        if header[257..262] != *b"ustar" {
            continue;
        }
        // Its own field counts as blanks.
        header[148..156].fill(b' ');
        let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    }
}

thread_local! {
    /// This thread asks a question.
    static IS_ASKING: Cell<bool> = const { Cell::new(false) };
    /// The last panic of this thread was of a library.
    static IS_OF_LIBRARY: Cell<bool> = const { Cell::new(false) };
}

/// The answer to a question. `None` if a library panics. The hook of libFuzzer ends the process, so
/// it is not called for these panics.
fn answer<T>(question: impl FnOnce() -> T) -> Option<T> {
    static HOOK: Once = Once::new();
    HOOK.call_once(|| {
        let former = panic::take_hook();
        panic::set_hook(Box::new(move |why| {
            let is_ours = why
                .location()
                .is_none_or(|place| OURS.iter().any(|ours| place.file().contains(ours)));
            IS_OF_LIBRARY.set(!is_ours);
            if is_ours || !IS_ASKING.get() {
                former(why);
            }
        }));
    });
    IS_ASKING.set(true);
    let answer = panic::catch_unwind(AssertUnwindSafe(question));
    IS_ASKING.set(false);
    match answer {
        Ok(answer) => Some(answer),
        Err(_) if IS_OF_LIBRARY.get() => None,
        Err(panic) => panic::resume_unwind(panic),
    }
}
