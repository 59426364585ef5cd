//! As much of the MySQL protocol as it takes to log in without a password and to run one prepared statement.
//!
//! Owns: packets and the statement. Must not know: what becomes of the rows. Described at
//! <https://mariadb.com/kb/en/clientserver-protocol/>.

use std::io::{self, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpStream};

const QUERY: &str = "SELECT id, first_name, last_name, date_of_birth FROM users ORDER BY id";
/// Long passwords, a database at once, protocol 4.1, transactions, its way to log in, named plugins.
const CAPABILITIES: u32 = 0x1 | 0x8 | 0x200 | 0x2000 | 0x8000 | 0x8_0000;
const UTF8MB4: u8 = 45;
const PLUGIN: &[u8] = b"mysql_native_password\0";
const COM_STMT_PREPARE: u8 = 0x16;
const COM_STMT_EXECUTE: u8 = 0x17;

/// One row, pointing into the packet.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct User<'a> {
    /// Its key.
    pub(crate) id: i64,
    /// UTF-8.
    pub(crate) first_name: &'a [u8],
    /// UTF-8.
    pub(crate) last_name: &'a [u8],
    /// Year, month, day.
    pub(crate) born: (i64, i64, i64),
}

/// A connection with its statement prepared.
pub(crate) struct Database {
    stream: BufReader<TcpStream>,
    /// The packet that executes the statement.
    execute: Vec<u8>,
    packet: Vec<u8>,
}

impl Database {
    /// Connects to 127.0.0.1 as user `ssr` of database `ssr`.
    pub(crate) fn connect(port: u16) -> io::Result<Self> {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, port))?;
        stream.set_nodelay(true)?;
        let stream = BufReader::with_capacity(32 * 1024, stream);
        let mut database = Self { stream, execute: Vec::new(), packet: Vec::new() };
        database.log_in()?;
        database.prepare()?;
        Ok(database)
    }

    /// Runs the statement and hands over each row.
    pub(crate) fn users(&mut self, mut each: impl FnMut(&User<'_>)) -> io::Result<()> {
        self.stream.get_mut().write_all(&self.execute)?;
        self.read()?;
        let columns = self.packet.first().copied().unwrap_or(0);
        self.skip(usize::from(columns) + 1)?;
        loop {
            self.read()?;
            if is_end(&self.packet) {
                return Ok(());
            }
            each(&row(&self.packet).ok_or_else(|| io::Error::other("a row that is none of `users`"))?);
        }
    }

    fn log_in(&mut self) -> io::Result<()> {
        self.read()?;
        let mut answer = Vec::new();
        answer.extend_from_slice(&CAPABILITIES.to_le_bytes());
        answer.extend_from_slice(&0x0100_0000_u32.to_le_bytes());
        answer.push(UTF8MB4);
        answer.extend_from_slice(&[0; 23]);
        answer.extend_from_slice(b"ssr\0");
        // No password.
        answer.push(0);
        answer.extend_from_slice(b"ssr\0");
        answer.extend_from_slice(PLUGIN);
        self.stream.get_mut().write_all(&packet(1, &answer))?;
        self.read()?;
        // Asked for another plugin: without a password the answer is empty in each.
        if self.packet.first() == Some(&0xfe) {
            self.stream.get_mut().write_all(&packet(3, &[]))?;
            self.read()?;
        }
        Ok(())
    }

    fn prepare(&mut self) -> io::Result<()> {
        let mut order = vec![COM_STMT_PREPARE];
        order.extend_from_slice(QUERY.as_bytes());
        self.stream.get_mut().write_all(&packet(0, &order))?;
        self.read()?;
        let found = self.packet.get(1..7).ok_or_else(|| io::Error::other("a short answer"))?;
        let (statement, columns) = ([found[0], found[1], found[2], found[3]], found[4]);
        self.skip(usize::from(columns) + 1)?;
        let mut execute = vec![COM_STMT_EXECUTE];
        execute.extend_from_slice(&statement);
        // No cursor, once.
        execute.extend_from_slice(&[0, 1, 0, 0, 0]);
        self.execute = packet(0, &execute);
        Ok(())
    }

    fn skip(&mut self, packets: usize) -> io::Result<()> {
        (0..packets).try_for_each(|_| self.read())
    }

    /// Reads the next packet.
    fn read(&mut self) -> io::Result<()> {
        let mut head = [0; 4];
        self.stream.read_exact(&mut head)?;
        self.packet.resize(u32::from_le_bytes([head[0], head[1], head[2], 0]) as usize, 0);
        self.stream.read_exact(&mut self.packet)?;
        if self.packet.first() == Some(&0xff) {
            return Err(io::Error::other(String::from_utf8_lossy(self.packet.get(3..).unwrap_or_default())));
        }
        Ok(())
    }
}

/// A packet with its head.
fn packet(number: u8, content: &[u8]) -> Vec<u8> {
    let length = (content.len() as u32).to_le_bytes();
    let mut packet = vec![length[0], length[1], length[2], number];
    packet.extend_from_slice(content);
    packet
}

/// Rows of a prepared statement begin with 0.
fn is_end(packet: &[u8]) -> bool {
    packet.first() == Some(&0xfe) && packet.len() < 9
}

/// A row of the statement in the binary form: no value of it can be NULL.
fn row(packet: &[u8]) -> Option<User<'_>> {
    // A zero, and one byte of NULL bits for four columns.
    let rest = packet.get(2..)?;
    let (id, rest) = rest.split_at_checked(4)?;
    let id = i64::from(i32::from_le_bytes(id.try_into().ok()?));
    let (first_name, rest) = text(rest)?;
    let (last_name, rest) = text(rest)?;
    let (&[4, low, high, month, day], _) = rest.split_first_chunk::<5>()? else { return None };
    let year = i64::from(u16::from_le_bytes([low, high]));
    Some(User { id, first_name, last_name, born: (year, i64::from(month), i64::from(day)) })
}

/// A text with its length before it; names are shorter than the 251 bytes above which lengths take more room.
fn text(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let (&length, rest) = bytes.split_first().filter(|(length, _)| **length < 251)?;
    rest.split_at_checked(usize::from(length))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_have_their_length_and_number() {
        assert_eq!(packet(3, b"ab"), [2, 0, 0, 3, b'a', b'b']);
        assert_eq!(packet(0, &[7; 300])[..4], [44, 1, 0, 0]);
    }

    #[test]
    fn rows_are_read_and_cut_ones_refused() {
        let mut packet = vec![0, 0, 7, 1, 0, 0];
        packet.extend_from_slice(b"\x03Ada\x08Lovelace\x04\xd0\x07\x02\x1d");
        let user = User { id: 263, first_name: b"Ada", last_name: b"Lovelace", born: (2000, 2, 29) };
        assert_eq!(row(&packet), Some(user));
        for length in 0..packet.len() {
            assert_eq!(row(&packet[..length]), None, "{length}");
        }
        assert!(is_end(&[0xfe, 0, 0, 2, 0]) && !is_end(&packet));
    }
}
