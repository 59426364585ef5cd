//! A fake machine, load generator and clock. They run whole races in milliseconds and record every call.
//!
//! Owns: contenders that consist of a service time and a failure to simulate. Must not know: what a race derives from them.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use deadheat_host::cgroup::Hierarchy;
use deadheat_host::cgroup::delegation::DelegatedGroup;
use deadheat_host::clock::Clock;
use deadheat_host::command::{Ran, ShellCommand};
use deadheat_host::monitor::Monitor;
use deadheat_host::monitor::awake::Awake;
use deadheat_host::process::instructions::Instructions;
use deadheat_host::process::profile::ProfileError;
use deadheat_host::process::{Process, ProcessSpec, StartError};
use deadheat_host::{Host, LimitsError};
use deadheat_load::{
    Address, Answer, Behind, LoadSession, NoAnswer, OpenError, Pacer, RatePiece, SessionConfig, SessionError,
    SliceOrder, Tally,
};
use deadheat_record::{
    Bandwidth, ExternalReading, Finding, Function, Link, LinkBandwidth, LinkReading, Plan, Stacks,
};
use rustix::process::Pid;

use crate::ask::{LoadGenerator, Question};
use crate::events::{Event, Observer};
use crate::load_hosts::{LoadHostWork, LoadHostsWork};
use crate::parity::ProbeFiles;

/// Takes no notice of any event.
pub(crate) struct Silence;

impl Observer for Silence {
    fn event(&mut self, _: &Event<'_>) {}
}

/// The behaviour of a fake contender.
#[derive(Debug, Clone)]
pub(crate) struct Character {
    /// Time for one request when it is warm, in microseconds.
    pub service_us: f64,
    /// How much more time a request takes right after a start, as a share of `service_us`. It falls evenly over the given number of
    /// slices since the start.
    pub cold: (f64, usize),
    /// The slice in which it dies, counted over all its slices with warm-ups.
    pub dies_in_slice: Option<usize>,
    /// The body that it answers with. `{start}` stands for a text that differs between its starts.
    pub body: &'static str,
    /// Whether it answers with an error status while requests come as fast as it answers, without a rate.
    pub refuses_full_speed: bool,
    /// Whether its command cannot be started.
    pub cannot_start: bool,
    /// Whether its build takes too long.
    pub builds_forever: bool,
    /// Time from its start until it answers.
    pub start: Duration,
}

impl Character {
    /// A contender that takes this long for each request and never fails.
    pub(crate) fn taking_us(service_us: f64) -> Self {
        Self {
            service_us,
            cold: (0.0, 1),
            dies_in_slice: None,
            body: "ok",
            refuses_full_speed: false,
            cannot_start: false,
            builds_forever: false,
            start: Duration::ZERO,
        }
    }
}

/// The recorded calls and the settings, shared by all fakes of a race.
pub(crate) struct World {
    /// All calls in order: `start a`, `ask a b`, `open a`, `thaw a`, `slice a 100`, `freeze a`, `stop a`.
    pub calls: RefCell<Vec<String>>,
    /// The character of each contender, by name.
    pub characters: RefCell<BTreeMap<String, Character>>,
    /// Number of slices of load so far.
    pub slices: Cell<usize>,
    now: Cell<Duration>,
    /// The slice in which the user interrupts.
    pub interrupted_in_slice: Cell<Option<usize>>,
    /// What the files of the plan's probes contain.
    pub files: RefCell<ProbeFiles>,
    /// Every request that was sent to decide readiness or to compare answers, and for each session the first one that it loads with: the
    /// name of the contender and the bytes.
    pub requests: RefCell<Vec<(String, String)>>,
    /// By port: the name of the contender that listens there, and its start time.
    places: RefCell<Vec<(String, Duration)>>,
    awake: RefCell<BTreeMap<String, bool>>,
    borne: RefCell<BTreeMap<String, usize>>,
    used_ns: RefCell<BTreeMap<String, u64>>,
    /// Whether load goes over a link that the race made.
    pub shaped: Cell<bool>,
    /// The link to a load host, if the load comes from one.
    pub link: Cell<Option<FakeLink>>,
    /// The slice in which the load host is silent for 3 s.
    pub silent_in_slice: Cell<Option<usize>>,
    /// How often the load host has asked contenders for answers.
    asks: Cell<usize>,
    /// How often it does that before it is lost.
    pub lost_after_asks: Cell<Option<usize>>,
    /// What the load host did since it was last asked for it.
    work: RefCell<LoadHostWork>,
    /// Why stacks cannot be sampled; none if they can.
    pub unprofiled: RefCell<Option<ProfileError>>,
    /// CPU time of a contender when its profile began, by name.
    profiled_ns: RefCell<BTreeMap<String, u64>>,
    proc: tempfile::TempDir,
}

impl World {
    /// Creates a world with these contenders.
    pub(crate) fn of(characters: &[(&str, Character)]) -> Rc<Self> {
        let proc = tempfile::tempdir().unwrap();
        std::fs::write(
            proc.path().join("stat"),
            "cpu0 0 0 0 1000 0 0 0 0 0 0\ncpu1 0 0 0 1000 0 0 0 0 0 0\n",
        )
        .unwrap();
        let characters = characters.iter().map(|(name, one)| ((*name).to_owned(), one.clone())).collect();
        Rc::new(Self {
            calls: RefCell::default(),
            characters: RefCell::new(characters),
            slices: Cell::new(0),
            now: Cell::new(Duration::from_secs(1)),
            interrupted_in_slice: Cell::new(None),
            files: RefCell::default(),
            requests: RefCell::default(),
            places: RefCell::default(),
            awake: RefCell::default(),
            borne: RefCell::default(),
            used_ns: RefCell::default(),
            shaped: Cell::new(false),
            link: Cell::new(None),
            silent_in_slice: Cell::new(None),
            asks: Cell::new(0),
            lost_after_asks: Cell::new(None),
            work: RefCell::default(),
            unprofiled: RefCell::default(),
            profiled_ns: RefCell::default(),
            proc,
        })
    }

