//! The description of the interface: complete, and equal to the copy that the page is built with.
#![allow(clippy::unwrap_used)]

/// `BACKSTORY_RENEW=1 cargo test -p backstory-serve --test openapi` writes the copy anew.
#[test]
fn the_page_is_built_with_the_interface_of_the_server() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/web/openapi.json");
    let document = backstory_serve::api::document().to_pretty_json().unwrap() + "\n";
    if std::env::var_os("BACKSTORY_RENEW").is_some() {
        std::fs::create_dir_all(std::path::Path::new(path).parent().unwrap()).unwrap();
        std::fs::write(path, &document).unwrap();
    }
    let copy = std::fs::read_to_string(path).unwrap();
    assert!(
        copy == document,
        "{path} is out of date: run this test with BACKSTORY_RENEW=1"
    );
}
