//! The records of a run in progress.

use std::fs;
use std::path::Path;

/// True if the records of an unfinished run of a store have a text. A record is in shared memory
/// first, and then in the log of the run.
pub fn has_text(store: &Path, text: &str) -> bool {
    let text = text.as_bytes();
    let has_text = |path: &Path| {
        let bytes = fs::read(path).unwrap_or_default();
        bytes.windows(text.len()).any(|part| part == text)
    };
    let runs = fs::read_dir(store.join("runs")).into_iter().flatten();
    runs.flatten().any(|log| {
        let name = log.file_name();
        let run = name
            .to_str()
            .and_then(|name| name.strip_suffix(".log.part"));
        run.is_some_and(|run| {
            let arena = format!("/dev/shm/backstory-{run}.arena");
            has_text(&log.path()) || has_text(arena.as_ref())
        })
    })
}