    fn note(&self, call: String) {
        self.calls.borrow_mut().push(call);
    }

    fn note_request(&self, name: &str, bytes: &[u8]) {
        self.requests.borrow_mut().push((name.to_owned(), String::from_utf8_lossy(bytes).into_owned()));
    }

    fn character(&self, name: &str) -> Character {
        // The null server, which takes almost no time.
        self.characters.borrow().get(name).cloned().unwrap_or_else(|| Character::taking_us(1.0))
    }

    /// Whether the user has interrupted.
    pub(crate) fn stopped(&self) -> bool {
        self.interrupted_in_slice.get().is_some_and(|at| self.slices.get() >= at)
    }

    /// Whether the load host is lost.
    fn has_lost_host(&self) -> bool {
        self.lost_after_asks.get().is_some_and(|after| self.asks.get() > after)
    }

    fn at(&self, address: &Address) -> (String, Duration) {
        let Address::Tcp(address) = address else { panic!("fakes listen on ports") };
        self.places.borrow()[usize::from(address.port())].clone()
    }
}

/// The clock. Time passes only while something waits or is loaded.
pub(crate) struct FakeClock(pub Rc<World>);

impl Clock for FakeClock {
    fn now(&self) -> Duration {
        self.0.now.get()
    }

    fn unix_ms(&self) -> u64 {
        1_700_000_000_000 + self.0.now.get().as_millis() as u64
    }

