//! The command line of the test server: the spelling and the help of every option. This module starts nothing.

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

/// Where the server listens.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Listen {
    /// A TCP port on this machine alone; 0 lets the system choose.
    Tcp(SocketAddr),
    /// A unix socket at this path.
    Socket(PathBuf),
}

/// The versions of TLS that the server accepts.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum TlsVersions {
    #[default]
    Both,
    Only12,
    Only13,
}

/// The group or session to which an idle descendant moves.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) enum Place {
    /// In its parent's process group.
    #[default]
    Same,
    /// The leader of a new process group.
    Group,
    /// The leader of a new session.
    Session,
    /// The leader of a new session whose parent has ended (a daemon).
    Orphan,
}

/// All options of the server. The default is a correct server that answers with a short text.
#[derive(Clone, Debug, Default)]
pub(crate) struct Options {
    pub(crate) host: Option<IpAddr>,
    pub(crate) port: Option<u16>,
    pub(crate) socket: Option<PathBuf>,
    pub(crate) port_file: Option<PathBuf>,
    pub(crate) backlog: Option<u16>,
    pub(crate) tls: bool,
    pub(crate) tls_dir: Option<PathBuf>,
    /// A certificate and its key. Default: a certificate that the test CA signs.
    pub(crate) tls_cert: Option<PathBuf>,
    pub(crate) tls_key: Option<PathBuf>,
    pub(crate) tls_name: Option<String>,
    pub(crate) tls_expired: bool,
    pub(crate) tls_versions: TlsVersions,
    pub(crate) body: Option<String>,
    pub(crate) json: bool,
    pub(crate) counter_token: bool,
    pub(crate) login: bool,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) status: u16,
    pub(crate) spin: Duration,
    /// The number of answers after which half of the initial extra time of `spin` is gone.
    pub(crate) ease: Option<u64>,
    pub(crate) work: u64,
    /// Given, or [`UNHURRIED`] for a server that burns nothing: as fast as the load generator, it would be found at its ceiling.
    pub(crate) delay: Option<Duration>,
    /// How long a slow answer takes, and which share of all answers is slow.
    pub(crate) slow: Option<(Duration, f64)>,
    pub(crate) stall: Option<(Duration, Duration)>,
    pub(crate) log: Option<PathBuf>,
    pub(crate) start_delay: Duration,
    pub(crate) lifetime: Duration,
    pub(crate) never_listen: bool,
    pub(crate) never_answer: bool,
    pub(crate) close_each: bool,
    pub(crate) close_without_answer: bool,
    pub(crate) garbage: bool,
    pub(crate) truncate: bool,
    pub(crate) exit: Option<u8>,
    pub(crate) exit_after: Option<u64>,
    pub(crate) differ_under_load: Option<u64>,
    pub(crate) differ_every: Option<u64>,
    pub(crate) shorter_under_load: Option<u64>,
    pub(crate) status_under_load: Option<(u64, u16)>,
    pub(crate) children: u32,
    pub(crate) ignore_term: bool,
    pub(crate) burn_idle: bool,
    pub(crate) chatty: Option<String>,
    pub(crate) idle: bool,
    pub(crate) place: Place,
}

/// What the command line requests.
#[derive(Debug)]
pub(crate) enum Parsed {
    /// Run with these options.
    Run(Box<Options>),
    /// Print this text.
    Help(String),
}

/// How long an answer waits when nothing else slows the server down. The load generator then waits as well, on any machine, and
/// what a test expects does not depend on which of the two is faster.
const UNHURRIED: Duration = Duration::from_micros(300);

const HELP: &str = "\
deadheat-test-server: a small HTTP/1.1 server, good or bad at will

