//! The engine's tests over epoll.

mod kit;

#[path = "engine/faults.rs"]
mod faults;
#[path = "engine/slices.rs"]
mod slices;

const BACKEND: deadheat_load::Backend = deadheat_load::Backend::Epoll;
