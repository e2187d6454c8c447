//! Pages of `docs` that are made from tables in the code.

use std::path::Path;

/// Holds `docs/NAME` against `page`, what the code says; with `BACKSTORY_BLESS=1` in the environment writes it anew first.
///
/// # Panics
/// If they differ, or the page can't be written.
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
