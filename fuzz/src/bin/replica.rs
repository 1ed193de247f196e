//! See the module of the same name.

#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| quorate_fuzz::replica::run(data));
