//! The load of a race from other machines.
//!
//! Owns: that contenders are loaded at the address at which the load hosts reach this machine. Must not know: how a host is reached.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use deadheat_host::monitor::Disturbance;
use deadheat_load::{Address, Answer, LoadSession, OpenError, SessionConfig};
use deadheat_record::{ExternalReading, Finding, Plan};
use deadheat_remote::message::{Asked, Seen};
use deadheat_remote::{HostCommand, LoadHosts, Patience, Program, RemoteError, RemoteSession, SshTarget};
use deadheat_runner::{LoadGenerator, NoAnswer, Question};
use deadheat_study::choices::UsageError;

use crate::commands::Failure;
use crate::console::{Console, lines_plain};
use crate::interrupt::{Interrupt, unless};

/// Maximum size of a body, in bytes.
const MAX_BODY: usize = 64 << 20;

/// Reaches the load hosts of a plan, and starts an agent on each. None if the load comes from this machine.
pub(crate) fn reach(
    plan: &Plan,
    interrupt: &Interrupt,
    console: &Console,
) -> Result<Option<Elsewhere>, Failure> {
    let Some(from) = &plan.load_from else { return Ok(None) };
    let target = |host: &String| -> Result<SshTarget, UsageError> {
        host.parse().map_err(|error| UsageError::new(format!("{host}: {error}"), "correct the record"))
    };
    let targets = from.hosts.iter().map(target).collect::<Result<Vec<_>, _>>()?;
    let names: Vec<String> = targets.iter().map(ToString::to_string).collect();
    console.note(&lines_plain(&format!("reaching {} by ssh", names.join(", "))));
    let version = env!("CARGO_PKG_VERSION");
    let program = Program::running(version)?;
    let hosts: Vec<HostCommand> = targets.iter().map(|host| HostCommand::ssh(host, &program)).collect();
    let reached =
        unless(&|| interrupt.asked(), move || LoadHosts::connect(hosts, version, Patience::default()));
    let hosts = reached.ok_or(deadheat_study::prepare::PrepareError::Interrupted)?;
    let hosts = hosts.map_err(|error| UsageError::new(error.to_string(), error.remedy()))?;
    Ok(Some(Elsewhere { hosts: Arc::new(hosts), server_address: from.server_address }))
}

/// Loads contenders on this machine from others.
#[derive(Debug)]
pub(crate) struct Elsewhere {
    hosts: Arc<LoadHosts>,
    server_address: Ipv4Addr,
}

impl Elsewhere {
    /// Whether a load host was lost.
    pub(crate) fn has_lost(&self) -> bool {
        !self.hosts.lost().is_empty()
    }

    /// Where the load hosts reach a contender.
    fn seen_from_there(&self, address: &Address) -> Address {
        match address {
            Address::Tcp(here) => Address::Tcp(SocketAddr::from((self.server_address, here.port()))),
            Address::Unix(path) => Address::Unix(path.clone()),
        }
    }

    /// What was last seen of the machines, with their names.
    fn seen(&self) -> Vec<(&str, Seen)> {
        self.hosts.seen()
    }
}

impl LoadGenerator for Elsewhere {
    fn ask(
        &self,
        asked: &[(&Address, &Question)],
        patience: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Vec<Result<Answer, NoAnswer>>> {
        let asked: Vec<Asked> = asked
            .iter()
            .map(|(address, question)| Asked {
                address: self.seen_from_there(address),
                tls: question.tls.clone(),
                bytes: question.bytes.to_vec(),
                head: question.head,
            })
            .collect();
        let (hosts, count) = (Arc::clone(&self.hosts), asked.len());
        let answers = unless(stopped, move || hosts.ask(asked, patience, MAX_BODY))?;
        Some(match answers {
            Ok(answers) => answers
                .into_iter()
                .map(|one| one.map_err(|why| NoAnswer { reason: why.reason, timed_out: why.timed_out }))
                .collect(),
            Err(error) => vec![Err(NoAnswer { reason: error.to_string(), timed_out: false }); count],
        })
    }

    fn open(&self, config: SessionConfig) -> Result<Box<dyn LoadSession>, OpenError> {
        let config = SessionConfig { address: self.seen_from_there(&config.address), ..config };
        let session = RemoteSession::open(Arc::clone(&self.hosts), &config);
        session.map(|session| Box::new(session) as Box<dyn LoadSession>).map_err(|error| {
            OpenError::Elsewhere {
                reason: error.to_string(),
                own: !matches!(error, RemoteError::Failed { own: false, .. }),
            }
        })
    }

    fn watch(&self, plan: &Plan) -> Result<Vec<Finding>, String> {
        let cpus = &plan.pinning.load_cpus;
        let stalls =
            !cpus.is_empty() && plan.scenarios.iter().any(|one| plan.highest_quantile(one).is_some());
        let unseen = self.hosts.watch(cpus, stalls).map_err(|error| error.to_string())?;
        let finding = |(host, one): (&str, deadheat_remote::message::Unseen)| {
            Finding::warn(&one.code, format!("load host {host}: {}", one.message), one.remedy)
        };
        Ok(unseen.into_iter().map(finding).collect())
    }

    fn disturbance(&self) -> Option<Disturbance> {
        let all = self.seen().into_iter().map(|(host, seen)| Disturbance {
            reading: ExternalReading { steal_share: seen.steal_share, foreign_share: seen.foreign_share },
            foreign_off: seen.foreign_off,
            foreign_of: format!("load host {host}'s cores").into(),
        });
        let worst = all.reduce(|one, other| one.or_worse(Some(other)));
        self.hosts.count_afresh();
        worst
    }

    fn stalled_share(&self) -> Option<f64> {
        self.seen().into_iter().filter_map(|(_, seen)| seen.stalled_share).reduce(f64::max)
    }
}
