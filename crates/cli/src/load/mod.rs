//! What is asked of a server that is loaded alone.
//!
//! Owns: files of requests. Must not know: connections, clocks.

mod request_file;
