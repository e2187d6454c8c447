#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| backstory_fuzz::deep::run(data));
