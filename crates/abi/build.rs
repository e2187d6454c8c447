//! Tells the recorder's build where the header is.
fn main() {
    let dir = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_default();
    println!("cargo:include={dir}/include");
    println!("cargo:rerun-if-changed=include/backstory_abi.h");
}
