//! Every gate and every finding of deadheat in one table: code, limits, conditions in words, remedies.
//!
//! Race, load, doctor and compare read it, and the book's tables are made from it. How a gate's reading comes about is beside it, in this
//! folder, in `doctor` and in `compare`.

use deadheat_record::{Finding, Metric, Severity};

use super::reading::Reading;

/// A limit that nothing is over.
pub const NEVER: f64 = f64::INFINITY;
/// [`LITTLES_LAW`] of an open load, whose requests in flight change all the time.
pub const LITTLE_OPEN: f64 = 0.05;
/// A lag up to this is within the resolution of the histograms: in older records their smallest step was 512 ns, whatever the latency.
pub(crate) const GRAIN_NS: f64 = 1_024.0;

/// Which command says it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// `deadheat race`, and `report` of its record.
    Race,
    /// `deadheat load`.
    Load,
    /// `deadheat doctor`.
    Doctor,
    /// `deadheat compare`.
    Compare,
}

/// What one command says of a gate.
#[derive(Debug, Clone, Copy)]
pub struct GateText {
    /// When it warns; `{warn}` stands for the limit. Empty: never.
    pub warns: &'static str,
    /// When it takes the number away; `{invalid}` stands for the limit. Empty: never.
    pub invalid: &'static str,
    /// What to do about it: the usual remedy, then those of other cases.
    pub remedies: &'static [&'static str],
}

/// A gate: a check that weakens a number or takes it away.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// Stable, kebab-case.
    pub code: &'static str,
    /// A reading over this warns; [`NEVER`] where other things than one number decide.
    pub warn: f64,
    /// A reading over this takes the number away.
    pub invalid: f64,
    /// What a race says.
    pub race: Option<GateText>,
    /// What a lone load says.
    pub load: Option<GateText>,
    /// What doctor says.
    pub doctor: Option<GateText>,
    /// What a comparison says.
    pub compare: Option<GateText>,
}

impl Gate {
    const fn new(code: &'static str, warn: f64, invalid: f64) -> Self {
        Self { code, warn, invalid, race: None, load: None, doctor: None, compare: None }
    }

    /// What a command says of it.
    pub fn text(&self, by: By) -> Option<&GateText> {
        match by {
            By::Race => self.race.as_ref(),
            By::Load => self.load.as_ref(),
            By::Doctor => self.doctor.as_ref(),
            By::Compare => self.compare.as_ref(),
        }
    }

    /// A remedy of a command: the first, or that of another case. Empty where the table has none, which a test forbids.
    pub(crate) fn remedy(&self, by: By, case: usize) -> &'static str {
        self.text(by).and_then(|text| text.remedies.get(case)).copied().unwrap_or_default()
    }

    /// How much a reading weakens the number.
    pub(crate) fn severity(&self, reading: f64) -> Option<Severity> {
        if reading > self.invalid {
            Some(Severity::Invalid)
        } else {
            (reading > self.warn).then_some(Severity::Warn)
        }
    }

    /// What it says of a number that was read.
    pub(crate) fn read(&'static self, by: By, reading: f64, message: impl Into<String>) -> Reading {
        self.over(by, self.severity(reading), message)
    }

    /// What it says of a number that is over the limit of that severity.
    pub(crate) fn over(
        &'static self,
        by: By,
        severity: Option<Severity>,
        message: impl Into<String>,
    ) -> Reading {
        let limit = severity.map(|_| self.limit(severity)).filter(|limit| *limit > 0.0);
        Reading { limit, ..self.say(by, severity, message) }
    }

    /// The limit of a severity; that of a warning for a reading that is within it.
    pub(crate) fn limit(&self, severity: Option<Severity>) -> f64 {
        if severity == Some(Severity::Invalid) { self.invalid } else { self.warn }
    }

    /// What it says where more than one number decides.
    pub(crate) fn say(
        &'static self,
        by: By,
        severity: Option<Severity>,
        message: impl Into<String>,
    ) -> Reading {
        let (metrics, message) = (Vec::<Metric>::new(), message.into());
        Reading {
            gate: self,
            by,
            severity,
            contender: None,
            metrics,
            message,
            remedy: self.remedy(by, 0),
            limit: None,
        }
    }

    /// Its finding, with the usual remedy.
    pub(crate) fn finding(&self, by: By, severity: Severity, message: impl Into<String>) -> Finding {
        Finding { severity, ..Finding::warn(self.code, message, self.remedy(by, 0)) }
    }

    /// A warning, with the usual remedy.
    pub fn warning(&self, by: By, message: impl Into<String>) -> Finding {
        self.finding(by, Severity::Warn, message)
    }

    /// Its limits' words, with the limits in them.
    pub fn conditions(&self, by: By) -> Option<(String, String)> {
        let share = |limit: f64| format!("{} %", (limit * 1e8).round() / 1e6);
        let text = self.text(by)?;
        Some((
            text.warns.replace("{warn}", &share(self.warn)),
            text.invalid.replace("{invalid}", &share(self.invalid)),
        ))
    }
}

/// Every code that a command gives by itself, in the table's order.
pub fn codes(by: By) -> impl Iterator<Item = &'static str> {
    GATES.iter().filter(move |gate| gate.text(by).is_some()).map(|gate| gate.code)
}

/// `not-pinned`.
pub static NOT_PINNED: Gate = Gate {
    race: Some(GateText {
        warns: "contenders and generator share their cores: a contender that answers slowly pays for waking the generator",
        invalid: "",
        remedies: &["give each its own cores with --server-cpus and --load-cpus"],
    }),
    ..Gate::new("not-pinned", NEVER, NEVER)
};

/// `processors-sleep`.
pub static PROCESSORS_SLEEP: Gate = Gate {
    race: Some(GateText {
        warns: "idle processors of contenders [sleep](method.md#the-contenders-cores-stay-awake): an ordinary user on bare metal, `--cpu-latency any`, or contenders in another control group or session than deadheat",
        invalid: "",
        remedies: &[
            "race with --cpu-latency 0",
            "race as root, or with --cpu-latency 0",
            "start contenders without setsid; compare contenders in containers at full load; limits on CPU time need control groups of version 1",
        ],
    }),
    doctor: Some(GateText {
        warns: "idle processors cannot be kept awake, or `--cpu-latency any` lets them sleep",
        invalid: "",
        remedies: &[
            "race with `--cpu-latency 0`, run as root, or `sudo chmod a+w /dev/cpu_dma_latency`, so that they [stay awake](method.md#the-contenders-cores-stay-awake)",
        ],
    }),
    ..Gate::new("processors-sleep", NEVER, NEVER)
};

