#![no_main]

#[path = "../src/mariadb_log.rs"]
mod mariadb_log;

libfuzzer_sys::fuzz_target!(|data: &[u8]| mariadb_log::run(data));
