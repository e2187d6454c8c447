#![no_main]

#[path = "../src/sqlite.rs"]
mod sqlite;

libfuzzer_sys::fuzz_target!(|data: &[u8]| sqlite::run(data));