/// `few-epochs`.
pub static FEW_EPOCHS: Gate = Gate {
    race: Some(GateText {
        warns: "fewer epochs count than the first look needs",
        invalid: "",
        remedies: &[
            "continue with --resume",
            "give the race more time with --budget",
            "race again on a quieter machine; `deadheat doctor` shows what disturbs this one",
            "fix the other findings first, then race again",
        ],
    }),
    ..Gate::new("few-epochs", NEVER, NEVER)
};

/// `not-server-bound`.
pub static NOT_SERVER_BOUND: Gate = Gate {
    race: Some(GateText {
        warns: "closed load: over {warn} of the contender's cores stayed unused, by itself and its services",
        invalid: "",
        remedies: &[
            "use more connections, or find out what it waits for: a lock, a disk, a database, one thread",
        ],
    }),
    ..Gate::new("not-server-bound", 0.1, NEVER)
};

/// `generator-saturated`.
pub static GENERATOR_SATURATED: Gate = Gate {
    race: Some(GateText {
        warns: "the generator used over {warn} of its threads' time, and the contender was not at its limit under a closed load",
        invalid: "over {invalid}",
        remedies: &[
            "give the generator more cores with --load-cpus, or the contender fewer with --server-cpus",
            "use more connections: the generator has no more threads than connections",
        ],
    }),
    load: Some(GateText {
        warns: "the generator was busy for over {warn} of its time (loads of 100 ms and longer)",
        invalid: "over {invalid}",
        remedies: &[
            "give it more threads with -t and their own CPUs with --cpus, or lower --rate",
            "give it more threads with -t and their own CPUs with --cpus, or compare with --ceiling",
        ],
    }),
    ..Gate::new("generator-saturated", 0.7, 0.85)
};

/// `mismatch`.
pub static MISMATCH: Gate = Gate {
    race: Some(GateText {
        warns: "any answer differs from the expected one; in a search for a peak, in its body",
        invalid: "over {invalid}",
        remedies: &[
            "find out with `deadheat check` and the contender's log why it answers differently under load",
        ],
    }),
    load: Some(GateText {
        warns: "any",
        invalid: "over {invalid} of the requests",
        remedies: &[
            "if bodies may differ, say so with --expect length or --expect any; else find out what changes under load",
        ],
    }),
    ..Gate::new("mismatch", 0.0, 0.001)
};

/// `errors`.
pub static ERRORS: Gate = Gate {
    race: Some(GateText {
        warns: "any request got no answer",
        invalid: "over {invalid} of all; for p99: over 1 % of one epoch's requests (other percentiles alike)",
        remedies: &[
            "look into the contender's log; lower the number of connections or the rate until all are answered",
        ],
    }),
    load: Some(GateText {
        warns: "any",
        invalid: "over {invalid} of the requests",
        remedies: &[
            "look into the server's log; lower the rate or the number of connections until all are answered",
        ],
    }),
    ..Gate::new("errors", 0.0, 0.001)
};

/// `steal`.
pub static STEAL: Gate = Gate {
    race: Some(GateText {
        warns: "over {warn} of the time of all rounds, including those left out",
        invalid: "over {invalid}",
        remedies: &["use a machine that is not shared, or race at a quieter hour"],
    }),
    doctor: Some(GateText {
        warns: "over {warn}",
        invalid: "over {invalid}",
        remedies: &["wait for a quieter hour, or use a machine whose cores are yours alone"],
    }),
    ..Gate::new("steal", 0.01, 0.05)
};

/// `stalls`.
pub static STALLS: Gate = Gate {
    race: Some(GateText {
        warns: "open loads and searches for a peak: a core stood still for over half of the share of time that lies beyond the highest percentile (p99: for over 0.5 %)",
        invalid: "",
        remedies: &[
            "use a machine whose processor time is not rationed, race at a quieter hour, or compare throughput",
        ],
    }),
    doctor: Some(GateText {
        warns: "a core stood still for over {warn} of the time",
        invalid: "",
        remedies: &[
            "use a machine whose processor time is not rationed, or compare throughput; when latencies are compared, deadheat leaves out rounds with long stalls",
        ],
    }),
    ..Gate::new("stalls", 0.005, NEVER)
};

/// `foreign-cpu`.
pub static FOREIGN_CPU: Gate = Gate {
    race: Some(GateText {
        warns: "over {warn} of the time of all rounds, including those left out, on the servers' or the generator's cores",
        invalid: "over {invalid}",
        remedies: &[
            "stop other programs (`top` shows them), or choose other cores with --server-cpus and --load-cpus",
        ],
    }),
    doctor: Some(GateText {
        warns: "over {warn}",
        invalid: "over {invalid}",
        remedies: &["stop the programs that the finding names, or wait until they are done"],
    }),
    ..Gate::new("foreign-cpu", 0.02, 0.1)
};

/// `dropped-rounds`.
pub static DROPPED_ROUNDS: Gate = Gate {
    race: Some(GateText {
        warns: "percentiles at a given rate: over {warn} of the rounds are left out",
        invalid: "over {invalid} of the rounds are left out; percentiles at a given rate: over half of them",
        remedies: &["use a quieter machine; `deadheat doctor` shows what disturbs this one"],
    }),
    ..Gate::new("dropped-rounds", 0.2, 0.2)
};

/// `dropped-rounds` of percentiles at a given rate. A short disturbance changes a percentile, so deadheat leaves out more rounds for it, and
/// accepts that.
pub static DROPPED_ROUNDS_OF_TAILS: Gate = Gate { invalid: 0.5, ..DROPPED_ROUNDS };

/// `no-steady-state`.
pub static NO_STEADY_STATE: Gate = Gate {
    race: Some(GateText {
        warns: "from four epochs on: the rate (under an open load, the work per second of CPU time) falls by over 1 % within epochs",
        invalid: "from four epochs on: it climbs by over 1 % within epochs",
        remedies: &[
            "give it a longer --warmup, or find out what it keeps doing (compiling, caching, growing)",
            "its ratio depends on how long an epoch is: race with another --measure, or find out what it keeps doing (filling memory or a table)",
        ],
    }),
    ..Gate::new("no-steady-state", NEVER, NEVER)
};