    fn sleep(&self, duration: Duration) {
        self.0.now.set(self.0.now.get() + duration);
    }
}

/// The machine.
pub(crate) struct FakeHost(pub Rc<World>);

impl Host for FakeHost {
    fn start(&self, spec: &ProcessSpec<'_>) -> Result<Box<dyn Process>, StartError> {
        let (world, name) = (&self.0, spec.name.to_owned());
        world.note(format!("start {name}"));
        if world.character(&name).cannot_start {
            return Err(StartError::Spawn { name, reason: "no such file".into() });
        }
        let mut places = world.places.borrow_mut();
        places.push((name.clone(), world.now.get()));
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, places.len() as u16 - 1));
        world.awake.borrow_mut().insert(name.clone(), true);
        let process = FakeProcess {
            world: Rc::clone(world),
            name,
            address: Address::Tcp(address),
            log: spec.log.clone(),
            begun: world.now.get(),
        };
        Ok(Box::new(process))
    }

    fn run(
        &self,
        name: &str,
        command: &ShellCommand,
        _: &[usize],
        limit: Duration,
        _: &dyn Fn() -> bool,
    ) -> Result<Ran, StartError> {
        self.0.note(format!("run {name}: {}", command.shown()));
        let forever = self.0.character(name).builds_forever;
        Ok(if forever { Ran::TooLong(limit) } else { Ran::Ended(ExitStatus::default()) })
    }

    fn pin(&self, _: &[usize]) -> io::Result<()> {
        Ok(())
    }

    fn keep_awake(&self, _: u32, _: &[usize]) -> io::Result<Awake> {
        Err(io::Error::other("a made-up machine never sleeps"))
    }

    fn hold_to_limits(&self, _: &Plan) -> Result<Option<DelegatedGroup>, LimitsError> {
        Ok(None)
    }

    fn monitor(&self, cpus: &[usize], generator: &[usize]) -> Monitor {
        let nowhere = Hierarchy::parse("", "", Path::new("/nowhere"));
        Monitor::under(self.0.proc.path(), cpus, generator, &nowhere)
    }

    fn can_profile(&self) -> Result<(), ProfileError> {
        self.0.unprofiled.borrow().clone().map_or(Ok(()), Err)
    }

    fn take_left_behind(&self) -> Vec<Finding> {
        Vec::new()
    }
}

struct FakeProcess {
    world: Rc<World>,
    name: String,
    address: Address,
    log: PathBuf,
    begun: Duration,
}

impl Process for FakeProcess {
    fn name(&self) -> &str {
        &self.name
    }

    fn address(&self) -> &Address {
        &self.address
    }

    fn log(&self) -> &Path {
        &self.log
    }

    fn ended(&self) -> Option<ExitStatus> {
        let borne = self.world.borne.borrow().get(&self.name).copied().unwrap_or(0);
        let fate = self.world.character(&self.name).dies_in_slice?;
        (borne >= fate).then(|| ExitStatus::from_raw(9))
    }

    fn age(&self) -> Duration {
        self.world.now.get() - self.begun
    }

    fn processes(&self) -> Vec<Pid> {
        Vec::new()
    }

    fn freeze(&self) -> io::Result<()> {
        self.world.note(format!("freeze {}", self.name));
        self.world.awake.borrow_mut().insert(self.name.clone(), false);
        Ok(())
    }

    fn thaw(&self) -> io::Result<()> {
        self.world.note(format!("thaw {}", self.name));
        self.world.awake.borrow_mut().insert(self.name.clone(), true);
        Ok(())
    }

    fn cpu_ns(&self) -> (u64, &'static str) {
        (self.world.used_ns.borrow().get(&self.name).copied().unwrap_or(0), "made up")
    }

    fn cpu_split(&self) -> Option<(u64, u64)> {
        None
    }

    fn instructions(&self) -> Option<Arc<Instructions>> {
        None
    }

    fn switches(&self) -> BTreeMap<i32, (u64, u64)> {
        BTreeMap::new()
    }

    fn page_faults(&self) -> Option<u64> {
        Some(0)
    }

    fn system_calls(&self) -> Option<u64> {
        None
    }

    fn begin_profile(&self) -> Result<(), ProfileError> {
        self.world.note(format!("profile {}", self.name));
        self.world.profiled_ns.borrow_mut().insert(self.name.clone(), self.cpu_ns().0);
        Ok(())
    }

    /// One sample for each millisecond of CPU time, in a function with the name of the contender.
    fn end_profile(&self, _: &Path) -> Result<Stacks, ProfileError> {
        let begun = self.world.profiled_ns.borrow_mut().remove(&self.name).ok_or(ProfileError::NotStarted)?;
        let samples = (self.cpu_ns().0 - begun) / 1_000_000;
        let function = Function { name: format!("serve_{}", self.name), own: samples, ..Function::default() };
        Ok(Stacks {
            samples,
            functions: vec![function],
            calls: vec![(None, 0, samples)],
            ..Stacks::default()
        })
    }

