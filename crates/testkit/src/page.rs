//! Pages of `docs` that are generated from tables in the code.

use std::path::Path;

/// Compares `docs/NAME` with `page`, the generated text. With `BACKSTORY_BLESS=1` in the
/// environment, writes the page first.
///
/// # Panics
/// If they differ, or the page cannot be written.
pub fn is_up_to_date(name: &str, page: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../docs")
        .join(name);
    if std::env::var_os("BACKSTORY_BLESS").is_some() {
        std::fs::write(&path, page)
            .unwrap_or_else(|error| panic!("cannot write {}: {error}", path.display()));
    }
    let text = std::fs::read_to_string(&path).unwrap_or_default();
    assert!(
        text == page,
        "docs/{name} is out of date: BACKSTORY_BLESS=1 writes it anew"
    );
}
