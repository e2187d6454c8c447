#![no_main]

#[path = "../src/parts.rs"]
mod parts;

libfuzzer_sys::fuzz_target!(|data: &[u8]| parts::run(data));
