#![no_main]

#[path = "../src/postgres_log.rs"]
mod postgres_log;

libfuzzer_sys::fuzz_target!(|data: &[u8]| postgres_log::run(data));
