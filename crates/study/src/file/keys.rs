//! The keys of `study.toml`, table by table: the reader accepts these, and the book's reference is made from them.
//!
//! Owns: names and meanings of keys. Must not know: how a value is read.

/// The keys of one table of the file.
#[derive(Debug)]
pub struct KeyTable {
    /// The table's name in messages, and in the comment of the book that says where its keys go.
    pub name: &'static str,
    /// Each key and what it means, in Markdown.
    pub keys: &'static [(&'static str, &'static str)],
}

impl KeyTable {
    /// The keys alone.
    pub(super) fn words(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.keys.iter().map(|(key, _)| *key)
    }
}

/// All tables.
pub const KEY_TABLES: [&KeyTable; 16] = [
    &STUDY,
    &DATASET,
    &SERVICE,
    &CONTENDER,
    &NEED,
    &COLLECTOR,
    &PROBE,
    &REQUESTS_FROM,
    &VOLATILE,
    &SCENARIO,
    &REQUEST,
    &LINK,
    &SWEEP,
    &CLAIM,
    &GENERATOR,
    &HOST,
];

pub(super) const STUDY: KeyTable = KeyTable {
    name: "a study",
    keys: &[
        ("name", "The study's name, which is part of file names. Default: the name of its folder."),
        ("title", "One line about the study: the report's title."),
        (
            "machine_matches",
            "`true`: this machine is like that of the published figures. An \
             [audit](audit.md#against-this-machine) then also compares figures as they are.",
        ),
        ("dataset", "How the data is made: one table `[dataset]`."),
        ("service", "Programs that contenders need and that are not raced: `[[service]]`, any number."),
        ("contender", "The servers to race: `[[contender]]`, at least one."),
        ("probe", "The contract: `[[probe]]`, at least one."),
        ("scenario", "The loads: `[[scenario]]`, any number."),
        ("claim", "Published numbers, for an [audit](audit.md): `[[claim]]`, any number."),
        ("generator", "Load generators that an audit measures: `[[generator]]`, any number."),
        ("host", "The machines of a race, if it does not run on this one: `[[host]]`, any number."),
    ],
};

pub(super) const DATASET: KeyTable = KeyTable {
    name: "[dataset]",
    keys: &[
        ("command", "Makes the data. It runs in the study's folder and writes `{output}`. Required."),
        ("output", "The file's name in the work folder. Contenders get its path as `{dataset}`. Required."),
        (
            "inputs",
            "Files that the data depends on: deadheat makes the data again when their contents change.",
        ),
        ("tmpfs", "`true`: keep the data in memory, under `/dev/shm`."),
    ],
};

pub(super) const SERVICE: KeyTable = KeyTable {
    name: "[[service]]",
    keys: &[
        ("name", "Letters, digits, `_` and `-`. Required."),
        ("command", "Starts the service. Required."),
        ("folder", "Where its commands run. Default: the study's folder."),
        (
            "env",
            "Added to the environment: `{ LEVEL = 2 }`. Wins over what deadheat sets, except for `PORT` and `SOCKET`.",
        ),
        ("port", "The port it listens on. Default: a free one."),
        ("socket", "`true`: it listens on a unix socket, `{socket}`."),
        (
            "ready",
            "A command that succeeds once the service is ready. The service is up when it accepts a connection \
             and this command succeeds.",
        ),
        (
            "reset",
            "A command that brings its data back to the same state. deadheat runs it before each epoch, while the \
             service is up and no contender is.",
        ),
        ("stop", "A command that ends it."),
        (
            "signal",
            "The signal that ends it, instead of `stop`: `TERM`, `INT`, `QUIT`, `HUP`, `USR1` or `USR2`. Default: \
             `TERM`.",
        ),
        ("grace", "How long it may take to end before deadheat kills it; at most `\"120s\"`."),
    ],
};

