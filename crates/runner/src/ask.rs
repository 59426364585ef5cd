//! Sends requests to several addresses at the same moment, each on a separate thread.
//!
//! Owns: that all requests are sent at once, and that a silent server does not delay an interruption. Must not know: the content of
//! requests, and what follows from the answers.

use std::sync::Arc;
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::Duration;

use deadheat_host::monitor::Disturbance;
use deadheat_load::{
    Address, Answer, ExchangeError, LoadSession, NoAnswer, OpenError, Session, SessionConfig, TlsFailure,
    TlsSettings, exchange,
};
use deadheat_record::{Finding, Link, LinkBandwidth, LinkReading, Plan};

use crate::load_hosts::LoadHostsWork;

/// Maximum size of the body of an answer to a single request, in bytes.
pub const MAX_BODY: usize = 64 << 20;
/// Interval between checks whether the user interrupted.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// A request, ready to be sent.
#[derive(Debug, Clone)]
pub struct Question {
    /// The bytes of an HTTP request.
    pub bytes: Arc<[u8]>,
    /// Whether it is a HEAD request, whose answer has no body.
    pub head: bool,
    /// The TLS settings; none for plain HTTP.
    pub tls: Option<TlsSettings>,
}

/// Talks to contenders: single requests, and sessions of load.
pub trait LoadGenerator {
    /// Sends each request to its address, all at once, and waits at most `patience` for each answer. The answers are in the same order.
    /// Returns none if `stopped` returns true first.
    fn ask(
        &self,
        asked: &[(&Address, &Question)],
        patience: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Vec<Result<Answer, NoAnswer>>>;

    /// Opens all connections of a session.
    ///
    /// # Errors
    /// When they cannot be opened.
    fn open(&self, config: SessionConfig) -> Result<Box<dyn LoadSession>, OpenError>;

    /// Watches the machines that the load comes from, if they are others than this one. Returns what cannot be seen there.
    ///
    /// # Errors
    /// When a machine is lost, in words.
    fn watch(&self, _plan: &Plan) -> Result<Vec<Finding>, String> {
        Ok(Vec::new())
    }

    /// What happened on the machines that the load comes from since the last call: of the machine that lost most to others. None if the load comes
    /// from this machine.
    fn disturbance(&self) -> Option<Disturbance> {
        None
    }

    /// For which share of the last slice a core of the machines that the load comes from stood still. None if the load comes from this machine, or
    /// nobody watches.
    fn stalled_share(&self) -> Option<f64> {
        None
    }

    /// What the machines that the load comes from did since the last call. None if the load comes from this machine.
    fn take_load_hosts(&self) -> Option<LoadHostsWork> {
        None
    }

    /// Measures how many bytes per second the machines that the load comes from receive from a server that only sends, each machine alone and all
    /// together. `config` has the server's address and the connections of each machine. None if the load comes from this machine.
    fn bandwidth(&self, _config: &SessionConfig) -> Option<Result<LinkBandwidth, String>> {
        None
    }

    /// From now on, requests go over this link; none: the usual way.
    ///
    /// # Errors
    /// When the link cannot be made, in words.
    fn set_link(&self, _link: Option<&Link>) -> Result<(), String> {
        Ok(())
    }

    /// Measures the link that was set last. None if it is none that deadheat makes.
    ///
    /// # Errors
    /// When it cannot be measured, in words.
    fn measure_link(&self) -> Result<Option<LinkReading>, String> {
        Ok(None)
    }

    /// CPU time that programs which carry requests have used so far, in nanoseconds: on the generator's processors, and on the contenders'.
    fn carriers_cpu_ns(&self) -> (u64, u64) {
        (0, 0)
    }

    /// The finding that a machine that the load comes from was lost, if one was.
    fn lost(&self) -> Option<Finding> {
        None
    }
}

/// The load generator in this process.
#[derive(Debug, Clone, Copy)]
pub struct LocalGenerator;

impl LoadGenerator for LocalGenerator {
    fn ask(
        &self,
        asked: &[(&Address, &Question)],
        patience: Duration,
        stopped: &dyn Fn() -> bool,
    ) -> Option<Vec<Result<Answer, NoAnswer>>> {
        ask_all(asked, patience, stopped)
    }

