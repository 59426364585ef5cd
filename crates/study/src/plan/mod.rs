//! From what was typed to what will be done: study or commands, flags and the machine resolve into a `record::Plan`.
//!
//! Owns: defaults, profiles, the selection, where things are kept, which cores belong to whom. Only the plan goes on.
//! Must not know: TOML, processes, how anything is measured.

mod ad_hoc;
mod metrics;
mod paths;
mod profiles;
mod resolve;
mod scaled;
mod sweep;
mod topology;

pub use ad_hoc::{AdHoc, study_of};
pub use paths::{Places, record_path};
pub use profiles::{Profile, ROOM};
pub use resolve::{Purpose, Resolved, Setting, fresh_seed, resolve};
pub use topology::{Topology, is_narrowed};