/// `bimodal-starts`.
pub static BIMODAL_STARTS: Gate = Gate {
    race: Some(GateText {
        warns: "from six epochs on: the rates of a contender's epochs come in two groups far apart, and its ratios to the other contenders differ between them",
        invalid: "",
        remedies: &[
            "find out what differs between its starts (layout of memory, which core, a race during the start); the ratio is that of the mix of both kinds",
        ],
    }),
    ..Gate::new("bimodal-starts", NEVER, NEVER)
};

/// `too-noisy`.
pub static TOO_NOISY: Gate = Gate {
    race: Some(GateText {
        warns: "a decision at the margin would take over twice the maximum number of epochs",
        invalid: "",
        remedies: &[
            "use a quieter machine, ask for a wider --margin, or allow more with --epochs and --budget",
            "use a quieter machine, or ask for a wider --margin",
        ],
    }),
    ..Gate::new("too-noisy", NEVER, NEVER)
};

/// `no-keep-alive`.
pub static NO_KEEP_ALIVE: Gate = Gate {
    race: Some(GateText {
        warns: "the contender closed over {warn} of its connections after an answer, and no request asked for that",
        invalid: "",
        remedies: &["turn keep-alive on, or raise the contender's limit of requests per connection"],
    }),
    ..Gate::new("no-keep-alive", 0.01, NEVER)
};

/// `different-encodings`.
pub static DIFFERENT_ENCODINGS: Gate = Gate {
    race: Some(GateText {
        warns: "contenders encode the same answer differently, for instance with and without gzip",
        invalid: "",
        remedies: &[
            "let all contenders compress alike, or ask for plain answers: the request header `accept-encoding: identity`, by -H or in the probe's request_headers",
        ],
    }),
    ..Gate::new("different-encodings", NEVER, NEVER)
};

/// `parity-relaxed`.
pub static PARITY_RELAXED: Gate = Gate {
    race: Some(GateText {
        warns: "an option of the race (`--ignore-header`, `--ignore-json`, `--parity`) excludes a part of the answers from the comparison",
        invalid: "",
        remedies: &[
            "make the contenders answer alike, or see to it that what differs costs neither of them more",
        ],
    }),
    ..Gate::new("parity-relaxed", NEVER, NEVER)
};

/// `control-differs`.
pub static CONTROL_DIFFERS: Gate = Gate {
    race: Some(GateText {
        warns: "with `--control`: the verdict tells identical code apart, by less than the margin",
        invalid: "with `--control`: the verdict tells identical code apart",
        remedies: &[
            "race again; if it happens again, each start of this service differs from the others: race more epochs (--profile full)",
        ],
    }),
    ..Gate::new("control-differs", NEVER, NEVER)
};

/// `intermittent-slow-slices`.
pub static INTERMITTENT_SLOW_SLICES: Gate = Gate {
    race: Some(GateText {
        warns: "the ratio without the slowest and fastest rounds differs from the ratio of all rounds",
        invalid: "",
        remedies: &[
            "look at the slices over time on the page (--html): one of the two stalls now and then (garbage collector, timer, throttling)",
        ],
    }),
    ..Gate::new("intermittent-slow-slices", NEVER, NEVER)
};

/// `serial-correlation`.
pub static SERIAL_CORRELATION: Gate = Gate {
    race: Some(GateText {
        warns: "from ten epochs on: each epoch's ratio follows the one before, by over 2 standard errors",
        invalid: "",
        remedies: &[
            "race again at another hour or on a machine whose speed does not drift; do not rely on a verdict near its limit",
        ],
    }),
    ..Gate::new("serial-correlation", NEVER, NEVER)
};

/// `send-lag`.
pub static SEND_LAG: Gate = Gate {
    race: Some(GateText {
        warns: "open load: the p99 of the generator's own lag is over {warn} of the median latency",
        invalid: "for p99: the lag's p99 is over {invalid} of the latency's p99; for all other metrics: the lag's p90 is over {invalid} of the median latency. Of the lag, only percentiles with 100 requests beyond them count",
        remedies: &["give the generator more cores with --load-cpus, or lower the rate"],
    }),
    load: Some(GateText {
        warns: "open load: the p99 of the generator's own lag is over {warn} of the median latency",
        invalid: "over {invalid} at the highest of p99, p95, p90, p75, p50 that has 100 requests beyond it",
        remedies: &["give the generator its own CPUs with --cpus, more threads with -t, or lower --rate"],
    }),
    ..Gate::new("send-lag", 0.1, 0.5)
};

/// `offered-not-achieved`.
pub static OFFERED_NOT_ACHIEVED: Gate = Gate {
    race: Some(GateText {
        warns: "open load: the contender kept up with less than 99.5 % of the requests that were due",
        invalid: "under 98 %",
        remedies: &["lower the rate: the contender, or what it waits for, cannot do more"],
    }),
    load: Some(GateText {
        warns: "open load: the server kept up with less than 99.5 % of the requests that were due",
        invalid: "under 98 %",
        remedies: &["lower --rate; the server, or what it waits for, cannot do more"],
    }),
    ..Gate::new("offered-not-achieved", 0.005, 0.02)
};

/// `littles-law`.
pub static LITTLES_LAW: Gate = Gate {
    race: Some(GateText {
        warns: "",
        invalid: "in an epoch, requests in flight differ from throughput times latency by over {invalid} (closed load) or 5 % (open load)",
        remedies: &["this is a defect of deadheat: report it with the record of this race"],
    }),
    load: Some(GateText {
        warns: "",
        invalid: "requests in flight differ from throughput times latency by over {invalid} (closed load) or 5 % (open load)",
        remedies: &["this is a defect of deadheat: report it with the JSON of this load"],
    }),
    ..Gate::new("littles-law", 0.02, 0.02)
};

/// `run-delay`.
pub static RUN_DELAY: Gate = Gate {
    race: Some(GateText {
        warns: "the generator waited for a CPU for over {warn} of the time, and the contender was not at its limit under a closed load; open load: a tenth of the median latency is allowed for each wait",
        invalid: "over {invalid}",
        remedies: &["give the generator its own cores with --load-cpus, and stop other programs on them"],
    }),
    load: Some(GateText {
        warns: "the generator waited for a CPU for over {warn} of the time (loads of 100 ms and longer); open load: a tenth of the median latency is allowed for each wait",
        invalid: "over {invalid}",
        remedies: &["give generator and server their own CPUs: --cpus here, taskset for the server"],
    }),
    ..Gate::new("run-delay", 0.01, 0.05)
};

