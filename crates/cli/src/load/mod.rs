//! One server, loaded alone: from what was typed to the record.
//!
//! Owns: the target, the requests, what answers are checked against, the load itself and how it is watched. Must not
//! know: studies, contenders, how a record is shown.

mod ceiling;
mod checks;
mod observed;
mod plan;
mod request_file;
mod run;
mod show;
mod target;
mod wire;

pub(crate) use ceiling::ceiling;
pub(crate) use checks::checks;
pub(crate) use observed::record;
pub(crate) use plan::{LoadPlan, Surroundings};
pub(crate) use run::{Connected, LoadError, Loaded, connect, load};
pub(crate) use show::Show;
