//! A plain HTTP/1.1 client for looking at one answer at a time. It measures nothing.

use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(10);

/// One answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// Names in lower case and values, in the order they came.
    pub headers: Vec<(String, String)>,
    /// The body, as long as `content-length` says, else up to the end of the connection.
    pub body: Vec<u8>,
}

impl Reply {
    /// The value of the first header of that name (in lower case).
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(found, _)| found == name).map(|(_, value)| value.as_str())
    }

    /// The body as text; what is not UTF-8 is replaced.
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
    /// Whatever connecting gives.
    pub fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect(("127.0.0.1", port))?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream: BufReader::new(stream) })
    }
}

impl Client<UnixStream> {
    /// Connects to a unix socket.
    ///
    /// # Errors
    /// Whatever connecting gives.
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
    /// Of the connection; `UnexpectedEof` when it ends within an answer, `InvalidData` when it is not HTTP.
    pub fn get(&mut self, target: &str) -> io::Result<Reply> {
        self.send(format!("GET {target} HTTP/1.1\r\nhost: localhost\r\n\r\n").as_bytes())?;
        self.reply(false)
    }

    /// Sends `HEAD target` and reads the answer, which has no body whatever its length says.
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
    /// Of the connection.
    pub fn send(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.get_mut().write_all(bytes)
    }

    /// Reads the next answer; `bodiless` when it answers a HEAD.
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

    /// Whether the other side closes now, without another byte.
    ///
    /// # Errors
    /// Of the connection; a time-out when it stays open.
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