/// `ceiling`.
pub static CEILING: Gate = Gate {
    race: Some(GateText {
        warns: "the rate, or the peak rate that a search found, is over {warn} of what the generator reaches against a null server in the same session",
        invalid: "over {invalid}",
        remedies: &[
            "give the generator more cores with --load-cpus, or the contender fewer with --server-cpus",
        ],
    }),
    load: Some(GateText {
        warns: "over {warn} of what the generator reaches against a null server",
        invalid: "over {invalid}",
        remedies: &["give the generator more threads with -t and their own CPUs with --cpus"],
    }),
    ..Gate::new("ceiling", 0.5, 0.7)
};

/// `handicap`.
pub static HANDICAP: Gate = Gate {
    race: Some(GateText {
        warns: "closed load: over {warn} slower, beyond 2 standard errors, when the generator works 2 us longer on each request",
        invalid: "",
        remedies: &["give the generator more cores with --load-cpus, or raise the number of connections"],
    }),
    ..Gate::new("handicap", 0.01, NEVER)
};

/// `throttled`.
pub static THROTTLED: Gate = Gate {
    race: Some(GateText {
        warns: "a CPU quota that the scenario did not ask for throttled the contender, or deadheat itself",
        invalid: "deadheat for over {invalid} of the load",
        remedies: &[
            "start it without the quota of its control group, or ask for one with `cpus` in the scenario",
            "run deadheat where no CPU quota is set: not in that container, job or control group",
        ],
    }),
    ..Gate::new("throttled", 0.0, 0.05)
};

/// `frozen-by-signal`.
pub static FROZEN_BY_SIGNAL: Gate = Gate {
    race: Some(GateText {
        warns: "closed load, or CPU time compared under an open load: signals, not control groups, freeze contenders, and slices are shorter than 1 s",
        invalid: "",
        remedies: &["race as root, so that control groups freeze them, or with --slice 1s"],
    }),
    ..Gate::new("frozen-by-signal", NEVER, NEVER)
};

/// `listen-overflows`.
pub static LISTEN_OVERFLOWS: Gate = Gate {
    race: Some(GateText {
        warns: "any",
        invalid: "",
        remedies: &[
            "raise the contender's listen backlog (and net.core.somaxconn), or lower the number of connections",
        ],
    }),
    ..Gate::new("listen-overflows", 0.0, NEVER)
};

/// `retransmits`.
pub static RETRANSMITS: Gate = Gate {
    race: Some(GateText {
        warns: "any",
        invalid: "",
        remedies: &[
            "on one machine, only overload loses packets: lower the number of connections, and stop other network traffic",
            "the network between load hosts and contenders loses packets: lower the load, stop other traffic, and look for a bad cable or a slow switch",
        ],
    }),
    ..Gate::new("retransmits", 0.0, NEVER)
};

/// `link-saturated`.
pub static LINK_SATURATED: Gate = Gate {
    race: Some(GateText {
        warns: "load hosts: in an epoch, a contender's requests or answers took over {warn} of the bandwidth that deadheat measured between load hosts and contenders",
        invalid: "over {invalid}",
        remedies: &[
            "the network may be the limit, and not the contender: use a faster network, smaller answers, or a lower rate",
        ],
    }),
    ..Gate::new("link-saturated", 0.5, 0.7)
};

/// `link-differs`.
pub static LINK_DIFFERS: Gate = Gate {
    race: Some(GateText {
        warns: "",
        invalid: "the link of a scenario is not what the scenario asks for, measured before the race: its delay differs by over 0.1 ms (with jitter, by more than the median of the measured round trips can), its rate by over 2 %, or more or fewer packets were lost than chance explains (once in 1,000 races)",
        remedies: &[
            "race when nothing else runs, or ask for a lower rate or a longer delay: this machine may be too slow for the link",
        ],
    }),
    ..Gate::new("link-differs", 1.0, 1.0)
};

/// `dropped-packets`.
pub static DROPPED_PACKETS: Gate = Gate {
    race: Some(GateText {
        warns: "load hosts: the network interfaces of a load host or of the contenders' machine dropped over {warn} of their packets",
        invalid: "",
        remedies: &[
            "lower the load, or give the interface longer queues (`ethtool -G`); `ip -s link` shows which interface it is",
        ],
    }),
    ..Gate::new("dropped-packets", 0.0001, NEVER)
};

/// `softirq`.
pub static SOFTIRQ: Gate = Gate {
    race: Some(GateText {
        warns: "load hosts: the kernel of a load host or of the contenders' machine used over {warn} of all processors' time for packets and other deferred interrupts (softirq)",
        invalid: "",
        remedies: &[
            "the kernel's work for the network may be the limit: spread it over more cores (receive queues, RPS), or lower the load",
        ],
    }),
    ..Gate::new("softirq", 0.3, NEVER)
};

/// `late-start`.
pub static LATE_START: Gate = Gate {
    race: Some(GateText {
        warns: "load hosts: the p99 of how late they begin slices, or of how far apart, is over {warn} of a slice",
        invalid: "",
        remedies: &[
            "stop other programs on the load hosts and other traffic to them, or race with a longer --slice",
        ],
    }),
    ..Gate::new("late-start", 0.05, NEVER)
};

/// `idle-between-slices`.
pub static IDLE_BETWEEN_SLICES: Gate = Gate {
    race: Some(GateText {
        warns: "load hosts: a contender was not loaded for over {warn} of the time for which it was not frozen, because orders and results were on their way",
        invalid: "",
        remedies: &["race with a longer --slice, or from load hosts with a shorter round trip"],
    }),
    ..Gate::new("idle-between-slices", 0.1, NEVER)
};

/// `swap`.
pub static SWAP: Gate = Gate {
    race: Some(GateText {
        warns: "any",
        invalid: "",
        remedies: &["free memory or switch swap off (`swapoff -a`) while racing"],
    }),
    ..Gate::new("swap", 0.0, NEVER)
};

/// `peak-not-found`.
pub static PEAK_NOT_FOUND: Gate = Gate {
    race: Some(GateText {
        warns: "the search was given up in an epoch after the first, and that epoch is left out",
        invalid: "it was given up in the first epoch, or in any epoch the peak lay outside the rates that are tried or above what the generator can do",
        remedies: &[
            "ask for a stricter objective with --slo",
            "ask for a milder objective with --slo, or compare latencies at a --rate",
            "use a quieter machine, or give the generator more cores with --load-cpus",
            "give the generator more cores with --load-cpus, or ask for a stricter objective with --slo",
        ],
    }),
    ..Gate::new("peak-not-found", NEVER, NEVER)
};

