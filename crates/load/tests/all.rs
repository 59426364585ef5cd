//! Tests of the crate that do not depend on the driver, as one program: linked once.
#![allow(clippy::unwrap_used, reason = "a test that cannot be set up fails")]

mod exchange;
mod exchange_tls;
mod kit;
mod null;
mod shortages;

const BACKEND: deadheat_load::Backend = deadheat_load::Backend::Auto;
