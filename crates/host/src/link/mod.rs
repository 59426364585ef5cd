//! The network between load and contenders, when a scenario asks for a slow one.
//!
//! There are three network namespaces: one for contenders and services, one for the load, and one in the middle that delays, drops and limits what goes through it.
//! (A loss on the sender's own interface would be reported to TCP, and is not a loss on the way.) None of them has a name: they are gone with the last
//! process in them, however it ends. Nothing of the machine's own network is touched.
//!
//! Owns: the namespaces, and what is measured of the link. Must not know: requests, slices.

mod discipline;
mod measure;
mod namespace;
mod netlink;
#[cfg(test)]
mod tests;
mod tunnel;

use std::cell::RefCell;
use std::fs;
use std::io;
use std::net::Ipv4Addr;

use deadheat_record::{Link, LinkReading, Plan, Tunnel};
use rustix::thread::{CapabilitySet, capabilities};

use crate::LocalHost;
use namespace::Namespace;
use tunnel::WireGuard;

/// Addresses on the way. They belong to a range for measurements of networks (RFC 2544), which no machine in use has.
const LOAD: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const MIDDLE_TO_LOAD: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 2);
const SERVERS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 5);
const MIDDLE_TO_SERVERS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 6);
/// Each pair of neighbours has four addresses.
const PREFIX: u8 = 30;

/// The interface of load and servers, and those of the middle.
const WIRE: &str = "link";
const TO_LOAD: &str = "to-load";
const TO_SERVERS: &str = "to-servers";

/// Why there is no link.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{problem}")]
pub struct LinkError {
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

impl LinkError {
    fn new(problem: impl Into<String>, remedy: impl Into<String>) -> Self {
        Self { problem: problem.into(), remedy: remedy.into() }
    }

    /// A step failed that only needs rights.
    fn of(step: &str, error: &io::Error) -> Self {
        Self::new(
            format!("{step}: {error}"),
            "links need root, with CAP_NET_ADMIN and CAP_SYS_ADMIN, and a kernel with network namespaces and veth",
        )
    }
}

/// The networks of a race with links.
#[derive(Debug)]
pub struct Networks {
    home: Namespace,
    servers: Namespace,
    middle: Namespace,
    load: Namespace,
    tunnel: RefCell<Option<WireGuard>>,
}

impl Networks {
    /// Makes the networks. The link is a fast one until [`Self::set`] is called.
    ///
    /// # Errors
    /// When the user may not, or the kernel cannot.
    pub fn make() -> Result<Self, LinkError> {
        let needed = CapabilitySet::NET_ADMIN | CapabilitySet::SYS_ADMIN;
        if !capabilities(None).is_ok_and(|own| own.effective.contains(needed)) {
            return Err(LinkError::new(
                "links can only be made by root, with CAP_NET_ADMIN and CAP_SYS_ADMIN",
                "race as root, or leave out the scenarios with `link` (--scenario)",
            ));
        }
        let namespace = || Namespace::new().map_err(|error| LinkError::of("a network namespace", &error));
        let home = Namespace::current().map_err(|error| LinkError::of("this network namespace", &error))?;
        let networks = Self {
            home,
            servers: namespace()?,
            middle: namespace()?,
            load: namespace()?,
            tunnel: RefCell::new(None),
        };
        networks.join().map_err(|error| LinkError::of("the networks of the link", &error))?;
        Ok(networks)
    }

    /// Joins the three networks. Contenders listen at [`Link::SERVERS`], an address that belongs to no wire, so that it is the same with and without a tunnel.
    fn join(&self) -> io::Result<()> {
        self.middle.inside(|| {
            netlink::make_pair(TO_LOAD, WIRE, self.load.borrow())?;
            netlink::make_pair(TO_SERVERS, WIRE, self.servers.borrow())?;
            for (name, address) in [(TO_LOAD, MIDDLE_TO_LOAD), (TO_SERVERS, MIDDLE_TO_SERVERS)] {
                netlink::add_address(name, address, PREFIX)?;
                netlink::bring_up(name)?;
            }
            netlink::route(Link::SERVERS, TO_SERVERS, Some(SERVERS), None)?;
            // The kernel shows each thread the settings of the network that it is in.
            fs::write("/proc/sys/net/ipv4/ip_forward", "1")
        })??;
        for (end, address) in [(&self.load, LOAD), (&self.servers, SERVERS)] {
            end.inside(|| {
                netlink::bring_up("lo")?;
                netlink::add_address(WIRE, address, PREFIX)?;
                netlink::bring_up(WIRE)?;
                // What one contender's connections learned of the link must not serve the next one's.
                fs::write("/proc/sys/net/ipv4/tcp_no_metrics_save", "1")
            })??;
        }
        self.servers.inside(|| {
            netlink::add_address("lo", Link::SERVERS, 32)?;
            netlink::route(LOAD, WIRE, Some(MIDDLE_TO_SERVERS), None)
        })??;
        self.load.inside(|| netlink::route(SERVERS, WIRE, Some(MIDDLE_TO_LOAD), None))??;
        self.without_tunnel()
    }

