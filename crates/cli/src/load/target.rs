//! The target server: what the URL says, whether load on it is allowed, and which address answers.
//!
//! Owns: the URL of `load`, and the rule that load stays on the loopback. Must not know: requests, time.

use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv6Addr, SocketAddr};

use deadheat_study::choices::UsageError;
use deadheat_study::file::{path_problem, shown};

const EXAMPLE: &str = "write it like http://127.0.0.1:8080/x";

/// The parts of a URL.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Target {
    /// Whether it is https.
    pub(crate) tls: bool,
    /// A name or address, in lower case and without brackets.
    pub(crate) host: String,
    /// The port as written. Default: 80 or 443.
    pub(crate) port: u16,
    /// Path and query. Begins with `/`.
    pub(crate) path: String,
}

impl Target {
    /// Parses a URL. `http://` is optional.
    pub(crate) fn parse(url: &str) -> Result<Self, UsageError> {
        let target = Self::split(url)?;
        match path_problem(&target.path) {
            Some(problem) => wrong(url, &format!("its path: {problem}"), EXAMPLE),
            None => Ok(target),
        }
    }

    /// The parts of a URL; the path may be any text. `http://` is optional.
    pub(super) fn split(url: &str) -> Result<Self, UsageError> {
        let wrong = |problem: &str, remedy| wrong(url, problem, remedy);
        let scheme = url.split_once("://").filter(|(scheme, _)| !scheme.contains(['/', '?', '#', ':']));
        let (tls, rest) = match scheme {
            None => (false, url),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("http") => (false, rest),
            Some((scheme, rest)) if scheme.eq_ignore_ascii_case("https") => (true, rest),
            Some((scheme, _)) => {
                return wrong(&format!("`{}` is neither http nor https", shown(scheme)), EXAMPLE);
            }
        };
        let (authority, path) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
        if authority.contains('@') {
            return wrong(
                "it contains a user name or password",
                "send them in a header: -H 'authorization: ...'",
            );
        }
        let Some((host, port)) = divide(authority, if tls { 443 } else { 80 }) else {
            return wrong("its port is not a number from 1 to 65535", EXAMPLE);
        };
        if !is_host(&host) {
            return wrong("its host is missing or not valid", EXAMPLE);
        }
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        Ok(Self { tls, host: host.to_ascii_lowercase(), port, path })
    }

    /// The content of the `Host` header: the host, and the port unless it is the default of the scheme.
    pub(crate) fn authority(&self) -> String {
        let host = if self.host.contains(':') { format!("[{}]", self.host) } else { self.host.clone() };
        let usual = if self.tls { 443 } else { 80 };
        if self.port == usual { host } else { format!("{host}:{}", self.port) }
    }

    /// Scheme and authority: `http://127.0.0.1:8080`.
    pub(crate) fn origin(&self) -> String {
        format!("{}://{}", if self.tls { "https" } else { "http" }, self.authority())
    }

    /// The addresses that may be loaded: loopback addresses, or all addresses if the user allowed the host by name. The loopback is that of the machine
    /// that sends the load: another one than this, if the load comes from `elsewhere`.
    ///
    /// # Errors
    /// The name cannot be resolved, or it belongs to another machine that is not allowed.
    pub(crate) fn addresses(
        &self,
        allowed: &[String],
        elsewhere: bool,
        resolve: &dyn Fn(&str, u16) -> io::Result<Vec<SocketAddr>>,
    ) -> Result<Vec<SocketAddr>, UsageError> {
        let host = shown(&self.host);
        let loopback = if elsewhere { "the load host's" } else { "this machine's" };
        let all = resolve(&self.host, self.port).map_err(|error| {
            let problem = format!("the host `{host}` cannot be resolved: {error}");
            UsageError::new(problem, "correct its name, or write its address")
        })?;
        let unbracketed = |name: &str| name.trim_matches(['[', ']']).to_ascii_lowercase();
        let is_allowed = |name: &str| allowed.iter().any(|allowed| unbracketed(allowed) == name);
        let by_name = is_allowed(&self.host);
        let may = |address: &&SocketAddr| {
            by_name || is_loopback(address.ip()) || is_allowed(&address.ip().to_string())
        };
        let may: Vec<SocketAddr> = all.iter().filter(may).copied().collect();
        // Many systems give their own name an address of the loopback, which on a load host is another server.
        let means_loopback = self.host.trim_end_matches('.').rsplit('.').next() == Some("localhost");
        let is_name = !means_loopback && self.host.trim_matches(['[', ']']).parse::<IpAddr>().is_err();
        let (here, may): (Vec<_>, Vec<_>) =
            may.into_iter().partition(|address| elsewhere && is_name && is_loopback(address.ip()));
        if let (true, Some(first)) = (may.is_empty(), here.first()) {
            let problem = format!("`{host}` is {} here, which on a load host is another server", first.ip());
            let remedy = "write the address at which the load host reaches the server, with --allow-target";
            return Err(UsageError::new(problem, remedy));
        }
        if let (true, Some(first)) = (may.is_empty(), all.first()) {
            let problem = format!("`{host}` ({}) is not {loopback} loopback", first.ip());
            let remedy = format!("if you may load it, add --allow-target {host}");
            return Err(UsageError::new(problem, remedy));
        }
        Ok(may)
    }
}

