//! Load over a link that deadheat makes.
//!
//! Owns: that requests begin where the link does, and where contenders are reached. Must not know: how the link is made and measured.

use std::cell::Cell;
use std::time::Duration;

use deadheat_host::LocalHost;
use deadheat_host::link::{LinkError, Networks};
use deadheat_load::{Address, Answer, LoadSession, NoAnswer, OpenError, SessionConfig};
use deadheat_record::{Link, LinkReading, Plan};

use crate::ask::{LoadGenerator, LocalGenerator, Question};

/// The load generator in this process, on the other side of a link.
#[derive(Debug)]
pub struct Linked<'a> {
    networks: &'a Networks,
    plan: Plan,
    host: LocalHost<'a>,
    /// The link that was set last.
    link: Cell<Option<Link>>,
}

impl<'a> Linked<'a> {
    /// Load over the links of the plan.
    pub fn new(networks: &'a Networks, plan: &Plan, host: LocalHost<'a>) -> Self {
        Self { networks, plan: plan.clone(), host, link: Cell::new(None) }
    }

    /// Runs `what` where requests begin: at the far end of the link, or else beside the contenders.
    fn at_the_far_end<T>(&self, what: impl FnOnce() -> T) -> std::io::Result<T> {
        if self.link.get().is_some() { self.networks.at_load(what) } else { Ok(what()) }
    }
}

/// Where the link's other end reaches a contender.
fn seen_at_the_far_end(address: &Address) -> Address {
    address.seen_at(Link::SERVERS.into())
}

/// Why there is no answer, with the address that contenders have to listen on.
fn told_where(reason: &str, address: &Address) -> String {
    match address {
        Address::Tcp(address) => {
            format!(
                "{reason}; over a link it is asked at {address}: let it listen on {{host}} (HOST) and not on the loopback"
            )
        }
        Address::Unix(_) => reason.to_owned(),
    }
}

fn in_words(error: LinkError) -> String {
    format!("{error}; {}", error.remedy)
}

impl LoadGenerator for Linked<'_> {
    fn ask(
        &self,
        asked: &[(&Address, &Question)],
        patience: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Vec<Result<Answer, NoAnswer>>> {
        let addresses: Vec<Address> = asked.iter().map(|(address, _)| seen_at_the_far_end(address)).collect();
        let there: Vec<(&Address, &Question)> =
            addresses.iter().zip(asked).map(|(address, (_, question))| (address, *question)).collect();
        match self.at_the_far_end(|| LocalGenerator.ask(&there, patience, stopped)) {
            Ok(answers) => answers.map(|all| {
                let named = |(answer, address): (Result<Answer, NoAnswer>, &Address)| {
                    answer.map_err(|why| NoAnswer { reason: told_where(&why.reason, address), ..why })
                };
                all.into_iter().zip(&addresses).map(named).collect()
            }),
            Err(error) => {
                let failed = || NoAnswer::plain(format!("the link: {error}"));
                Some(asked.iter().map(|_| Err(failed())).collect())
            }
        }
    }

    fn open(&self, config: SessionConfig) -> Result<Box<dyn LoadSession>, OpenError> {
        let config = SessionConfig { address: seen_at_the_far_end(&config.address), ..config };
        // The threads that open connections, now and later, stay where they begin.
        self.at_the_far_end(|| LocalGenerator.open(config)).unwrap_or_else(|error| {
            Err(OpenError::Elsewhere { reason: format!("the link: {error}"), own: true })
        })
    }

    fn set_link(&self, link: Option<&Link>) -> Result<(), String> {
        self.link.set(link.copied());
        self.networks.set(&link.copied().unwrap_or_default(), &self.plan, &self.host).map_err(in_words)
    }

    fn measure_link(&self) -> Result<Option<LinkReading>, String> {
        self.link.get().map(|link| self.networks.measure(&link).map_err(in_words)).transpose()
    }

    fn carriers_cpu_ns(&self) -> (u64, u64) {
        self.networks.tunnel_cpu_ns()
    }
}