pub(super) const CONTENDER: KeyTable = KeyTable {
    name: "[[contender]]",
    keys: &[
        ("name", "The contender's name. Default: the name of its program."),
        (
            "command",
            "Starts the server. Required, unless it is a container: then the words that follow the image.",
        ),
        (
            "image",
            "The contender is a [container](containers.md) of this image: `\"localhost/mine:1\"`. With `containerfile`: \
             the image's name.",
        ),
        (
            "containerfile",
            "The contender is a container of the image that this file describes; deadheat builds it.",
        ),
        ("pull", "Of a container. `true`: fetch the image before the race. Default: it must be there."),
        (
            "engine",
            "Of a container: `\"podman\"`, `\"docker\"` or `\"auto\"`. Default: `\"auto\"`, the first that is installed.",
        ),
        ("network", "Of a container: `\"host\"` or `\"bridge\"`. Default: `\"host\"`."),
        ("volumes", "Of a container: folders that it sees, such as `[\"{study}/data:/data:ro\"]`."),
        ("user", "Of a container: the user inside, `\"1000\"`. Default: the image's."),
        ("cpus", "Of a container: a quota of CPU time, in cores."),
        ("cpuset", "Of a container: its processors. Default: the contenders'."),
        ("memory", "Of a container: a limit on memory, `\"512MB\"`."),
        ("folder", "Where its commands run. Default: the study's folder."),
        ("env", "Added to the environment."),
        (
            "needs",
            "What must exist on this machine. If anything is missing, deadheat leaves the contender out.",
        ),
        (
            "version",
            "A command that prints the contender's version in its first line. `--resume` runs it again, and \
             refuses to continue with a different version.",
        ),
        (
            "build",
            "A command that runs once before each race; of a container, before its image is built. With `{seed}` in it, it \
             runs before each epoch, with another seed.",
        ),
        ("services", "Names of services that must be up first."),
        (
            "measures",
            "Commands that measure something inside its runtime, by name: `{ serialize = \"node measure.mjs\" }`. \
             The last line that a command prints is `{\"value\": 1.28, \"unit\": \"s\"}`; less is better.",
        ),
        (
            "artefact",
            "A file or folder that you deploy for this contender, or a list of them. The report shows its size.",
        ),
        (
            "collector",
            "The garbage collector of its runtime: `\"v8\"` (Node.js, Deno), `\"javascriptcore\"` (Bun) or \
             `\"go\"`; or a table. deadheat measures its pauses in a [diagnostic \
             pass](method.md#collector-pauses).",
        ),
        ("tls", "`false`: it speaks plain HTTP only, and is left out of scenarios [over TLS](#https)."),
        ("port", "The port it listens on. Default: a free one."),
        ("socket", "`true`: it listens on a unix socket, `{socket}`."),
    ],
};

pub(super) const NEED: KeyTable = KeyTable {
    name: "a need",
    keys: &[
        ("file", "A file or folder that must exist; or"),
        ("program", "a program that must be in `PATH`."),
        ("remedy", "What to do if it is missing."),
    ],
};

pub(super) const COLLECTOR: KeyTable = KeyTable {
    name: "`collector`",
    keys: &[
        ("kind", "One of the three words. Required."),
        ("env", "Added to the environment in the diagnostic pass, instead of the default for this kind."),
    ],
};

pub(super) const PROBE: KeyTable = KeyTable {
    name: "[[probe]]",
    keys: &[
        ("name", "The probe's name. Default: its path. Required with `paths_from` and `requests_from`."),
        ("method", "The request method. Default: `GET`."),
        ("path", "The path to request, with its query. Required, or"),
        ("paths_from", "a file with one path on each line, at most 20,000; or"),
        (
            "requests_from",
            "[recorded requests](#your-own-traffic): an access log or a HAR file, or a table that says how to read \
             it.",
        ),
        (
            "values_from",
            "A CSV file with [values](#sessions-and-values): each row makes one request, in which `{column}` stands for \
             its value.",
        ),
        (
            "capture",
            "[Values of the answer](#sessions-and-values) that later probes use as `{name}`: `{ token = \
             \"$.access_token\", csrf = \"header x-csrf-token\", sid = \"cookie sid\" }`. The probe is then not loaded.",
        ),
        ("request_headers", "Headers of the request."),
        ("request_body", "Body of the request."),
        (
            "status",
            "The correct status, or a list of them. Default: any of 200 to 299, so a redirect is correct only if \
             you name it.",
        ),
        ("headers", "Headers that the answer must have, with their values."),
        ("agree_headers", "Headers in which all contenders must agree. Default: `[\"content-type\"]`."),
        ("json", "Values that the answer must have, by JSON path: `{ \"$.count\" = 24 }`."),
        ("volatile", "Values that may change from answer to answer."),
        ("body", "The whole body; or"),
        ("body_file", "the file that contains it."),
        (
            "agree",
            "`false`: contenders need not agree in the body, and it may change from answer to answer: under load, deadheat does not look at it.",
        ),
        ("under_load", "`false`: use this probe only to check parity."),
    ],
};

