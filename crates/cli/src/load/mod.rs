//! Loads one server: from the command line to the record.
//!
//! Owns: the target, the requests, the checks of answers, the load itself and its progress. Must not know: studies, contenders, how to show a
//! record.

mod ceiling;
mod checks;
mod observed;
mod plan;
mod request_file;
mod run;
mod show;
mod target;
mod wire;

pub(crate) use ceiling::{MEASURED, WARMUP, ceiling};
pub(crate) use checks::checks;
pub(crate) use observed::record;
pub(crate) use plan::{LoadPlan, Surroundings};
pub(crate) use run::{Connected, LoadError, Loaded, connect, load, start_pods};
pub(crate) use show::Show;
pub(crate) use target::split_port;
