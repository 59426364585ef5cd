//! What a build without the feature `kubernetes` has in place of a Job: nothing but the reason.

use super::error::ClusterError;
use super::settings::JobSettings;
use crate::error::RemoteError;
use crate::link::{Link, Reach};

/// A Job whose pods carry load. There is none in this build.
#[derive(Debug, Clone, Copy)]
pub enum LoadJob {}

impl LoadJob {
    /// Refuses.
    ///
    /// # Errors
    /// [`ClusterError::NotBuilt`].
    pub fn prepare(_: JobSettings) -> Result<Self, ClusterError> {
        Err(ClusterError::NotBuilt)
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn start(&self) -> Result<(), ClusterError> {
        match *self {}
    }

    /// Cannot be called.
    pub fn workers(&self) -> Vec<Worker> {
        match *self {}
    }

    /// Cannot be called.
    ///
    /// # Errors
    /// None.
    pub fn end(&self) -> Result<(), ClusterError> {
        match *self {}
    }
}

/// A pod of a Job. There is none in this build.
#[derive(Debug, Clone, Copy)]
pub enum Worker {}

impl Reach for Worker {
    fn name(&self) -> String {
        match *self {}
    }

    fn reach(self) -> Result<Link, RemoteError> {
        match self {}
    }
}