fn wrong(url: &str, problem: &str, remedy: &str) -> Result<Target, UsageError> {
    Err(UsageError::new(format!("the URL {}: {problem}", shown(url)), remedy))
}

/// The first of the addresses that answers.
///
/// # Errors
/// No address answers. The error gives the reason for each.
pub(crate) fn first_that_answers(
    origin: &str,
    addresses: &[SocketAddr],
    connect: &dyn Fn(&SocketAddr) -> io::Result<()>,
) -> Result<SocketAddr, UsageError> {
    let mut failures = Vec::new();
    for address in addresses {
        match connect(address) {
            Ok(()) => return Ok(*address),
            Err(error) => failures.push(format!("{address}: {error}")),
        }
    }
    let problem = format!("nothing answers at {}: {}", shown(origin), failures.join("; "));
    Err(UsageError::new(problem, "start the server first, or correct the URL's host and port"))
}

/// Whether an address belongs to the loopback. This includes IPv4 addresses mapped to IPv6.
fn is_loopback(address: IpAddr) -> bool {
    address.to_canonical().is_loopback()
}

/// The host without brackets, and the port.
fn divide(authority: &str, usual: u16) -> Option<(String, u16)> {
    let (host, port) = split_port(authority);
    let port = port.map_or(Some(usual), |port| port.parse().ok().filter(|port| *port > 0))?;
    let inner = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    // Only an IPv6 address loses its brackets. Other text keeps them and is therefore not a valid host.
    let is_v6 = |inner: &&str| inner.parse::<Ipv6Addr>().is_ok();
    Some((inner.filter(is_v6).unwrap_or(host).to_owned(), port))
}

fn is_host(host: &str) -> bool {
    let named = |byte: u8| byte.is_ascii_alphanumeric() || b"-._".contains(&byte);
    !host.is_empty() && (host.bytes().all(named) || host.parse::<Ipv6Addr>().is_ok())
}

impl fmt::Display for Target {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}{}", self.origin(), self.path)
    }
}

