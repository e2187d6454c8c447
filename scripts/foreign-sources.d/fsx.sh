# from: registry
# what: fsx from crates.io, the file system exerciser
cargo install --locked --root "$PWD" fsx@0.3.2
