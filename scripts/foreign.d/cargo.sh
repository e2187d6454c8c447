# what: cargo build, test and run of a tiny crate with a build script
# needs: cargo gcc
# limit: 120
mkdir src; printf '[package]\nname = "t"\nversion = "0.1.0"\nedition = "2021"\n' >Cargo.toml
echo 'fn main() { std::fs::write(std::path::Path::new(&std::env::var("OUT_DIR").unwrap()).join("x.rs"), "const X: u8 = 3;").unwrap(); }' >build.rs
echo 'include!(concat!(env!("OUT_DIR"), "/x.rs")); fn main() { println!("{X}"); } #[test] fn three() { assert_eq!(X, 3) }' >src/main.rs
export RUSTUP_HOME=${RUSTUP_HOME:-$(getent passwd "$(id -u)" | cut -d: -f6)/.rustup}
cargo build --offline -q 2>&1; cargo test --offline -q 2>&1 | grep 'test result' | cut -d';' -f1-4; cargo run --offline -q
rm -rf target/debug/incremental target/debug/.fingerprint; find target -name '*.d' -delete; find target -type f -delete
