//! Owns: the state that lets later connections to one server resume TLS sessions. Must not know handshakes.

use std::collections::VecDeque;
use std::fmt;
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustls::NamedGroup;
use rustls::client::{ClientSessionMemoryCache, ClientSessionStore};
use rustls::client::{Tls12ClientSessionValue, Tls13ClientSessionValue};
use rustls::pki_types::ServerName;

/// A TLS 1.3 ticket serves one connection, and all connections of a session may be reopened at once. rustls' default
/// cache keeps eight tickets, so that the order of events would decide whether a connection resumes.
const MOST_TICKETS: usize = 1024;

/// The session cache of one server.
pub(super) struct Sessions {
    tickets: Mutex<VecDeque<Tls13ClientSessionValue>>,
    other: ClientSessionMemoryCache,
}

impl Sessions {
    pub(super) fn new() -> Sessions {
        Sessions { tickets: Mutex::default(), other: ClientSessionMemoryCache::new(1) }
    }

    fn tickets(&self) -> MutexGuard<'_, VecDeque<Tls13ClientSessionValue>> {
        self.tickets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Sessions").finish_non_exhaustive()
    }
}

impl ClientSessionStore for Sessions {
    fn set_kx_hint(&self, name: ServerName<'static>, group: NamedGroup) {
        self.other.set_kx_hint(name, group);
    }

    fn kx_hint(&self, name: &ServerName<'_>) -> Option<NamedGroup> {
        self.other.kx_hint(name)
    }

    fn set_tls12_session(&self, name: ServerName<'static>, value: Tls12ClientSessionValue) {
        self.other.set_tls12_session(name, value);
    }

    fn tls12_session(&self, name: &ServerName<'_>) -> Option<Tls12ClientSessionValue> {
        self.other.tls12_session(name)
    }

    fn remove_tls12_session(&self, name: &ServerName<'static>) {
        self.other.remove_tls12_session(name);
    }

    fn insert_tls13_ticket(&self, _: ServerName<'static>, value: Tls13ClientSessionValue) {
        let mut tickets = self.tickets();
        if tickets.len() == MOST_TICKETS {
            tickets.pop_front();
        }
        tickets.push_back(value);
    }

    /// The newest ticket, because it expires last.
    fn take_tls13_ticket(&self, _: &ServerName<'static>) -> Option<Tls13ClientSessionValue> {
        self.tickets().pop_back()
    }
}