    /// The calling thread is among the servers from now on, and so is what it starts. Dropping the result brings it back.
    ///
    /// # Errors
    /// The system's error.
    pub fn enter(&self) -> Result<Entered<'_>, LinkError> {
        self.servers.enter().map_err(|error| LinkError::of("the network of the contenders", &error))?;
        Ok(Entered(&self.home))
    }

    /// Runs `what` where the load comes from. Threads that it starts stay there.
    ///
    /// # Errors
    /// The system's error.
    pub fn at_load<T>(&self, what: impl FnOnce() -> T) -> io::Result<T> {
        self.load.inside(what)
    }

    /// Whether each link of the plan can be made.
    ///
    /// # Errors
    /// The scenario whose link cannot, and why.
    pub fn try_all(&self, plan: &Plan, host: &LocalHost<'_>) -> Result<(), LinkError> {
        for (scenario, link) in plan.scenarios.iter().filter_map(|one| Some((&one.name, one.link?))) {
            self.set(&link, plan, host).map_err(|error| {
                LinkError::new(format!("scenario {scenario}: {}", error.problem), error.remedy)
            })?;
        }
        self.set(&Link::default(), plan, host)
    }

    /// From now on, the link is this one.
    ///
    /// # Errors
    /// When the kernel or a program that it needs is missing.
    pub fn set(&self, link: &Link, plan: &Plan, host: &LocalHost<'_>) -> Result<(), LinkError> {
        self.slow_down(link)?;
        let mut tunnel = self.tunnel.borrow_mut();
        if let Some(old) = tunnel.take() {
            self.without_tunnel().map_err(|error| LinkError::of("the route of the link", &error))?;
            old.end(&self.load, &self.servers);
        }
        match link.tunnel {
            None => Ok(()),
            Some(Tunnel::Wireguard) => {
                *tunnel = Some(WireGuard::make(&self.load, &self.servers, plan, host)?);
                Ok(())
            }
        }
    }

    /// Measures the link as it is now, and what it would be without its rate, delay, jitter and loss.
    ///
    /// # Errors
    /// When nothing comes through, or the system fails.
    pub fn measure(&self, link: &Link) -> Result<LinkReading, LinkError> {
        let failed = |error: io::Error| {
            LinkError::new(format!("the link could not be measured: {error}"), "lower what `link` asks for")
        };
        self.slow_down(&Link::default())?;
        let plain = measure::round_trips(&self.load, &self.servers);
        self.slow_down(link)?;
        let plain = plain.map_err(failed)?;
        let tunnel = self.tunnel.borrow().as_ref().map(WireGuard::name);
        let load_address = if tunnel.is_some() { tunnel::LOAD } else { LOAD };
        measure::reading(&self.load, &self.servers, load_address, link, plain, tunnel).map_err(failed)
    }

    /// CPU time that a tunnel has used so far, in nanoseconds: on the generator's side and on the contenders'.
    pub fn tunnel_cpu_ns(&self) -> (u64, u64) {
        self.tunnel.borrow().as_ref().map_or((0, 0), WireGuard::cpu_ns)
    }

    /// Sets rate, delay, jitter and loss of both directions.
    fn slow_down(&self, link: &Link) -> Result<(), LinkError> {
        let disciplines = discipline::disciplines(link);
        let slowed = self.middle.inside(|| {
            netlink::send_by(TO_LOAD, &disciplines).and_then(|()| netlink::send_by(TO_SERVERS, &disciplines))
        });
        slowed.and_then(|done| done).map_err(|error| match error.raw_os_error() {
            // ENOENT: no such discipline.
            Some(2) if link.delays_or_loses() => LinkError::new(
                "this kernel cannot delay or lose packets: it lacks netem (the module sch_netem)",
                "load it (`modprobe sch_netem`; Debian has it in linux-image), or ask only for `rate` and `tunnel`",
            ),
            Some(2) => LinkError::new(
                "this kernel cannot limit the rate of an interface: it lacks tbf (the module sch_tbf)",
                "load it (`modprobe sch_tbf`), or leave `rate` out",
            ),
            _ => LinkError::of("the link's rate, delay and loss", &error),
        })
    }

    /// Requests go over the wire itself.
    fn without_tunnel(&self) -> io::Result<()> {
        self.load.inside(|| netlink::route(Link::SERVERS, WIRE, Some(MIDDLE_TO_LOAD), None))?
    }
}

/// The calling thread is among the servers.
#[derive(Debug)]
pub struct Entered<'a>(&'a Namespace);

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        // The thread of a race that is over does nothing any more that needs a network.
        let _ = self.0.enter();
    }
}
