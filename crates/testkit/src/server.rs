//! Finds the binary of the test server and runs it outside of a race.

use std::ffi::OsStr;
use std::fs::File;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use rustls::{ClientConnection, StreamOwned};
use serde_json::Value;

use crate::client::Client;
use crate::kit::{MARK, new_mark};
use crate::processes::kill_all_with_env;
use crate::wait::wait_until;

const NAME: &str = "deadheat-test-server";

/// The path of the test server's binary, ready to run.
///
/// Cargo builds the binaries of a package only for that package's own tests. So this function builds the server once for
/// each test program, in the profile and target folder of the running test. `DEADHEAT_TEST_SERVER` names a binary to
/// use instead.
///
/// # Panics
/// With cargo's output, when it cannot be built.
pub fn server_command() -> &'static Path {
    static PATH: OnceLock<PathBuf> = OnceLock::new();
    PATH.get_or_init(|| match std::env::var_os("DEADHEAT_TEST_SERVER") {
        Some(path) => path.into(),
        None => build(),
    })
}

/// The test server with these arguments, quoted as one line for a shell.
///
/// # Panics
/// As [`server_command`].
pub fn server_line(arguments: &[&str]) -> String {
    let path = server_command().to_str().expect("a target folder whose path is UTF-8");
    let words: Vec<String> = std::iter::once(&path).chain(arguments).map(|word| quote(word)).collect();
    words.join(" ")
}

/// One word for a shell; unchanged when it needs no quotes.
pub fn quote(word: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"-_./=:,+@%".contains(&byte);
    if !word.is_empty() && word.bytes().all(plain) {
        word.to_owned()
    } else {
        format!("'{}'", word.replace('\'', r"'\''"))
    }
}

/// A free port of 127.0.0.1. It is below the ports that the system assigns to connections, and this function gives it to no other
/// test of this program.
///
/// # Panics
/// When there is none.
pub fn free_port() -> u16 {
    const FIRST: u16 = 11_000;
    const COUNT: u32 = 9_000;
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let begin = std::process::id().wrapping_mul(131);
    let ports = std::iter::repeat_with(|| begin.wrapping_add(NEXT.fetch_add(1, Ordering::Relaxed)) % COUNT);
    let mut ports = ports.take(COUNT as usize).map(|place| FIRST + place as u16);
    let free = |port: &u16| TcpListener::bind((Ipv4Addr::LOCALHOST, *port)).is_ok();
    ports.find(free).expect("a free port")
}

fn build() -> PathBuf {
    let layout = Layout::of(&std::env::current_exe().expect("the path of the running test"));
    let mut cargo = Command::new(env!("CARGO"));
    cargo
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .args(["build", "--offline", "--package", env!("CARGO_PKG_NAME"), "--bin", NAME])
        .args(["--message-format", "json-render-diagnostics", "--profile", &layout.profile])
        .arg("--target-dir")
        .arg(&layout.target);
    if let Some(triple) = &layout.triple {
        cargo.args(["--target", triple]);
    }
    let output = cargo.output().unwrap_or_else(|error| panic!("cannot run {cargo:?}: {error}"));
    let stdout = String::from_utf8_lossy(&output.stdout);
    let built = stdout.lines().rev().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let mut paths = built.filter_map(|message| Some(PathBuf::from(message.get("executable")?.as_str()?)));
    match paths.next() {
        Some(path) if output.status.success() => path,
        _ => panic!("{cargo:?}: {}\n{}\n{stdout}", output.status, String::from_utf8_lossy(&output.stderr)),
    }
}

/// The target folder, triple and profile of the running test, derived from the path of its binary.
#[derive(Debug, PartialEq)]
struct Layout {
    target: PathBuf,
    triple: Option<String>,
    profile: String,
}

impl Layout {
    /// Test binaries are in `TARGET/[TRIPLE/]PROFILE/deps/`. Documentation tests are elsewhere and use `target` of the
    /// workspace. Cargo marks the target folder itself with `CACHEDIR.TAG`.
    fn of(test: &Path) -> Self {
        let name = |path: &Path| path.file_name().and_then(OsStr::to_str).map(str::to_owned);
        let folder = test.ancestors().find(|path| path.file_name() == Some(OsStr::new("deps")));
        let profile = folder.and_then(Path::parent);
        let above = profile.and_then(Path::parent);
        let (Some(profile), Some(above)) = (profile, above) else {
            let target = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../target");
            return Self { target, triple: None, profile: "dev".to_owned() };
        };
        let is_root = |path: &Path| path.join("CACHEDIR.TAG").exists();
        let (target, triple) = match above.parent() {
            Some(root) if !is_root(above) && is_root(root) => (root, name(above)),
            _ => (above, None),
        };
        let profile = match name(profile) {
            Some(name) if name != "debug" => name,
            _ => "dev".to_owned(),
        };
        Self { target: target.to_path_buf(), triple, profile }
    }
}

