//! Any text as a rate and as a set of status codes; due times of any rate.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| deadheat_load::fuzzing::check_written(bytes));
