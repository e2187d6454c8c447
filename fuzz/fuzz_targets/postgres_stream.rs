#![no_main]

#[path = "../src/postgres_stream.rs"]
mod postgres_stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| postgres_stream::run(data));