/// A test server on a port that the system assigns. Dropping it kills the server and every process it started.
#[derive(Debug)]
pub struct TestServer {
    child: Child,
    mark: String,
    host: IpAddr,
    port: u16,
    scheme: &'static str,
}

impl TestServer {
    /// Starts a server with these options and waits until it listens.
    ///
    /// # Panics
    /// When it is not listening within a minute.
    pub fn start(arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let (file, complaints) = (folder.path().join("port"), folder.path().join("stderr"));
        let mark = new_mark();
        let child = Command::new(server_command())
            .args(["--port", "0", "--port-file"])
            .arg(&file)
            .args(arguments)
            .env(MARK, &mark)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&complaints).expect("a file for the output"))
            .process_group(0)
            .spawn()
            .expect("the test server starts");
        let host = arguments.iter().skip_while(|word| **word != "--host").nth(1);
        let host = host.map_or(Ipv4Addr::LOCALHOST.into(), |host| host.parse().expect("an IP address"));
        let tls = arguments.iter().any(|word| word.starts_with("--tls"));
        let mut server = Self { child, mark, host, port: 0, scheme: if tls { "https" } else { "http" } };
        wait_until(Duration::from_secs(60), || {
            server.port = std::fs::read_to_string(&file).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
            server.port != 0 || !server.is_running()
        });
        if server.port == 0 {
            let said = std::fs::read_to_string(complaints).unwrap_or_default();
            panic!("a test server with {arguments:?} does not listen: {said}");
        }
        server
    }

    /// The port. The host is 127.0.0.1 unless the options name another.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The address that it listens on.
    pub fn address(&self) -> SocketAddr {
        SocketAddr::new(self.host, self.port)
    }

    /// The address of a path, which starts with a slash.
    pub fn url(&self, path: &str) -> String {
        format!("{}://{}{path}", self.scheme, self.address())
    }

    /// Its process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Whether it is still running.
    ///
    /// # Panics
    /// When the system does not report the state.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("the state of a child").is_none()
    }

    /// A new connection to it.
    ///
    /// # Panics
    /// When it does not accept one.
    pub fn client(&self) -> Client<TcpStream> {
        Client::connect_to(self.address()).expect("the test server accepts a connection")
    }

    /// A new connection to it with TLS; see [`Client::connect_tls`].
    ///
    /// # Panics
    /// When it does not accept one, or `ca` is no CA file.
    pub fn tls_client(&self, ca: &Path, name: &str) -> Client<StreamOwned<ClientConnection, TcpStream>> {
        Client::connect_tls(self.address(), ca, name).expect("the test server accepts a connection")
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        kill_all_with_env(MARK, &self.mark);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_survive_a_shell() {
        for word in ["", "plain", "two words", "it's", "$HOME `id` \\ \"", "\u{1b}[31m"] {
            let script = format!("printf %s {}", quote(word));
            let output = Command::new("/bin/sh").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8_lossy(&output.stdout), word);
        }
    }

    #[test]
    fn the_layout_of_the_target_folder_is_recognised() {
        let root = tempfile::tempdir().unwrap();
        std::fs::write(root.path().join("CACHEDIR.TAG"), "").unwrap();
        let at = |test: &str| Layout::of(&root.path().join(test));
        let expected = |triple: Option<&str>, profile: &str| Layout {
            target: root.path().to_path_buf(),
            triple: triple.map(str::to_owned),
            profile: profile.to_owned(),
        };
        assert_eq!(at("debug/deps/race-1"), expected(None, "dev"));
        assert_eq!(at("release/deps/race-1"), expected(None, "release"));
        let triple = "x86_64-unknown-linux-musl";
        assert_eq!(at(&format!("{triple}/quick/deps/race-1")), expected(Some(triple), "quick"));
    }
}