/// The host and the port of `host:port`, as they are written: the brackets of an IPv6 address stay.
pub(crate) fn split_port(authority: &str) -> (&str, Option<&str>) {
    match authority.rfind(':') {
        Some(colon) if !authority[colon..].contains(']') => {
            (&authority[..colon], Some(&authority[colon + 1..]))
        }
        _ => (authority, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_read_and_written() {
        for (url, written) in [
            ("http://127.0.0.1:8080/x?y=1", "http://127.0.0.1:8080/x?y=1"),
            ("127.0.0.1:8080", "http://127.0.0.1:8080/"),
            ("localhost", "http://localhost/"),
            ("LocalHost:80/X", "http://localhost/X"),
            ("HTTPS://a.b:443", "https://a.b/"),
            ("https://a.b:80/", "https://a.b:80/"),
            ("http://[::1]:8080?q", "http://[::1]:8080/?q"),
            ("[::1]/x", "http://[::1]/x"),
            ("localhost:3000/a/http://b", "http://localhost:3000/a/http://b"),
        ] {
            let target = Target::parse(url);
            assert_eq!(target.as_ref().map(ToString::to_string), Ok(written.to_owned()), "{url}");
        }
        assert_eq!(Target::parse("http://[::1]:8080/").unwrap().host, "::1");
    }

    #[test]
    fn wrong_urls_say_what_is_wrong() {
        for (url, part) in [
            ("", "host is missing"),
            ("http:///x", "host is missing"),
            ("ftp://localhost/", "neither http nor https"),
            ("http://user:secret@localhost/", "user name or password"),
            ("http://localhost:0/", "port"),
            ("http://localhost:66000/", "port"),
            ("http://localhost:x/", "port"),
            ("http://localhost:/", "port"),
            ("http://lo cal/", "host is missing"),
            ("http://bücher.example/", "host is missing"),
            ("http://[nonsense]/", "host is missing"),
            ("http://::1/", "host is missing"),
            ("http://localhost/a b", "percent-encoded"),
            ("http://localhost/#x", "never reaches"),
            ("http://localhost/\u{1b}[2J", "percent-encoded"),
        ] {
            let error = Target::parse(url).expect_err(url);
            assert!(error.problem.contains(part), "{url}: {error}");
            assert!(!error.to_string().contains('\u{1b}') && !error.remedy.is_empty(), "{error}");
        }
    }

    fn addresses(url: &str, allowed: &[&str], found: &[&str]) -> Result<Vec<String>, UsageError> {
        let allowed: Vec<String> = allowed.iter().map(|name| (*name).to_owned()).collect();
        let found: Vec<SocketAddr> =
            found.iter().map(|one| SocketAddr::new(one.parse().unwrap(), 1)).collect();
        let resolve = move |_: &str, _: u16| Ok(found.clone());
        let addresses = Target::parse(url).unwrap().addresses(&allowed, false, &resolve)?;
        Ok(addresses.iter().map(|address| address.ip().to_string()).collect())
    }

    #[test]
    fn load_stays_on_the_loopback() {
        let ok = |found: &[&str]| Ok(found.iter().map(|one| (*one).to_owned()).collect::<Vec<_>>());
        assert_eq!(addresses("localhost", &[], &["::1", "127.0.0.1"]), ok(&["::1", "127.0.0.1"]));
        assert_eq!(addresses("mine.test", &[], &["192.0.2.1", "127.0.0.1"]), ok(&["127.0.0.1"]));
        assert_eq!(addresses("mine.test", &[], &["::ffff:127.0.0.1"]), ok(&["::ffff:127.0.0.1"]));
        let resolve = |_: &str, _: u16| Ok(vec![SocketAddr::new("127.0.1.1".parse().unwrap(), 1)]);
        let there = |url: &str| Target::parse(url).unwrap().addresses(&[], true, &resolve);
        assert!(there("me.test").unwrap_err().problem.contains("127.0.1.1 here"));
        assert_eq!((there("localhost").is_ok(), there("127.0.1.1").is_ok()), (true, true));
        assert_eq!(addresses("far.test", &["FAR.test"], &["192.0.2.1"]), ok(&["192.0.2.1"]));
        assert_eq!(addresses("[2001:db8::1]", &["[2001:db8::1]"], &["2001:db8::1"]), ok(&["2001:db8::1"]));
        assert_eq!(addresses("far.test", &["192.0.2.1"], &["192.0.2.1", "192.0.2.2"]), ok(&["192.0.2.1"]));
        for (url, allowed, found) in [
            ("far.test", vec![], "192.0.2.1"),
            ("far.test", vec!["other.test"], "192.0.2.1"),
            ("localhost", vec![], "192.0.2.1"),
            ("0.0.0.0", vec![], "0.0.0.0"),
            ("[2001:db8::1]", vec![], "2001:db8::1"),
        ] {
            let error = addresses(url, &allowed, &[found]).expect_err(url);
            assert!(error.problem.contains(found), "{error}");
            assert!(error.remedy.contains("--allow-target"), "{error}");
        }
    }

    #[test]
    fn the_first_that_answers_is_taken() {
        let all: Vec<SocketAddr> =
            ["[::1]:1", "127.0.0.1:1"].iter().map(|one| one.parse().unwrap()).collect();
        let only_v4 = |address: &SocketAddr| {
            if address.is_ipv4() { Ok(()) } else { Err(io::ErrorKind::ConnectionRefused.into()) }
        };
        assert_eq!(first_that_answers("http://localhost:1", &all, &only_v4), Ok(all[1]));
        let nobody = |_: &SocketAddr| Err(io::ErrorKind::ConnectionRefused.into());
        let error = first_that_answers("http://localhost:1", &all, &nobody).unwrap_err();
        assert!(error.problem.contains("[::1]:1: ") && error.problem.contains("127.0.0.1:1: "), "{error}");
    }
}