/// `metric-unavailable`.
pub static METRIC_UNAVAILABLE: Gate = Gate {
    race: Some(GateText {
        warns: "fewer than 100 requests of an epoch lie beyond a percentile",
        invalid: "no metric is left",
        remedies: &["measure longer with --measure, or raise the --rate"],
    }),
    ..Gate::new("metric-unavailable", NEVER, NEVER)
};

/// `percentiles`.
pub static PERCENTILES: Gate = Gate {
    load: Some(GateText {
        warns: "",
        invalid: "a higher percentile is lower than a lower one, or latency below service",
        remedies: &["this is a defect of deadheat: report it with the JSON of this load"],
    }),
    ..Gate::new("percentiles", NEVER, NEVER)
};

/// `status`.
pub static STATUS: Gate = Gate {
    load: Some(GateText {
        warns: "any",
        invalid: "over {invalid} of the requests",
        remedies: &["if that status is right, say so with --expect-status; else look into the server's log"],
    }),
    ..Gate::new("status", 0.0, 0.001)
};

/// `unsolicited`.
pub static UNSOLICITED: Gate = Gate {
    load: Some(GateText {
        warns: "any",
        invalid: "over {invalid} of the requests",
        remedies: &[
            "find out what the server sends after its answers: it would count as the answer to the next request",
        ],
    }),
    ..Gate::new("unsolicited", 0.0, 0.001)
};

/// `nothing-measured`.
pub static NOTHING_MEASURED: Gate = Gate {
    load: Some(GateText {
        warns: "",
        invalid: "no request was answered",
        remedies: &["send the server one request by hand, then load it for longer"],
    }),
    ..Gate::new("nothing-measured", NEVER, NEVER)
};

/// `gave-up`.
pub static GAVE_UP: Gate = Gate {
    load: Some(GateText {
        warns: "",
        invalid: "answers stopped coming",
        remedies: &["look into the server's log; --timeout sets how long deadheat waits for an answer"],
    }),
    ..Gate::new("gave-up", NEVER, NEVER)
};

/// `connections-exhausted`.
pub static CONNECTIONS_EXHAUSTED: Gate = Gate {
    load: Some(GateText {
        warns: "open load: a request waited for a connection, and no more could be opened",
        invalid: "",
        remedies: &["allow more with --max-connections, or lower --rate; the wait is part of the latency"],
    }),
    ..Gate::new("connections-exhausted", NEVER, NEVER)
};

/// `connections-failed`.
pub static CONNECTIONS_FAILED: Gate = Gate {
    load: Some(GateText {
        warns: "an attempt to open a connection failed, without costing a request",
        invalid: "",
        remedies: &[
            "let the server take more connections at a time, or lower --max-connections",
            "allow this process more open files (ulimit -n), or lower --max-connections",
            "allow this machine more open files (fs.file-max), or lower --max-connections",
            "give this machine more ports (net.ipv4.ip_local_port_range), or lower --max-connections",
        ],
    }),
    ..Gate::new("connections-failed", NEVER, NEVER)
};

/// `few-samples`.
pub static FEW_SAMPLES: Gate = Gate {
    load: Some(GateText {
        warns: "under 100 requests beyond the 99th percentile",
        invalid: "",
        remedies: &["load for longer with -d, or send more requests with -n"],
    }),
    ..Gate::new("few-samples", NEVER, NEVER)
};

/// `closed-by-server`.
pub static CLOSED_BY_SERVER: Gate = Gate {
    load: Some(GateText {
        warns: "the server closed over {warn} of the connections after an answer",
        invalid: "",
        remedies: &[
            "connecting is part of what is measured; if that is not wanted, let the server keep connections alive",
        ],
    }),
    ..Gate::new("closed-by-server", 0.01, NEVER)
};

/// `retried`.
pub static RETRIED: Gate = Gate {
    load: Some(GateText {
        warns: "any request was sent a second time",
        invalid: "",
        remedies: &[
            "look for dropped requests in the server's log; if there are none, let the server announce the end of a connection with Connection: close, and keep idle ones open for longer",
        ],
    }),
    ..Gate::new("retried", NEVER, NEVER)
};

/// `clamped`.
pub static CLAMPED: Gate = Gate {
    load: Some(GateText { warns: "a time above one hour", invalid: "", remedies: &["lower --timeout"] }),
    ..Gate::new("clamped", NEVER, NEVER)
};

/// `host-lost`.
pub static HOST_LOST: Gate = Gate {
    load: Some(GateText {
        warns: "",
        invalid: "a load host was lost during the load",
        remedies: &["look at the load host and at the network to it, and repeat the load"],
    }),
    ..Gate::new("host-lost", NEVER, NEVER)
};

/// `hosts-differ`.
pub static HOSTS_DIFFER: Gate = Gate {
    load: Some(GateText {
        warns: "the rate of a load host, for each of its connections (closed load) or threads (open load), is over {warn} below that of another",
        invalid: "",
        remedies: &[
            "look for other programs and a slower network on the slower load host, or leave it out: one host that is held up hides what the server can do",
        ],
    }),
    ..Gate::new("hosts-differ", 0.2, NEVER)
};

/// `one-core`.
pub static ONE_CORE: Gate = Gate {
    doctor: Some(GateText {
        warns: "",
        invalid: "servers and generator would share a core",
        remedies: &["use a machine, or allow deadheat (taskset, cpuset), with two whole cores or more"],
    }),
    ..Gate::new("one-core", NEVER, NEVER)
};

/// `shared-siblings`.
pub static SHARED_SIBLINGS: Gate = Gate {
    doctor: Some(GateText {
        warns: "servers and generator on threads of one core",
        invalid: "",
        remedies: &[
            "give whole cores to --server-cpus and --load-cpus, or `echo off | sudo tee /sys/devices/system/cpu/smt/control`",
        ],
    }),
    ..Gate::new("shared-siblings", NEVER, NEVER)
};

/// `cpu-quota`.
pub static CPU_QUOTA: Gate = Gate {
    doctor: Some(GateText {
        warns: "deadheat's own control group has a quota",
        invalid: "",
        remedies: &["remove the quota (`docker run` without `--cpus`; a pod without a CPU limit)"],
    }),
    ..Gate::new("cpu-quota", NEVER, NEVER)
};

/// `governor`.
pub static GOVERNOR: Gate = Gate {
    doctor: Some(GateText {
        warns: "a governor other than `performance`",
        invalid: "",
        remedies: &["`echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/scaling_governor`"],
    }),
    ..Gate::new("governor", NEVER, NEVER)
};