Listens on --port or --socket, else on $PORT, else on $SOCKET.

  --port N                    listen on port N (0: the system chooses)
  --host ADDRESS              the loopback address, or that of a bed's host or a link's servers, that ports are on (default 127.0.0.1)
  --socket PATH               listen on a unix socket
  --backlog N                 so many connections wait to be accepted (default 4096)
  --port-file PATH            write the port there once listening
  --tls                       speak TLS, with a certificate for localhost, 127.0.0.1 and ::1 that a CA of our own signs
  --tls-dir DIR               keep the CA in DIR (ca.pem, ca-key.pem; made if missing) and write cert.pem and key.pem
                              there; this and those below imply --tls
  --tls-cert FILE             this certificate, with the key of --tls-key FILE
  --tls-key FILE              the key of the certificate of --tls-cert FILE
  --tls-name NAME             a certificate for NAME alone
  --tls-expired               a certificate that expired long ago
  --tls-versions V            speak only TLS 1.2 or only 1.3
  --body TEXT                 what is answered to every path
  --json                      answer {\"path\":...,\"method\":...,\"n\":1,\"ok\":true,\"items\":[...]}
  --counter-token             a JSON field `token` that changes with each answer, of fixed length (implies --json)
  --login                     /login answers a JSON field `access_token`, different in each process; all other paths
                              answer 401 without it in `Authorization: Bearer` (implies --json)
  --header 'Name: value'      one more header, repeatable; replaces content-type if named so
  --status N                  the status of every answer
  --spin-us F                 burn F microseconds of CPU time per request
  --ease N                    --spin-us takes twice as long at first, and half of the rest goes with N answers
  --work N                    N rounds of a fixed hash per request
  --delay-ms F                answer F milliseconds later, burning nothing (default 0.3; 0 with --spin-us, --work and
                              --slow-ms)
  --slow-ms F SHARE           this share of the answers (such as 0.02), at random, takes F instead of --delay-ms
  --log PATH                  write a line for each answer: microseconds since the start when its request had come, and
                              from then until it was sent
  --stall-ms F EVERY          answer nothing during the first F of every EVERY milliseconds
  --start-delay-ms N          wait before listening
  --lifetime-s N              leave after N seconds whatever happens (default 1800)
  --never-listen              live, but never listen
  --never-answer              accept and read, never answer
  --close-each                Connection: close, and close, after each answer
  --close-without-answer      accept, read a request, close
  --garbage                   answer with bytes that are not HTTP, then close
  --truncate                  promise the whole body, send half of it, close
  --exit N                    two lines to standard error, then exit with status N
  --exit-after N              die (status 1) once N requests are answered
  --differ-under-load N       answers after the first N have another body of the same length
  --differ-every K            each K-th answer has another body of the same length
  --shorter-under-load N      answers after the first N have half the body
  --status-under-load N CODE  answers after the first N have this status
  --children N                N idle descendants that ignore SIGTERM; by turns in the same group, in a group of
                              their own, in a session of their own, and orphaned in a session of their own
  --ignore-term               ignore SIGTERM
  --burn-idle                 burn a core all the while
  --chatty TEXT               print a line with terminal escapes to standard output at start
  --idle                      no server: sleep (what --children starts)
  --place WHERE               with --idle: same, group, session, orphan";

struct Words<'a> {
    name: &'a str,
    rest: std::slice::Iter<'a, String>,
}

impl Words<'_> {
    fn text(&mut self) -> Result<String, String> {
        self.rest.next().cloned().ok_or_else(|| format!("{} wants a value", self.name))
    }

    fn number<T: FromStr>(&mut self) -> Result<T, String> {
        let text = self.text()?;
        text.parse().map_err(|_| format!("{}: {text:?} is not a number that fits", self.name))
    }

    /// A positive whole number.
    fn count(&mut self) -> Result<u64, String> {
        match self.number()? {
            0 => Err(format!("{} wants at least 1", self.name)),
            n => Ok(n),
        }
    }

    fn duration(&mut self, unit_s: f64) -> Result<Duration, String> {
        let value: f64 = self.number()?;
        Duration::try_from_secs_f64(value * unit_s).map_err(|error| format!("{}: {error}", self.name))
    }
}