pub(super) const REQUESTS_FROM: KeyTable = KeyTable {
    name: "`requests_from`",
    keys: &[
        ("file", "The access log or HAR file. Required."),
        (
            "format",
            "`\"combined\"` (nginx, Apache), `\"json\"` (an object on each line), `\"pattern\"` or `\"har\"`. \
             Default: deadheat recognises all but `\"json\"`, which it takes if there are `fields`.",
        ),
        (
            "fields",
            "For JSON: the names of `request` (or `method`, `path` and `query`), `status`, `time`, `host` and \
             `body`, such as `{ path = \"req.url\" }`. Default: usual names.",
        ),
        (
            "pattern",
            "For lines of another format: a regular expression with those names as groups, such as `(?<path>\\S+)`.",
        ),
        ("time_format", "How times are written, as for `strptime`. Default: the usual ways."),
        (
            "allow_methods",
            "Methods that change data and that deadheat may send: `[\"POST\"]`. It always sends `GET`, `HEAD` and \
             `OPTIONS`.",
        ),
        (
            "statuses",
            "Send only requests that were answered with one of these: `\"200-399,404\"`. Default: `\"200-399\"`.",
        ),
        (
            "host",
            "Send only requests to this host. Default: all; of a HAR file, those to the host of its first request.",
        ),
        ("credentials", "`true`: also send the cookies and the authorization that a HAR file contains."),
    ],
};

pub(super) const VOLATILE: KeyTable = KeyTable {
    name: "an entry of `volatile`",
    keys: &[
        ("path", "The JSON path of the value. Required."),
        ("pattern", "A regular expression that the value must match. Required."),
        ("not", "A regular expression that the value must not match."),
        ("agree", "`true`: contenders that are asked at the same moment must give the same value."),
        ("own", "`true`: each contender has its own value, which is always the same."),
    ],
};

pub(super) const SCENARIO: KeyTable = KeyTable {
    name: "[[scenario]]",
    keys: &[
        ("name", "The scenario's name. Required."),
        ("connections", "The number of connections. Default: 64."),
        (
            "rate",
            "Requests per second that are due whatever the answers do, or stages such as \
             `\"1000:2s,4000:500ms\"`. Without `rate`, each connection waits for its answer.",
        ),
        ("arrivals", "With `rate`: `\"poisson\"` or `\"constant\"`. Default: `\"poisson\"`."),
        (
            "zipf",
            "Popularity of the paths: the k-th path is requested in proportion to 1/k to the power of this \
             number.",
        ),
        (
            "order",
            "With one probe that has `requests_from` or `values_from`: `\"sequential\"`, `\"random\"` (each as often as \
             it was recorded) or, for recorded requests, `\"timing\"` (when it was recorded, whatever the answers do). \
             Default: `\"sequential\"`.",
        ),
        ("speed", "With `order = \"timing\"`: how many times as fast as recorded. Default: 1."),
        (
            "warm_up",
            "`false`: measure the contender's first seconds instead of warming it up: 10 s, or `--measure`. Their \
             mean is compared. The record and the figures have each quarter of a second. Not with `rate` or \
             `slo`.",
        ),
        (
            "requests",
            "The probes to load with: `[\"items\", { probe = \"search\", weight = 5 }]`. Default: all that may be \
             loaded.",
        ),
        (
            "metrics",
            "What to compare, the most important first: `\"throughput\"`, `\"cpu\"`, `\"p50\"`, `\"p90\"`, \
             `\"p99\"`, `\"p99_9\"`, `\"memory\"`. Default: `[\"throughput\"]`; with `rate`, `[\"p50\", \"p99\"]`.",
        ),
        (
            "slo",
            "An objective such as `\"p99 < 10ms\"`. deadheat searches for each contender's highest rate that \
             meets it.",
        ),
        ("sweep", "One setting with several values."),
        (
            "ladder",
            "The name of the ladder that this closed load is a rung of. The report shows what each rung adds to a \
             request.",
        ),
        ("rung", "Its place on the ladder, from 1. A server on the first rung does nothing but answer."),
        ("starts", "No load: the number of fresh starts of each contender, 20 to 1,000."),
        ("measure", "No load: the name of a measure that contenders have in `measures`."),
        (
            "tls",
            "`true`: load the contenders over [TLS](#https), with a certificate that deadheat makes for the race. \
             Default: plain HTTP.",
        ),
        (
            "link",
            "The [network](links.md) between load and contenders: `{ rate = \"100mbit\", delay = \"5ms\" }`. Default: \
             this machine's own.",
        ),
        ("cpus", "A quota of CPU time, in cores: `0.5`."),
        ("cpuset", "The contender's cores: `[0, 1]`."),
        ("memory", "A limit on memory: `\"512MB\"`."),
    ],
};

pub(super) const REQUEST: KeyTable = KeyTable {
    name: "an entry of `requests`",
    keys: &[("probe", "The probe's name. Required."), ("weight", "Its share. Default: 1.")],
};

