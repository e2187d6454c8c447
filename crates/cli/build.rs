//! Chooses how the executable is linked. `record` runs before every command, so that it must start
//! fast.
//!
//! An executable at a fixed address does not need the 10,000 relocations of a position-independent
//! one, nor copies of the pages that they change. The unwinder of libgcc is linked statically if
//! the compiler has it as an archive. A shared libgcc must be mapped. It also asks the processor
//! for its features, which is slow in virtual machines.

use std::path::Path;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-changed=build.rs");
    let linux = std::env::var("CARGO_CFG_TARGET_OS").is_ok_and(|os| os == "linux");
    let gnu = std::env::var("CARGO_CFG_TARGET_ENV").is_ok_and(|env| env == "gnu");
    let native = std::env::var("HOST").ok() == std::env::var("TARGET").ok();
    if !(linux && gnu && native) {
        return;
    }
    println!("cargo:rustc-link-arg-bins=-no-pie");
    if let Some(unwinder) = archive("libgcc_eh.a") {
        println!("cargo:rustc-link-arg-bins=-Wl,--push-state,--whole-archive");
        println!("cargo:rustc-link-arg-bins={unwinder}");
        println!("cargo:rustc-link-arg-bins=-Wl,--pop-state");
    }
}

/// The path of an archive of the compiler, if it has the archive.
fn archive(name: &str) -> Option<String> {
    let found = Command::new("cc")
        .arg(format!("-print-file-name={name}"))
        .output()
        .ok()?;
    let path = String::from_utf8(found.stdout).ok()?.trim().to_owned();
    Path::new(&path).is_absolute().then_some(path)
}
