//! Any bytes as an answer, in one piece and in many.
#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| deadheat_load::fuzzing::check_answer(bytes));
