//! The engine's tests over io_uring.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod kit;

#[path = "engine/bad_servers.rs"]
mod bad_servers;
#[path = "engine/encrypted.rs"]
mod encrypted;
#[path = "engine/faults.rs"]
mod faults;
#[path = "engine/hangups.rs"]
mod hangups;
#[path = "engine/slices.rs"]
mod slices;

const BACKEND: deadheat_load::Backend = deadheat_load::Backend::Uring;