/// `energy-preference`.
pub static ENERGY_PREFERENCE: Gate = Gate {
    doctor: Some(GateText {
        warns: "the processor is set to save energy",
        invalid: "",
        remedies: &[
            "`echo performance | sudo tee /sys/devices/system/cpu/cpu*/cpufreq/energy_performance_preference`",
        ],
    }),
    ..Gate::new("energy-preference", NEVER, NEVER)
};

/// `turbo`.
pub static TURBO: Gate = Gate {
    doctor: Some(GateText {
        warns: "frequencies above the nominal one",
        invalid: "",
        remedies: &[
            "switch it off; the finding names the file, such as `/sys/devices/system/cpu/intel_pstate/no_turbo`",
        ],
    }),
    ..Gate::new("turbo", NEVER, NEVER)
};

/// `thermal-throttling`.
pub static THERMAL_THROTTLING: Gate = Gate {
    doctor: Some(GateText {
        warns: "a core was too hot and slowed down",
        invalid: "",
        remedies: &[
            "let the processor cool down, clean its fans, or lower its highest frequency to one that it can sustain",
        ],
    }),
    ..Gate::new("thermal-throttling", NEVER, NEVER)
};

/// `battery`.
pub static BATTERY: Gate = Gate {
    doctor: Some(GateText {
        warns: "no mains supply",
        invalid: "",
        remedies: &["connect the machine to the mains"],
    }),
    ..Gate::new("battery", NEVER, NEVER)
};

/// `virtual-machine`.
pub static VIRTUAL_MACHINE: Gate = Gate {
    doctor: Some(GateText {
        warns: "there is a hypervisor",
        invalid: "",
        remedies: &[
            "measure ratios here, not absolute figures; for those use bare metal, or a dedicated host with pinned cores",
        ],
    }),
    ..Gate::new("virtual-machine", NEVER, NEVER)
};

/// `clock-source`.
pub static CLOCK_SOURCE: Gate = Gate {
    doctor: Some(GateText {
        warns: "only the kernel can read the clock, or one reading takes over 200 ns",
        invalid: "",
        remedies: &[
            "`echo tsc | sudo tee /sys/devices/system/clocksource/clocksource0/current_clocksource`; where the kernel does not trust it, see `dmesg | grep -i tsc`",
        ],
    }),
    ..Gate::new("clock-source", NEVER, NEVER)
};

/// `memory-nodes`.
pub static MEMORY_NODES: Gate = Gate {
    doctor: Some(GateText {
        warns: "the servers' cores are on several memory nodes",
        invalid: "",
        remedies: &["keep the cores of `--server-cpus` within one memory node"],
    }),
    ..Gate::new("memory-nodes", NEVER, NEVER)
};

/// `swap-in-use`.
pub static SWAP_IN_USE: Gate = Gate {
    doctor: Some(GateText {
        warns: "any",
        invalid: "",
        remedies: &["stop the programs that use the memory, then `sudo swapoff -a`"],
    }),
    ..Gate::new("swap-in-use", NEVER, NEVER)
};

/// `little-memory`.
pub static LITTLE_MEMORY: Gate = Gate {
    doctor: Some(GateText {
        warns: "under 512 MiB available, or allowed to deadheat's own control group",
        invalid: "",
        remedies: &["stop the programs that use the memory, or use a larger machine"],
    }),
    ..Gate::new("little-memory", NEVER, NEVER)
};

/// `no-freezer`.
pub static NO_FREEZER: Gate = Gate {
    doctor: Some(GateText {
        warns: "idle servers are stopped by signals",
        invalid: "",
        remedies: &[
            "run as root, or in a group of your own: `systemd-run --user --scope -p Delegate=yes deadheat ...`",
        ],
    }),
    ..Gate::new("no-freezer", NEVER, NEVER)
};

/// `no-io-uring`.
pub static NO_IO_URING: Gate = Gate {
    doctor: Some(GateText {
        warns: "the generator has to use epoll",
        invalid: "",
        remedies: &[
            "`sudo sysctl -w kernel.io_uring_disabled=0`; or allow io_uring in the container's seccomp profile, or use Linux 6.1 or later",
        ],
    }),
    ..Gate::new("no-io-uring", NEVER, NEVER)
};

/// `huge-pages`.
pub static HUGE_PAGES: Gate = Gate {
    doctor: Some(GateText {
        warns: "the kernel gives huge pages to programs that did not ask for them",
        invalid: "",
        remedies: &["`echo madvise | sudo tee /sys/kernel/mm/transparent_hugepage/enabled`"],
    }),
    ..Gate::new("huge-pages", NEVER, NEVER)
};

/// `fixed-addresses`.
pub static FIXED_ADDRESSES: Gate = Gate {
    doctor: Some(GateText {
        warns: "programs have the same addresses at each start",
        invalid: "",
        remedies: &["`sudo sysctl -w kernel.randomize_va_space=2`"],
    }),
    ..Gate::new("fixed-addresses", NEVER, NEVER)
};

/// `numa-balancing`.
pub static NUMA_BALANCING: Gate = Gate {
    doctor: Some(GateText {
        warns: "the kernel moves memory between several nodes",
        invalid: "",
        remedies: &["`sudo sysctl -w kernel.numa_balancing=0`"],
    }),
    ..Gate::new("numa-balancing", NEVER, NEVER)
};

/// `open-files`.
pub static OPEN_FILES: Gate = Gate {
    doctor: Some(GateText {
        warns: "under 4,096",
        invalid: "under 128",
        remedies: &[
            "raise the hard limit: `nofile` in `/etc/security/limits.conf`, `LimitNOFILE=` of the service, or `docker run --ulimit nofile=65536`",
        ],
    }),
    ..Gate::new("open-files", NEVER, NEVER)
};

/// `few-ports`.
pub static FEW_PORTS: Gate = Gate {
    doctor: Some(GateText {
        warns: "under 10,000",
        invalid: "",
        remedies: &["`sudo sysctl -w net.ipv4.ip_local_port_range='30000 65535'`"],
    }),
    ..Gate::new("few-ports", NEVER, NEVER)
};

/// `listen-backlog`.
pub static LISTEN_BACKLOG: Gate = Gate {
    doctor: Some(GateText {
        warns: "under 256",
        invalid: "",
        remedies: &["`sudo sysctl -w net.core.somaxconn=4096`"],
    }),
    ..Gate::new("listen-backlog", NEVER, NEVER)
};