    fn open(&self, config: SessionConfig) -> Result<Box<dyn LoadSession>, OpenError> {
        Ok(Box::new(Session::open(config)?))
    }
}

/// Why there is no answer, with what to do about it.
fn no_answer(error: ExchangeError, tls: bool) -> NoAnswer {
    let remedy = remedy(&error, tls);
    let why = NoAnswer::from(error);
    match remedy {
        Some(remedy) => NoAnswer { reason: format!("{}; {remedy}", why.reason), ..why },
        None => why,
    }
}

/// What to do if only one side speaks TLS, or the certificates differ; none for other errors.
fn remedy(error: &ExchangeError, tls: bool) -> Option<&'static str> {
    match error {
        ExchangeError::Tls(TlsFailure::Certificate(_)) => Some(
            "let it use the race's certificate: CERT or {cert} names its file, KEY or {key} that of its key",
        ),
        ExchangeError::Tls(TlsFailure::NotTls | TlsFailure::Ended) | ExchangeError::Handshake(_) => Some(
            "let it listen with TLS when CERT and KEY name the files of a certificate and its key, or race it without TLS",
        ),
        ExchangeError::SpeaksTls => Some(
            "let it listen without TLS, or race it over TLS: https:// in --url, `tls = true` in a study's scenario",
        ),
        // Some servers close the connection without an answer.
        ExchangeError::Closed { received: 0 } if !tls => Some(
            "if it listens with TLS, race it over TLS: https:// in --url, `tls = true` in a study's scenario",
        ),
        _ => None,
    }
}

