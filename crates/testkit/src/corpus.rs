//! The corpora of the fuzz targets.
//!
//! In: the name of a target of `fuzz`, and its function. Out: nothing, or a panic that names the
//! input.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Names of findings are digests. Files that were made by hand have shorter names.
const DIGEST: usize = 40;

/// Feeds a target its corpus, and beginnings of the files in it that were made by hand.
pub fn replay(target: &str, run: impl Fn(&[u8])) {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus");
    let corpus = corpus.join(target);
    let mut files = 0;
    for entry in fs::read_dir(&corpus).expect("a corpus") {
        let path = entry.expect("an input").path();
        let bytes = fs::read(&path).expect("an input");
        let is_named = path.file_name().is_some_and(|name| name.len() < DIGEST);
        let ends = (0..bytes.len().min(400)).step_by(7);
        let ends = ends.filter(|_| is_named).chain([bytes.len()]);
        for end in ends {
            let done = catch_unwind(AssertUnwindSafe(|| run(&bytes[..end])));
            let shown = path.display();
            assert!(done.is_ok(), "{target} breaks on {end} bytes of {shown}");
        }
        files += 1;
    }
    assert!(files > 0, "{} is empty", corpus.display());
}