/// `noise-floor`.
pub static NOISE_FLOOR: Gate = Gate {
    doctor: Some(GateText {
        warns: "detecting 3 % takes over 30 epochs",
        invalid: "detecting 10 % takes over 30 epochs",
        remedies: &[
            "fix what the other findings name; race longer (`--epochs 6..200 --budget 45m`); run doctor again",
        ],
    }),
    ..Gate::new("noise-floor", NEVER, NEVER)
};

/// `false-claim`.
pub static FALSE_CLAIM: Gate = Gate {
    doctor: Some(GateText {
        warns: "a server raced against itself was called faster or slower",
        invalid: "",
        remedies: &[
            "this happens by chance in at most 2.5 % of runs; run doctor again, or test it with `--full`",
        ],
    }),
    ..Gate::new("false-claim", NEVER, NEVER)
};

/// `false-claims`.
pub static FALSE_CLAIMS: Gate = Gate {
    doctor: Some(GateText {
        warns: "more false claims than chance explains: fewer than 5 % of proofs have this many",
        invalid: "fewer than 1 % of proofs have this many",
        remedies: &[
            "trust no verdict from this machine; fix what the other findings name, and run the proof again",
        ],
    }),
    ..Gate::new("false-claims", NEVER, NEVER)
};

/// `plant-missed`.
pub static PLANT_MISSED: Gate = Gate {
    doctor: Some(GateText {
        warns: "under 80 % of the valid races found the planted difference",
        invalid: "",
        remedies: &["race with --profile full (up to 30 epochs), or make the machine quieter"],
    }),
    ..Gate::new("plant-missed", NEVER, NEVER)
};

/// `plant-off`.
pub static PLANT_OFF: Gate = Gate {
    doctor: Some(GateText {
        warns: "the planted difference was over a fifth larger or smaller than asked for",
        invalid: "",
        remedies: &[
            "read the measured difference in its row; a frequency that changes with the load is the usual cause",
        ],
    }),
    ..Gate::new("plant-off", NEVER, NEVER)
};

/// `invalid-races`.
pub static INVALID_RACES: Gate = Gate {
    doctor: Some(GateText {
        warns: "over 20 % of the races were invalid",
        invalid: "and fewer than five valid ones are left",
        remedies: &["read the codes of their findings in `deadheat doctor --full --json -`"],
    }),
    ..Gate::new("invalid-races", NEVER, NEVER)
};

/// `measured-apart`.
pub static MEASURED_APART: Gate = Gate {
    compare: Some(GateText {
        warns: "no reference: changes of the machine between the records are part of every ratio",
        invalid: "",
        remedies: &[
            "race both revisions in one race; or keep one contender the same in both records, and divide by it with `--reference NAME`",
        ],
    }),
    ..Gate::new("measured-apart", NEVER, NEVER)
};

/// `same-record`.
pub static SAME_RECORD: Gate = Gate {
    compare: Some(GateText {
        warns: "",
        invalid: "both files are records of the same race",
        remedies: &["give the record of the old revision first, and that of the new one after it"],
    }),
    ..Gate::new("same-record", NEVER, NEVER)
};

/// `different-machine`.
pub static DIFFERENT_MACHINE: Gate = Gate {
    compare: Some(GateText {
        warns: "other transparent huge pages, address randomization, mitigations, microcode or NUMA balancing",
        invalid: "another processor, number of processors, memory or hypervisor",
        remedies: &[
            "race both revisions on one machine, at best in one race; give it the same settings for both",
        ],
    }),
    ..Gate::new("different-machine", NEVER, NEVER)
};

/// `different-system`.
pub static DIFFERENT_SYSTEM: Gate = Gate {
    compare: Some(GateText {
        warns: "another kernel, distribution, clock source, governor, kind of control groups or limit on waking up",
        invalid: "",
        remedies: &["race the old revision again on the system as it is now"],
    }),
    ..Gate::new("different-system", NEVER, NEVER)
};

/// `different-cores`.
pub static DIFFERENT_CORES: Gate = Gate {
    compare: Some(GateText {
        warns: "the same number of cores, but different ones; of two loads: other load hosts, threads, cores or backend",
        invalid: "of two races: another number of cores for contenders or generator, or load from other machines",
        remedies: &[
            "give both races the same `--server-cpus`, `--load-cpus` and `--load-host`; loads the same `--threads` and `--cpus`",
        ],
    }),
    ..Gate::new("different-cores", NEVER, NEVER)
};

/// `different-load`.
pub static DIFFERENT_LOAD: Gate = Gate {
    compare: Some(GateText {
        warns: "",
        invalid: "another shape, number of connections, rate, or other requests",
        remedies: &["race, or load, both revisions under the same load"],
    }),
    ..Gate::new("different-load", NEVER, NEVER)
};

/// `different-limits`.
pub static DIFFERENT_LIMITS: Gate = Gate {
    compare: Some(GateText {
        warns: "",
        invalid: "contenders had another CPU quota, memory limit or number of cores",
        remedies: &["race both revisions under the same limits"],
    }),
    ..Gate::new("different-limits", NEVER, NEVER)
};

/// `different-contract`.
pub static DIFFERENT_CONTRACT: Gate = Gate {
    compare: Some(GateText {
        warns: "the two races checked answers by different contracts",
        invalid: "",
        remedies: &["race both revisions with the same contract"],
    }),
    ..Gate::new("different-contract", NEVER, NEVER)
};

/// `different-slices`.
pub static DIFFERENT_SLICES: Gate = Gate {
    compare: Some(GateText {
        warns: "other slices, settling times or timeouts",
        invalid: "",
        remedies: &["give both races the same `--slice` and `--timeout`"],
    }),
    ..Gate::new("different-slices", NEVER, NEVER)
};

/// `different-warm-up`.
pub static DIFFERENT_WARM_UP: Gate = Gate {
    compare: Some(GateText {
        warns: "a warm-up over twice as long, or another wake-up of contenders after it",
        invalid: "",
        remedies: &[
            "give both races the same `--warmup`; or race both revisions with the same version of deadheat",
        ],
    }),
    ..Gate::new("different-warm-up", NEVER, NEVER)
};

/// `different-services`.
pub static DIFFERENT_SERVICES: Gate = Gate {
    compare: Some(GateText {
        warns: "other services or another dataset",
        invalid: "",
        remedies: &["race both revisions with the same services and data"],
    }),
    ..Gate::new("different-services", NEVER, NEVER)
};