/// Reads the command line (without the program's name).
pub(crate) fn parse(arguments: &[String]) -> Result<Parsed, String> {
    let mut options = Options { status: 200, lifetime: Duration::from_secs(1800), ..Options::default() };
    let mut words = Words { name: "", rest: arguments.iter() };
    while let Some(name) = words.rest.next() {
        words.name = name;
        if name == "--help" {
            return Ok(Parsed::Help(HELP.to_owned()));
        }
        let known = options.set_answer(&mut words)?
            || options.set_fault(&mut words)?
            || options.set_tls(&mut words)?
            || options.set_process(&mut words)?;
        if !known {
            return Err(format!("no such option: {name}"));
        }
    }
    options.check()?;
    Ok(Parsed::Run(Box::new(options)))
}

impl Options {
    /// How long an answer waits.
    pub(crate) fn delay(&self) -> Duration {
        let is_slow = !self.spin.is_zero() || self.work > 0 || self.slow.is_some();
        self.delay.unwrap_or(if is_slow { Duration::ZERO } else { UNHURRIED })
    }

    /// Sets the content and the timing of correct answers.
    fn set_answer(&mut self, words: &mut Words<'_>) -> Result<bool, String> {
        match words.name {
            "--body" => self.body = Some(words.text()?),
            "--json" => self.json = true,
            "--counter-token" => (self.json, self.counter_token) = (true, true),
            "--login" => (self.json, self.login) = (true, true),
            "--header" => self.headers.push(header(&words.text()?)?),
            "--status" => self.status = status(words)?,
            "--spin-us" => self.spin = words.duration(1e-6)?,
            "--ease" => self.ease = Some(words.count()?),
            "--work" => self.work = words.number()?,
            "--delay-ms" => self.delay = Some(words.duration(1e-3)?),
            "--slow-ms" => self.slow = Some((words.duration(1e-3)?, words.number()?)),
            "--log" => self.log = Some(words.text()?.into()),
            "--stall-ms" => self.stall = Some((words.duration(1e-3)?, words.duration(1e-3)?)),
            "--close-each" => self.close_each = true,
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets which answers are wrong or missing.
    fn set_fault(&mut self, words: &mut Words<'_>) -> Result<bool, String> {
        match words.name {
            "--never-answer" => self.never_answer = true,
            "--close-without-answer" => self.close_without_answer = true,
            "--garbage" => self.garbage = true,
            "--truncate" => self.truncate = true,
            "--exit-after" => self.exit_after = Some(words.count()?),
            "--differ-under-load" => self.differ_under_load = Some(words.number()?),
            "--differ-every" => self.differ_every = Some(words.count()?),
            "--shorter-under-load" => self.shorter_under_load = Some(words.number()?),
            "--status-under-load" => self.status_under_load = Some((words.number()?, status(words)?)),
            _ => return Ok(false),
        }
        Ok(true)
    }

    /// Sets the TLS options. Each of them also enables TLS.
    fn set_tls(&mut self, words: &mut Words<'_>) -> Result<bool, String> {
        match words.name {
            "--tls" => {}
            "--tls-dir" => self.tls_dir = Some(words.text()?.into()),
            "--tls-cert" => self.tls_cert = Some(words.text()?.into()),
            "--tls-key" => self.tls_key = Some(words.text()?.into()),
            "--tls-name" => self.tls_name = Some(words.text()?),
            "--tls-expired" => self.tls_expired = true,
            "--tls-versions" => self.tls_versions = tls_versions(&words.text()?)?,
            _ => return Ok(false),
        }
        self.tls = true;
        Ok(true)
    }

    /// Sets where the process listens, how it starts and how it ends.
    fn set_process(&mut self, words: &mut Words<'_>) -> Result<bool, String> {
        match words.name {
            "--host" => self.host = Some(host(&words.text()?)?),
            "--port" => self.port = Some(words.number()?),
            "--socket" => self.socket = Some(words.text()?.into()),
            "--backlog" => self.backlog = Some(words.number()?),
            "--port-file" => self.port_file = Some(words.text()?.into()),
            "--start-delay-ms" => self.start_delay = words.duration(1e-3)?,
            "--lifetime-s" => self.lifetime = words.duration(1.0)?,
            "--never-listen" => self.never_listen = true,
            "--exit" => self.exit = Some(words.number()?),
            "--children" => self.children = words.number()?,
            "--ignore-term" => self.ignore_term = true,
            "--burn-idle" => self.burn_idle = true,
            "--chatty" => self.chatty = Some(words.text()?),
            "--idle" => self.idle = true,
            "--place" => self.place = place(&words.text()?)?,
            _ => return Ok(false),
        }
        Ok(true)
    }

    fn check(&self) -> Result<(), String> {
        let differs = self.differ_under_load.is_some() || self.differ_every.is_some();
        if self.body.as_deref() == Some("") && differs {
            return Err("an empty --body cannot differ at the same length".to_owned());
        }
        if self.json && self.body.is_some() {
            return Err("--body and --json (or --counter-token, --login) exclude each other".to_owned());
        }
        if self.port.is_some() && self.socket.is_some() {
            return Err("--port and --socket exclude each other".to_owned());
        }
        if self.tls_cert.is_some() != self.tls_key.is_some() {
            return Err("--tls-cert and --tls-key need each other".to_owned());
        }
        if self.host.is_some() && self.socket.is_some() {
            return Err("--host and --socket exclude each other".to_owned());
        }
        if self.slow.is_some_and(|(_, share)| !(0.0..=1.0).contains(&share)) {
            return Err("--slow-ms: a share lies from 0 to 1".to_owned());
        }
        match self.stall {
            Some((stall, every)) if stall >= every => Err("--stall-ms must be below its period".to_owned()),
            _ => Ok(()),
        }
    }

    /// Where to listen: the options come first, then `$PORT`, then `$SOCKET`. `env` reads these variables.
    pub(crate) fn listen(&self, env: impl Fn(&str) -> Option<String>) -> Result<Listen, String> {
        let tcp = |port| Listen::Tcp(SocketAddr::new(self.host.unwrap_or(Ipv4Addr::LOCALHOST.into()), port));
        if let Some(port) = self.port {
            return Ok(tcp(port));
        }
        if let Some(path) = &self.socket {
            return Ok(Listen::Socket(path.clone()));
        }
        if let Some(port) = env("PORT") {
            return port.parse().map(tcp).map_err(|_| format!("PORT={port:?} is not a port"));
        }
        match env("SOCKET") {
            Some(path) => Ok(Listen::Socket(path.into())),
            None => Err("nowhere to listen: give --port, --socket, $PORT or $SOCKET".to_owned()),
        }
    }
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or_else(|| format!("--header: {text:?} has no colon"))?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

fn status(words: &mut Words<'_>) -> Result<u16, String> {
    match words.number()? {
        code @ 200..=599 => Ok(code),
        code => Err(format!("{}: {code} is no final status (200 to 599)", words.name)),
    }
}

/// A loopback address, or one of a network that tests or races make for themselves: of a host of a bed, or of the servers of a link.
fn host(text: &str) -> Result<IpAddr, String> {
    let of_ours = |address: &IpAddr| matches!(address, IpAddr::V4(four) if matches!(four.octets(), [10, 30, 0, _] | [198, 18, 1, 1]));
    match text.parse::<IpAddr>() {
        Ok(address) if address.is_loopback() || of_ours(&address) => Ok(address),
        _ => Err(format!(
            "--host: {text:?} is neither a loopback address nor that of a bed's host or a link's servers"
        )),
    }
}

fn tls_versions(text: &str) -> Result<TlsVersions, String> {
    match text {
        "1.2" => Ok(TlsVersions::Only12),
        "1.3" => Ok(TlsVersions::Only13),
        _ => Err(format!("--tls-versions: {text:?} is neither 1.2 nor 1.3")),
    }
}

fn place(text: &str) -> Result<Place, String> {
    match text {
        "same" => Ok(Place::Same),
        "group" => Ok(Place::Group),
        "session" => Ok(Place::Session),
        "orphan" => Ok(Place::Orphan),
        _ => Err(format!("--place: {text:?} is not same, group, session or orphan")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(line: &str) -> Result<Options, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        match parse(&words)? {
            Parsed::Run(options) => Ok(*options),
            Parsed::Help(text) => Err(text),
        }
    }

    #[test]
    fn every_option_in_the_help_is_understood() {
        for line in HELP.lines().filter(|line| line.starts_with("  --")) {
            let (spelled, _) = line.trim().split_once("  ").unwrap();
            let mut words = spelled.split_whitespace();
            let mut typed = vec![words.next().unwrap().to_owned()];
            typed.extend(words.filter(|word| !word.ends_with('\'') || word.starts_with('\'')).map(|word| {
                match word {
                    "EVERY" => "9".to_owned(),
                    "SHARE" => "0.5".to_owned(),
                    "CODE" => "503".to_owned(),
                    "WHERE" => "session".to_owned(),
                    "ADDRESS" => "::1".to_owned(),
                    "V" => "1.3".to_owned(),
                    "'Name:" => "a: b".to_owned(),
                    "N" if spelled.starts_with("--status ") => "404".to_owned(),
                    _ => "1".to_owned(),
                }
            }));
            // Each of the two options requires the other.
            for (one, other) in [("--tls-cert", "--tls-key"), ("--tls-key", "--tls-cert")] {
                if typed[0] == one {
                    typed.extend([other.to_owned(), "1".to_owned()]);
                }
            }
            parse(&typed).unwrap_or_else(|error| panic!("{typed:?}: {error}"));
        }
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for (line, complaint) in [
            ("--nope", "no such option"),
            ("--work", "wants a value"),
            ("--work x", "not a number"),
            ("--status 42", "no final status"),
            ("--exit-after 0", "at least 1"),
            ("--delay-ms -1", "negative"),
            ("--json --body x", "exclude"),
            ("--stall-ms 5 5", "below its period"),
            ("--slow-ms 5 2", "from 0 to 1"),
            ("--slow-ms 5 NaN", "from 0 to 1"),
            ("--place moon", "moon"),
            ("--host 192.0.2.1", "loopback"),
            ("--host localhost", "loopback"),
            ("--host ::1 --socket x", "exclude"),
            ("--tls-versions 1.1", "neither"),
            ("--tls-cert x", "need each other"),
        ] {
            let error = options(line).unwrap_err();
            assert!(error.contains(complaint), "{line}: {error}");
        }
    }

    #[test]
    fn options_come_before_the_environment_and_ports_before_sockets() {
        let both = |name: &str| match name {
            "PORT" => Some("81".to_owned()),
            "SOCKET" => Some("/s".to_owned()),
            _ => None,
        };
        let socket_only = |name: &str| (name == "SOCKET").then(|| "/s".to_owned());
        let tcp = |address: &str| Ok(Listen::Tcp(address.parse().unwrap()));
        assert_eq!(options("--port 80").unwrap().listen(both), tcp("127.0.0.1:80"));
        assert_eq!(options("").unwrap().listen(both), tcp("127.0.0.1:81"));
        assert_eq!(options("--host ::1").unwrap().listen(both), tcp("[::1]:81"));
        assert_eq!(options("").unwrap().listen(socket_only), Ok(Listen::Socket("/s".into())));
        assert_eq!(options("--socket /t").unwrap().listen(both), Ok(Listen::Socket("/t".into())));
        assert!(options("").unwrap().listen(|_| None).is_err());
    }
}
