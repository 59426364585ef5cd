//! A plain HTTP/1.1 client for inspecting one answer at a time. It measures nothing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

const LIMIT: Duration = Duration::from_secs(10);

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Names in lower case and values, in the order of the answer.
    pub headers: Vec<(String, String)>,
    /// The body. It ends after `content-length` bytes or, without that header, at the end of the connection.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of the first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as text, with invalid UTF-8 replaced.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }
}

/// One keep-alive connection. Every read and write fails after ten seconds.
#[derive(Debug)]
pub struct Client<S: Read + Write> {
    stream: BufReader<S>,
}

impl Client<TcpStream> {
    /// Connects to a port of 127.0.0.1.
    ///
    /// # Errors
    /// When it cannot connect.
    pub fn connect(port: u16) -> io::Result<Self> {
        Self::connect_to(SocketAddr::from((Ipv4Addr::LOCALHOST, port)))
    }

    /// Connects to an address.
    ///
    /// # Errors
    /// When it cannot connect.
    pub fn connect_to(address: SocketAddr) -> io::Result<Self> {
        Ok(Self { stream: BufReader::new(connected(address)?) })
    }
}

impl Client<StreamOwned<ClientConnection, TcpStream>> {
    /// Connects to an address with TLS. The server's certificate must have this name and be signed by a CA in the PEM file `ca`.
    /// The handshake takes place with the first request.
    ///
    /// # Errors
    /// When it cannot connect or read the file.
    pub fn connect_tls(address: SocketAddr, ca: &Path, name: &str) -> io::Result<Self> {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_file(ca).map_err(io::Error::other)?).map_err(io::Error::other)?;
        let mut config =
            ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
                .with_safe_default_protocol_versions()
                .map_err(io::Error::other)?
                .with_root_certificates(roots)
                .with_no_client_auth();
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        let name = ServerName::try_from(name.to_owned()).map_err(io::Error::other)?;
        let tls = ClientConnection::new(Arc::new(config), name).map_err(io::Error::other)?;
        Ok(Self { stream: BufReader::new(StreamOwned::new(tls, connected(address)?)) })
    }

    /// The state of TLS, which is complete after the first answer.
    pub fn tls(&self) -> &ClientConnection {
        &self.stream.get_ref().conn
    }
}

fn connected(address: SocketAddr) -> io::Result<TcpStream> {
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(LIMIT))?;
    stream.set_write_timeout(Some(LIMIT))?;
    stream.set_nodelay(true)?;
    Ok(stream)
}

impl Client<UnixStream> {
    /// Connects to a unix socket.
    ///
    /// # Errors
    /// When it cannot connect.
    pub fn connect_unix(path: &Path) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(Self { stream: BufReader::new(stream) })
    }
}

impl<S: Read + Write> Client<S> {
    /// Sends `GET target` and reads the answer.
    ///
    /// # Errors
    /// When the connection fails; `UnexpectedEof` when it ends within an answer, `InvalidData` when the answer is not HTTP.
    pub fn get(&mut self, target: &str) -> io::Result<Reply> {
        self.send(format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())?;
        self.reply(false)
    }

    /// Sends `HEAD target` and reads the answer, which has no body even if it has a `content-length`.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn head(&mut self, target: &str) -> io::Result<Reply> {
        self.send(format!("HEAD {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())?;
        self.reply(true)
    }

    /// Sends bytes as they are.
    ///
    /// # Errors
    /// When the connection fails.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)?;
        self.stream.get_mut().flush()
    }

    /// Reads the next answer. Set `bodiless` when it is the answer to a HEAD request.
    ///
    /// # Errors
    /// As [`Client::get`].
    pub fn reply(&mut self, bodiless: bool) -> io::Result<Reply> {
        let first = self.line()?;
        let status = first
            .strip_prefix("HTTP/1.")
            .and_then(|rest| rest.split(' ').nth(1)?.parse().ok())
            .ok_or_else(|| wrong(&first))?;
        let mut headers = Vec::new();
        loop {
            let line = self.line()?;
            if line.is_empty() {
                break;
            }
            let (name, value) = line.split_once(':').ok_or_else(|| wrong(&line))?;
            headers.push((name.to_ascii_lowercase(), value.trim().to_owned()));
        }
        let mut reply = Reply { status, headers, body: Vec::new() };
        if bodiless || matches!(status, 204 | 304) {
            return Ok(reply);
        }
        match reply.header("content-length").map(str::to_owned) {
            Some(length) => {
                reply.body = vec![0; length.parse().map_err(|_| wrong(&length))?];
                self.stream.read_exact(&mut reply.body)?;
            }
            None => {
                self.stream.read_to_end(&mut reply.body)?;
            }
        }
        Ok(reply)
    }

    /// Whether the other side closes the connection without sending another byte.
    ///
    /// # Errors
    /// When the connection fails; a time-out when it stays open.
    pub fn is_closed(&mut self) -> io::Result<bool> {
        Ok(self.stream.fill_buf()?.is_empty())
    }

    fn line(&mut self) -> io::Result<String> {
        let mut bytes = Vec::new();
        self.stream.read_until(b'\n', &mut bytes)?;
        if bytes.last() != Some(&b'\n') {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        Ok(String::from_utf8_lossy(&bytes).trim_end().to_owned())
    }
}

fn wrong(found: &str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, format!("not HTTP: {found:?}"))
}
