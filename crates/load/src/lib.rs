//! The load engine: it sends prepared requests to one address, in slices, and tallies the outcome of each.
//!
//! Owns: pacing, limits, drivers, transports, protocols (HTTP/1.1), connections, the per-worker tally. It must not know
//! contenders, studies, verdicts or any file format. Orders and results can be serialised (serde), so that another
//! machine may carry them out. During a slice nothing here allocates, locks, logs or sends on a
//! channel per request, except that the TLS library allocates once per record. Workers share nothing, and their tallies
//! merge at the end of the slice.

#![warn(missing_docs)]

mod address;
mod backlog;
mod connection;
mod driver;
mod exchange;
#[cfg(any(test, feature = "fuzzing"))]
#[doc(hidden)]
pub mod fuzzing;
mod gauge;
mod limit;
mod null;
mod outcome;
mod pacer;
mod protocol;
mod rate;
mod recording;
mod request;
mod requests;
mod session;
mod shared;
mod slice;
mod source;
mod status;
mod tally;
mod times;
mod traffic;
mod transport;
mod worker;

pub use address::Address;
pub use backlog::Behind;
pub use driver::Backend;
pub use exchange::{Answer, ExchangeError, NoAnswer, exchange, holds_time, with_causes};
pub use gauge::Progress;
pub use limit::Limit;
pub use null::{NullConfig, NullError, NullServer, ServerIdentity, Spin, step_ns};
pub use outcome::{Outcome, Outcomes, StatusCounts};
pub use pacer::{Arrivals, DueTimes, Pacer, Rate, RateError, RecordedTimes, RecordedTimesError, Stage};
pub use protocol::http1::{RequestError, Wrong, is_token, request_bytes};
pub use rate::RatePiece;
pub use recording::{RecordedRequest, Recording};
pub use request::{BodyRule, Expectation, Prepared, StatusRule, digest};
pub use requests::{Requests, RequestsError};
pub use session::{
    LoadSession, OpenError, ProgressHandle, Session, SessionConfig, SessionError, SliceOrder, StopHandle,
    WorkerRange, share,
};
pub use slice::nanos;
pub use status::{StatusSet, StatusSetError};
pub use tally::{
    Cause, Fault, MAX_FAULTS, MAX_MISMATCH_BODY, MAX_MISMATCHES, MAX_SAMPLE_BODY, Mismatch, Sample, Tally,
};
pub use times::Times;
pub use transport::{TlsError, TlsFailure, TlsSettings, TlsTrust};
