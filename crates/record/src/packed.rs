//! Reads and writes records compressed with gzip.
//!
//! Owns: how to recognize compressed files, and the limit of their uncompressed size. Must not know: what a record contains.

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::path::Path;

use flate2::Compression;
use flate2::bufread::MultiGzDecoder;
use flate2::write::GzEncoder;

use crate::{ReadError, Record, page};

/// Limit of the uncompressed size. No record is this long, so a file that exceeds it is not a record.
const MOST: u64 = 1 << 30;
/// The first bytes of every gzip file.
const MAGIC: [u8; 2] = [0x1f, 0x8b];

/// The content of a file, decompressed if it is compressed, and extracted if it is inside a page.
pub(crate) fn bytes(path: &Path) -> Result<Vec<u8>, ReadError> {
    let read = std::fs::read(path).and_then(|found| unpacked(found, MOST));
    read.map(page::unwrapped).map_err(|source| ReadError::Io { path: path.into(), source })
}

fn unpacked(found: Vec<u8>, most: u64) -> io::Result<Vec<u8>> {
    if !found.starts_with(&MAGIC) {
        return Ok(found);
    }
    let mut whole = Vec::new();
    MultiGzDecoder::new(found.as_slice()).take(most + 1).read_to_end(&mut whole)?;
    if whole.len() as u64 > most {
        let problem = format!("it unpacks to over {most} bytes, which no record does");
        return Err(io::Error::new(ErrorKind::FileTooLarge, problem));
    }
    Ok(whole)
}

impl Record {
    /// The record's journal, compressed with gzip; [`crate::read`] reads it. The same record always gives the same bytes.
    ///
    /// # Errors
    /// None in practice: it writes to memory.
    pub fn packed(&self) -> io::Result<Vec<u8>> {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        for line in self.lines() {
            serde_json::to_writer(&mut packer, &line)?;
            packer.write_all(b"\n")?;
        }
        packer.finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_so_much_is_unpacked() {
        let mut packer = GzEncoder::new(Vec::new(), Compression::best());
        packer.write_all(&[b' '; 1000]).unwrap();
        let packed = packer.finish().unwrap();
        assert_eq!(unpacked(packed.clone(), 1000).unwrap(), [b' '; 1000]);
        let error = unpacked(packed.clone(), 999).unwrap_err().to_string();
        assert!(error.contains("over 999 bytes"), "{error}");
        assert_eq!(unpacked(b"{}".to_vec(), 0).unwrap(), b"{}");
        assert!(unpacked(packed[..packed.len() / 2].to_vec(), 1000).is_err(), "cut off");
    }
}
