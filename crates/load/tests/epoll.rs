//! The engine's tests over epoll.
#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

mod kit;

#[path = "engine/encrypted.rs"]
mod encrypted;
#[path = "engine/faults.rs"]
mod faults;
#[path = "engine/slices.rs"]
mod slices;

const BACKEND: deadheat_load::Backend = deadheat_load::Backend::Epoll;