/// Sends each request to its address, all at once, and waits at most `patience` for each answer. The answers are in the same order. Returns
/// none if `stopped` returns true first.
pub(crate) fn ask_all(
    asked: &[(&Address, &Question)],
    patience: Duration,
    stopped: &dyn Fn() -> bool,
) -> Option<Vec<Result<Answer, NoAnswer>>> {
    let (sender, receiver) = mpsc::channel();
    let mut answers: Vec<Option<Result<Answer, NoAnswer>>> = vec![None; asked.len()];
    for (place, (address, question)) in asked.iter().enumerate() {
        let (sender, address, question) = (sender.clone(), (*address).clone(), (*question).clone());
        // Not a scoped thread: a thread that waits for a silent server stays behind after an interruption.
        let asking = std::thread::Builder::new().name("ask".into()).spawn(move || {
            let Question { bytes, head, tls } = question;
            let answer = exchange(&address, tls.as_ref(), &bytes, head, patience, MAX_BODY);
            let _ = sender.send((place, answer.map_err(|error| no_answer(error, tls.is_some()))));
        });
        if let Err(error) = asking {
            answers[place] =
                Some(Err(NoAnswer::plain(format!("deadheat could not send the request: {error}"))));
        }
    }
    drop(sender);
    loop {
        match receiver.recv_timeout(LOOK_EVERY) {
            Ok((place, answer)) => answers[place] = Some(answer),
            Err(RecvTimeoutError::Timeout) if stopped() => return None,
            Err(RecvTimeoutError::Timeout) => {}
            // Every thread has ended.
            Err(RecvTimeoutError::Disconnected) => break,
        }
    }
    let missing = || Err(NoAnswer::plain("deadheat could not send the request"));
    Some(answers.into_iter().map(|answer| answer.unwrap_or_else(missing)).collect())
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use std::io::{Read as _, Write as _};
    use std::net::{Ipv4Addr, TcpListener};
    use std::sync::Mutex;
    use std::time::Instant;

    /// A server for tests. Each connection is one request. `answer` gets the number of the request (from 1) and returns the body, or none
    /// for no answer.
    pub(crate) fn server(answer: impl Fn(usize) -> Option<String> + Send + 'static) -> Address {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            let mut silent = Vec::new();
            for (number, stream) in listener.incoming().enumerate() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                match answer(number + 1) {
                    Some(body) => {
                        let text = format!("HTTP/1.1 200 OK\r\nContent-Length: {}\r\n\r\n{body}", body.len());
                        let _ = stream.write_all(text.as_bytes());
                    }
                    None => silent.push(stream),
                }
            }
        });
        Address::Tcp(address)
    }

    fn question() -> Question {
        let bytes = Arc::from(&b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"[..]);
        Question { bytes, head: false, tls: None }
    }

    #[test]
    fn all_are_asked_before_any_has_answered() {
        // Each server waits until the other has its request. If requests were sent one after the other, neither server would answer.
        let meeting = Arc::new(std::sync::Barrier::new(2));
        let patient = || {
            let meeting = Arc::clone(&meeting);
            server(move |_| {
                meeting.wait();
                Some("met".into())
            })
        };
        let (one, two) = (patient(), patient());
        let answers =
            ask_all(&[(&one, &question()), (&two, &question())], Duration::from_secs(60), &|| false).unwrap();
        assert!(answers.iter().all(|answer| answer.as_ref().is_ok_and(|answer| answer.body == b"met")));
    }

    #[test]
    fn silence_is_told_apart_from_refusal_and_answers_keep_their_places() {
        let (silent, good) = (server(|_| None), server(|_| Some("good".into())));
        let refusing = Address::Unix("/nowhere/at/all".into());
        let question = question();
        let all = [&silent, &refusing, &good].map(|address| (address, &question));
        let answers = ask_all(&all, Duration::from_millis(300), &|| false).unwrap();
        assert!(answers[0].as_ref().unwrap_err().timed_out);
        let refused = answers[1].as_ref().unwrap_err();
        assert!(!refused.timed_out && refused.reason.contains("No such file"), "{refused:?}");
        assert_eq!(answers[2].as_ref().unwrap().body, b"good");
    }

    #[test]
    fn what_speaks_tls_on_one_side_only_is_told_with_what_to_do() {
        let settings = TlsSettings::new("localhost", deadheat_load::TlsTrust::Insecure).unwrap();
        let reason = |address: &Address, tls: Option<TlsSettings>| {
            let question = Question { tls, ..question() };
            let mut all = ask_all(&[(address, &question)], Duration::from_secs(20), &|| false).unwrap();
            all.remove(0).unwrap_err().reason
        };
        let plain = server(|_| Some("plain".into()));
        let told = reason(&plain, Some(settings));
        assert!(told.contains("does not expect TLS on this port") && told.contains("CERT and KEY"), "{told}");
        let alert = raw(&[21, 3, 3, 0, 2, 2, 70]);
        let told = reason(&alert, None);
        assert!(told.contains("expects TLS on this port") && told.contains("https://"), "{told}");
        let told = reason(&raw(&[]), None);
        assert!(told.contains("after 0 bytes") && told.contains("if it listens with TLS"), "{told}");
        let told = reason(&raw(b"HTTP/1.1 200 OK\r\n"), None);
        assert!(!told.contains("TLS"), "{told}");
    }

    /// A server that answers every connection with these bytes and closes it.
    fn raw(bytes: &'static [u8]) -> Address {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let _ = stream.write_all(bytes);
            }
        });
        Address::Tcp(address)
    }

    #[test]
    fn the_end_is_not_held_up_by_silence() {
        let silent = server(|_| None);
        let looks = Mutex::new(0);
        let stopped = || {
            *looks.lock().unwrap() += 1;
            *looks.lock().unwrap() > 2
        };
        let start = Instant::now();
        assert_eq!(ask_all(&[(&silent, &question())], Duration::from_secs(600), &stopped), None);
        assert!(start.elapsed() < Duration::from_secs(300));
    }
}
