#![no_main]

#[path = "../src/mariadb_stream.rs"]
mod mariadb_stream;

libfuzzer_sys::fuzz_target!(|data: &[u8]| mariadb_stream::run(data));