/// `different-version`.
pub static DIFFERENT_VERSION: Gate = Gate {
    compare: Some(GateText {
        warns: "measured by another version of deadheat",
        invalid: "",
        remedies: &["measure both with the same version"],
    }),
    ..Gate::new("different-version", NEVER, NEVER)
};

/// `different-reference`.
pub static DIFFERENT_REFERENCE: Gate = Gate {
    compare: Some(GateText {
        warns: "the reference was started by another command",
        invalid: "it is of another version",
        remedies: &["divide by a contender that is exactly the same program in both records"],
    }),
    ..Gate::new("different-reference", NEVER, NEVER)
};

/// `unmatched-contender`.
pub static UNMATCHED_CONTENDER: Gate = Gate {
    compare: Some(GateText {
        warns: "a contender is in one record only",
        invalid: "",
        remedies: &["if it has another name in the other record, say so with `--map OLD=NEW`"],
    }),
    ..Gate::new("unmatched-contender", NEVER, NEVER)
};

/// `unmatched-scenario`.
pub static UNMATCHED_SCENARIO: Gate = Gate {
    compare: Some(GateText {
        warns: "a scenario is in one record only",
        invalid: "",
        remedies: &["race the same scenarios in both"],
    }),
    ..Gate::new("unmatched-scenario", NEVER, NEVER)
};

/// `not-raced`.
pub static NOT_RACED: Gate = Gate {
    compare: Some(GateText {
        warns: "a contender was excluded from the old race",
        invalid: "it was excluded from the new one",
        remedies: &["read the reason in that record's report, and race it again"],
    }),
    ..Gate::new("not-raced", NEVER, NEVER)
};

/// `warnings-in-record`.
pub static WARNINGS_IN_RECORD: Gate = Gate {
    compare: Some(GateText {
        warns: "a record has warnings",
        invalid: "",
        remedies: &["read them with `deadheat report RECORD`"],
    }),
    ..Gate::new("warnings-in-record", NEVER, NEVER)
};

/// `one-run-each`.
pub static ONE_RUN_EACH: Gate = Gate {
    compare: Some(GateText {
        warns: "two loads: one run each, so there is no interval and no verdict",
        invalid: "",
        remedies: &["race both revisions in one race: `deadheat race 'OLD COMMAND' 'NEW COMMAND'`"],
    }),
    ..Gate::new("one-run-each", NEVER, NEVER)
};

/// All of them, in the order in which the book lists them.
pub static GATES: [&Gate; 97] = [
    &NOT_PINNED,
    &PROCESSORS_SLEEP,
    &FEW_EPOCHS,
    &NOT_SERVER_BOUND,
    &GENERATOR_SATURATED,
    &MISMATCH,
    &ERRORS,
    &STEAL,
    &STALLS,
    &FOREIGN_CPU,
    &DROPPED_ROUNDS,
    &NO_STEADY_STATE,
    &BIMODAL_STARTS,
    &TOO_NOISY,
    &NO_KEEP_ALIVE,
    &DIFFERENT_ENCODINGS,
    &PARITY_RELAXED,
    &CONTROL_DIFFERS,
    &INTERMITTENT_SLOW_SLICES,
    &SERIAL_CORRELATION,
    &SEND_LAG,
    &OFFERED_NOT_ACHIEVED,
    &LITTLES_LAW,
    &RUN_DELAY,
    &CEILING,
    &HANDICAP,
    &THROTTLED,
    &FROZEN_BY_SIGNAL,
    &LISTEN_OVERFLOWS,
    &RETRANSMITS,
    &LINK_SATURATED,
    &LINK_DIFFERS,
    &DROPPED_PACKETS,
    &SOFTIRQ,
    &LATE_START,
    &IDLE_BETWEEN_SLICES,
    &SWAP,
    &PEAK_NOT_FOUND,
    &METRIC_UNAVAILABLE,
    &PERCENTILES,
    &STATUS,
    &UNSOLICITED,
    &NOTHING_MEASURED,
    &GAVE_UP,
    &CONNECTIONS_EXHAUSTED,
    &CONNECTIONS_FAILED,
    &FEW_SAMPLES,
    &CLOSED_BY_SERVER,
    &RETRIED,
    &CLAMPED,
    &HOST_LOST,
    &HOSTS_DIFFER,
    &ONE_CORE,
    &SHARED_SIBLINGS,
    &CPU_QUOTA,
    &GOVERNOR,
    &ENERGY_PREFERENCE,
    &TURBO,
    &THERMAL_THROTTLING,
    &BATTERY,
    &VIRTUAL_MACHINE,
    &CLOCK_SOURCE,
    &MEMORY_NODES,
    &SWAP_IN_USE,
    &LITTLE_MEMORY,
    &NO_FREEZER,
    &NO_IO_URING,
    &HUGE_PAGES,
    &FIXED_ADDRESSES,
    &NUMA_BALANCING,
    &OPEN_FILES,
    &FEW_PORTS,
    &LISTEN_BACKLOG,
    &NOISE_FLOOR,
    &FALSE_CLAIM,
    &FALSE_CLAIMS,
    &PLANT_MISSED,
    &PLANT_OFF,
    &INVALID_RACES,
    &MEASURED_APART,
    &SAME_RECORD,
    &DIFFERENT_MACHINE,
    &DIFFERENT_SYSTEM,
    &DIFFERENT_CORES,
    &DIFFERENT_LOAD,
    &DIFFERENT_LIMITS,
    &DIFFERENT_CONTRACT,
    &DIFFERENT_SLICES,
    &DIFFERENT_WARM_UP,
    &DIFFERENT_SERVICES,
    &DIFFERENT_VERSION,
    &DIFFERENT_REFERENCE,
    &UNMATCHED_CONTENDER,
    &UNMATCHED_SCENARIO,
    &NOT_RACED,
    &WARNINGS_IN_RECORD,
    &ONE_RUN_EACH,
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_code_stands_once_and_whoever_tells_it_has_a_condition_and_a_remedy() {
        let mut codes: Vec<&str> = GATES.iter().map(|gate| gate.code).collect();
        codes.sort_unstable();
        codes.dedup();
        assert_eq!(codes.len(), GATES.len());
        for gate in GATES {
            assert!(gate.warn <= gate.invalid, "{}", gate.code);
            for by in [By::Race, By::Load, By::Doctor, By::Compare] {
                let Some(text) = gate.text(by) else { continue };
                assert!(!text.warns.is_empty() || !text.invalid.is_empty(), "{}", gate.code);
                assert!(!text.remedies.is_empty() && !text.remedies[0].is_empty(), "{}", gate.code);
            }
        }
    }
}