    fn pss_bytes(&self) -> Option<u64> {
        Some(1 << 20)
    }

    fn ask_to_stop(&mut self) {}

    fn stop(self: Box<Self>) {}
}

/// Like a real process, it stops when it is dropped.
impl Drop for FakeProcess {
    fn drop(&mut self) {
        self.world.note(format!("stop {}", self.name));
        self.world.awake.borrow_mut().remove(&self.name);
    }
}

/// The way to a load host.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FakeLink {
    /// How long a message to the host and its answer take.
    pub round_trip: Duration,
    /// What the host receives at most.
    pub bytes_per_s: f64,
    /// Bytes of an answer.
    pub answer_bytes: u64,
}

/// The load generator.
pub(crate) struct FakeGenerator(pub Rc<World>);

impl LoadGenerator for FakeGenerator {
    fn ask(
        &self,
        all: &[(&Address, &Question)],
        _: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Vec<Result<Answer, NoAnswer>>> {
        let asked: Vec<(String, Duration)> = all.iter().map(|(address, _)| self.0.at(address)).collect();
        let names: Vec<&str> = asked.iter().map(|(name, _)| name.as_str()).collect();
        self.0.note(format!("ask {}", names.join(" ")));
        self.0.asks.set(self.0.asks.get() + 1);
        if self.0.has_lost_host() {
            let lost = || NoAnswer::plain("the load host a was lost");
            return Some(all.iter().map(|_| Err(lost())).collect());
        }
        for (name, (_, question)) in names.iter().zip(all) {
            self.0.note_request(name, &question.bytes);
        }
        let answer = |((name, begun), (address, _)): (&(String, Duration), &(&Address, &Question))| {
            let character = self.0.character(name);
            if self.0.now.get() - *begun < character.start {
                return Err(NoAnswer::plain("connection refused"));
            }
            let body = character.body.replace("{start}", &format!("start-of-{name}-{address}")).into_bytes();
            Ok(Answer { status: 200, headers: Vec::new(), body, keep_alive: true })
        };
        (!stopped()).then(|| asked.iter().zip(all).map(answer).collect())
    }

    fn open(&self, config: SessionConfig) -> Result<Box<dyn LoadSession>, OpenError> {
        let (name, _) = self.0.at(&config.address);
        self.0.note(format!("open {name}"));
        self.0.note_request(&name, &config.requests.prepared()[0].bytes);
        Ok(Box::new(FakeSession { world: Rc::clone(&self.0), name, slices: 0 }))
    }

    fn set_link(&self, link: Option<&Link>) -> Result<(), String> {
        if link.is_some() || self.0.shaped.get() {
            self.0.note(if link.is_some() { "a link" } else { "no link" }.to_owned());
        }
        self.0.shaped.set(link.is_some());
        Ok(())
    }

    fn measure_link(&self) -> Result<Option<LinkReading>, String> {
        if !self.0.shaped.get() {
            return Ok(None);
        }
        self.0.note("measure the link".to_owned());
        Ok(Some(LinkReading {
            plain_round_trip_ns: 30_000,
            round_trip_ns: 10_030_000,
            round_trips: 100,
            rate_bits_per_s: None,
            sent: (1_000, 1_000),
            lost: (0, 0),
            tunnel: None,
        }))
    }

    fn take_load_hosts(&self) -> Option<LoadHostsWork> {
        self.0.link.get()?;
        let host = LoadHostWork { name: "a".into(), connections: 2, ..self.0.work.take() };
        Some(LoadHostsWork { hosts: vec![host], start_skews: vec![] })
    }

    fn bandwidth(&self, config: &SessionConfig) -> Option<Result<LinkBandwidth, String>> {
        let link = self.0.link.get()?;
        self.0.note(format!("bandwidth of {}", self.0.at(&config.address).0));
        let one = Bandwidth { payload_bytes_per_s: link.bytes_per_s, interface_bytes_per_s: None };
        Some(Ok(LinkBandwidth { hosts: vec![one], together: one }))
    }

    fn lost(&self) -> Option<Finding> {
        let lost = || Finding::warn("host-lost", "the load host a was lost", "look at the load host");
        self.0.has_lost_host().then(lost)
    }
}

struct FakeSession {
    world: Rc<World>,
    name: String,
    /// Number of slices since the start.
    slices: usize,
}

impl LoadSession for FakeSession {
    fn slice(&mut self, order: &SliceOrder) -> Result<Tally, SessionError> {
        let (world, length) = (&self.world, order.limit.duration.unwrap());
        world.note(format!("slice {} {}", self.name, length.as_millis()));
        if let Pacer::Recorded { from_ns, speed, .. } = &order.pacer {
            world.note(format!("replay {} from {from_ns} at {speed}, position {}", self.name, order.start));
        }
        let awake: Vec<String> =
            world.awake.borrow().iter().filter(|(_, awake)| **awake).map(|(name, _)| name.clone()).collect();
        assert_eq!(awake, [self.name.as_str()], "only who is loaded is awake");
        world.slices.set(world.slices.get() + 1);
        *world.borne.borrow_mut().entry(self.name.clone()).or_default() += 1;
        // A small variation, the same in every run: up to 1 % either way.
        let luck = 1.0 + 0.02 * ((world.slices.get() * 7_919 % 101) as f64 / 100.0 - 0.5);
        let character = world.character(&self.name);
        let (colder, over) = character.cold;
        let cold = colder * over.saturating_sub(self.slices) as f64 / over as f64;
        self.slices += 1;
        let service_ns = character.service_us * 1e3 * (1.0 + cold) * luck;
        let length_ns = length.as_nanos() as u64;
        let due = match order.pacer.due_times() {
            Some(times) => times.take_while(|ns| *ns < length_ns).count() as u64,
            None => (length_ns as f64 / service_ns) as u64,
        };
        // Requests that cannot be answered in time queue up, and their answers arrive after the last due time.
        let elapsed_ns = length_ns.max((due as f64 * service_ns) as u64);
        world.now.set(world.now.get() + Duration::from_nanos(elapsed_ns));
        if let Some(link) = world.link.get() {
            // The order travels there, and its results travel back.
            world.now.set(world.now.get() + link.round_trip);
            let mut work = world.work.borrow_mut();
            work.share.requests += due;
            work.share.bytes_read += due * link.answer_bytes;
            work.share.loaded_ns += elapsed_ns;
            work.round_trips.push(link.round_trip);
            work.start_delays.push(Duration::from_micros(100));
            if world.silent_in_slice.get() == Some(world.slices.get()) {
                work.silence = Some(Duration::from_secs(3));
            }
            work.external = Some(ExternalReading { steal_share: 0.01, foreign_share: Some(0.02) });
        }
        *world.used_ns.borrow_mut().entry(self.name.clone()).or_default() += (due as f64 * service_ns) as u64;
        let mut tally = Tally {
            due,
            completions: due,
            in_time: due,
            loading_ns: length_ns,
            behind: order.pacer.due_times().map(|_| Behind {
                requests: (elapsed_ns - length_ns) as f64 / elapsed_ns as f64 * due as f64,
                of: due as f64,
            }),
            rates: vec![RatePiece { counted: due, first_ns: 0, last_ns: elapsed_ns }],
            elapsed_ns,
            wall_ns: elapsed_ns,
            cpu_ns: elapsed_ns / 10,
            ..Tally::default()
        };
        if character.refuses_full_speed && order.pacer.due_times().is_none() {
            // A refusal takes far less time than an answer.
            let refused = due * 29;
            (tally.outcomes.ok, tally.outcomes.status) = (due, refused);
            (tally.due, tally.completions) = (due + refused, due + refused);
        } else {
            tally.outcomes.ok = due;
        }
        for tenth in 0..10 {
            let waited_ns = (elapsed_ns - length_ns) / 10 * (tenth + 1);
            tally.latency.record_many(service_ns as u64 + waited_ns, (due / 10).max(1));
        }
        Ok(tally)
    }

    fn set_handicap(&self, _: Duration) -> Result<(), SessionError> {
        Ok(())
    }
}
