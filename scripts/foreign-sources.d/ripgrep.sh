# from: registry
# what: ripgrep from crates.io, its dependencies compiled (its tests run the program)
# A dependency on a program is not linked, but cargo fetches it.
export CARGO_HOME="$PWD/home" CARGO_PROFILE_DEV_DEBUG=0
mkdir -p fetch
printf '[package]\nname = "fetch"\nversion = "0.0.0"\n[lib]\npath = "none.rs"\n[dependencies]\nripgrep = "=14.1.1"\n[workspace]\n' >fetch/Cargo.toml
: >fetch/none.rs
cargo fetch --manifest-path fetch/Cargo.toml
rm -rf project
cp -a home/registry/src/*/ripgrep-14.1.1 project
cd project
# This crate is not part of a workspace in a parent directory.
printf '\n[workspace]\n' >>Cargo.toml
cargo fetch --locked
cargo test --locked --offline --no-run
