//! Resolves a study or commands, flags and the machine into a `record::Plan`.
//!
//! Owns: defaults, profiles, the selection, where files are kept, the division of the cores. Only the plan leaves this module.
//! Must not know: TOML, processes, how to measure.

mod ad_hoc;
mod metrics;
mod paths;
mod profiles;
mod resolve;
mod round_trip;
mod scaled;
mod sweep;
mod topology;

pub use ad_hoc::{AdHoc, study_of};
pub(crate) use metrics::in_reach;
pub(crate) use paths::mark;
pub use paths::{Places, record_path};
pub(crate) use profiles::QUICK;
pub use profiles::{Profile, ROOM};
pub use resolve::{LEFT_OUT, Purpose, Resolved, Setting, fresh_seed, resolve};
pub use round_trip::lengthen_slices;
pub use topology::Topology;