pub(super) const LINK: KeyTable = KeyTable {
    name: "a link",
    keys: &[
        ("rate", "Bits per second in each direction: `\"100mbit\"`. Default: no limit."),
        ("delay", "How long a packet is on its way, in each direction: `\"5ms\"`. Default: 0."),
        ("jitter", "By how much the delay varies, up and down: `\"1ms\"`. Default: 0."),
        ("loss", "The share of packets that are lost, in each direction: `\"0.1%\"`. Default: none."),
        ("tunnel", "`\"wireguard\"`: packets are encrypted. Default: they are not."),
    ],
};

/// The settings of a link that a sweep may vary.
pub(super) const SWEEP_OF_LINKS: KeyTable =
    KeyTable { name: "a sweep over a link", keys: &[("rate", "Rates."), ("delay", "Delays.")] };

pub(super) const SWEEP: KeyTable = KeyTable {
    name: "a sweep",
    keys: &[
        ("connections", "Numbers of connections: `[1, 8, 64]`."),
        ("cores", "Numbers of logical processors. deadheat takes one thread of each core first."),
        ("cpus", "Quotas: `[0.5, 1, 2]`."),
        (
            "link",
            "A setting of the link: `link.rate = [\"10mbit\", \"100mbit\"]` or `link.delay = [\"1ms\", \"20ms\"]`.",
        ),
    ],
};

pub(super) const CLAIM: KeyTable = KeyTable {
    name: "[[claim]]",
    keys: &[
        ("source", "Where the number was published. Required."),
        ("contender", "The contender that it is about. Leave it out for a setting that all contenders have."),
        ("baseline", "For a ratio: the contender that it is divided by."),
        ("row", "Which of several published runs it belongs to."),
        ("metric", "What it measures: see [Audit](audit.md#metrics). Required."),
        ("value", "The number, with the digits that were published; or"),
        ("low", "the lower end of a range,"),
        ("high", "and its higher end."),
        ("unit", "Its unit, if the metric's name does not contain it."),
        ("scenario", "The scenario in which it can be tested here."),
        (
            "baseline_scenario",
            "For a ratio between two scenarios: the second scenario. deadheat divides the figure in `scenario` by \
             the figure of `baseline` in this one. Default for `baseline`: `contender`.",
        ),
        ("note", "What a reader should know about it. An audit shows it."),
    ],
};

pub(super) const GENERATOR: KeyTable = KeyTable {
    name: "[[generator]]",
    keys: &[
        ("name", "The generator's name. Required."),
        (
            "command",
            "Runs it. deadheat replaces `{url}`, `{port}`, `{connections}` and `{duration}` (seconds). Required.",
        ),
        ("folder", "Where it runs. Default: the study's folder."),
        (
            "needs",
            "What must exist on this machine. If anything is missing, deadheat leaves the generator out.",
        ),
        (
            "reads",
            "How to read its output: `\"json\"` (the last line is an object with `throughput_rps`), `\"wrk\"` or \
             `\"oha\"`. Default: `\"json\"`.",
        ),
        ("connections", "The number of connections. Default: as many as were published."),
        ("duration", "Seconds of one run, 0.2 to 120. Default: 3."),
        ("body_bytes", "Bytes in the null server's answers. Default: 13."),
        (
            "published",
            "`false`: the published numbers were not measured with it. It is only there for comparison.",
        ),
    ],
};

pub(super) const HOST: KeyTable = KeyTable {
    name: "[[host]]",
    keys: &[
        ("ssh", "The machine, as ssh reaches it: `\"ssh://user@host\"` or `\"ssh://host:2222\"`. Required."),
        (
            "runs",
            "`\"contenders\"`: all contenders and services run there; at most one machine does this. `\"load\"`: it sends \
             load; with several such machines, each sends its share. Required.",
        ),
        (
            "address",
            "The IPv4 address at which the load hosts reach the contenders there. Default: the address of its name, \
             as this machine knows it.",
        ),
        (
            "cpus",
            "The processors of the contenders there, such as `\"0,2-4\"`. Default: half of its cores, or with load \
             hosts all of them.",
        ),
    ],
};

#[cfg(test)]
mod tests {
    use deadheat_record::{Axis, StatusRule};

    use super::*;

    #[test]
    fn a_sweep_takes_every_axis() {
        let mut axes: Vec<String> = SWEEP.words().filter(|word| *word != "link").map(str::to_owned).collect();
        axes.extend(SWEEP_OF_LINKS.words().map(|word| format!("link.{word}")));
        assert_eq!(axes, Axis::ALL.map(Axis::word));
    }

    #[test]
    fn the_statuses_that_are_right_by_default_are_those_of_the_contract() {
        let (_, meaning) = PROBE.keys.iter().find(|(key, _)| *key == "status").unwrap();
        let range = StatusRule::SUCCESS;
        assert!(
            meaning.contains(&format!("Default: any of {} to {},", range.start(), range.end())),
            "{meaning}"
        );
    }
}
