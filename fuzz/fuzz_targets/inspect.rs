#![no_main]

#[path = "../src/inspect.rs"]
mod inspect;

libfuzzer_sys::fuzz_target!(|data: &[u8]| inspect::run(data));
