//! Certificates for tests: a CA and the server certificates that it signs. This module knows no server.

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

/// A CA for tests. Only clients that load its certificate trust it.
#[derive(Debug)]
pub struct Authority {
    issuer: Issuer<'static, KeyPair>,
    pem: String,
}

/// A server's certificate and its key, both in PEM.
#[derive(Clone, Debug)]
pub struct Identity {
    /// The certificate.
    pub certificate: String,
    /// The key, as PKCS#8.
    pub key: String,
}

impl Authority {
    /// A new CA that is not saved to a file.
    ///
    /// # Errors
    /// When the key or the certificate cannot be generated.
    pub fn new() -> io::Result<Self> {
        Self::with_key(KeyPair::generate().map_err(io::Error::other)?)
    }

    /// The CA of this folder. Its key is in `ca-key.pem`, which is created if missing, and its certificate is in `ca.pem`. So tests may
    /// name `ca.pem` before any server has started, and servers may share the folder.
    ///
    /// # Errors
    /// When the files cannot be written, or their content is not a key.
    pub fn in_folder(folder: &Path) -> io::Result<Self> {
        std::fs::create_dir_all(folder)?;
        let key_file = folder.join("ca-key.pem");
        if !key_file.exists() {
            let part = part_of(&key_file);
            std::fs::write(&part, KeyPair::generate().map_err(io::Error::other)?.serialize_pem())?;
            let linked = std::fs::hard_link(&part, &key_file);
            std::fs::remove_file(part)?;
            // If another process has created the key first, this one uses that key.
            linked.or_else(
                |error| if error.kind() == ErrorKind::AlreadyExists { Ok(()) } else { Err(error) },
            )?;
        }
        let key = KeyPair::from_pem(&std::fs::read_to_string(key_file)?).map_err(io::Error::other)?;
        let authority = Self::with_key(key)?;
        let file = folder.join("ca.pem");
        if !file.exists() {
            write_whole(&file, &authority.pem)?;
        }
        Ok(authority)
    }

    fn with_key(key: KeyPair) -> io::Result<Self> {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
        // Each CA gets a different name, so that a client never confuses two of them.
        let id: String = params.key_identifier(&key).iter().map(|byte| format!("{byte:02x}")).collect();
        params.distinguished_name.push(DnType::CommonName, format!("deadheat test CA {id}"));
        let pem = params.self_signed(&key).map_err(io::Error::other)?.pem();
        Ok(Self { issuer: Issuer::new(params, key), pem })
    }

    /// Its certificate in PEM.
    pub fn pem(&self) -> &str {
        &self.pem
    }

    /// A certificate for a server with these names (host names or IP addresses). It is valid now, or long expired if `expired` is set.
    ///
    /// # Errors
    /// When a name is not allowed in a certificate.
    pub fn issue(&self, names: &[&str], expired: bool) -> io::Result<Identity> {
        let names: Vec<String> = names.iter().map(|name| (*name).to_owned()).collect();
        let mut params = CertificateParams::new(names).map_err(io::Error::other)?;
        params.distinguished_name.push(DnType::CommonName, "deadheat-test-server");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
        params.use_authority_key_identifier_extension = true;
        if expired {
            params.not_before = rcgen::date_time_ymd(2000, 1, 1);
            params.not_after = rcgen::date_time_ymd(2001, 1, 1);
        }
        let key = KeyPair::generate().map_err(io::Error::other)?;
        let certificate = params.signed_by(&key, &self.issuer).map_err(io::Error::other)?.pem();
        Ok(Identity { certificate, key: key.serialize_pem() })
    }
}

impl Identity {
    /// Writes `cert.pem` and `key.pem`, and replaces those of an earlier server.
    ///
    /// # Errors
    /// When the files cannot be written.
    pub fn write(&self, folder: &Path) -> io::Result<()> {
        write_whole(&folder.join("cert.pem"), &self.certificate)?;
        write_whole(&folder.join("key.pem"), &self.key)
    }
}

/// Writes a file in one step, so that a reader never sees an incomplete file.
fn write_whole(path: &Path, text: &str) -> io::Result<()> {
    let part = part_of(path);
    std::fs::write(&part, text)?;
    std::fs::rename(part, path)
}

/// A path in the same folder that no other process uses.
fn part_of(path: &Path) -> PathBuf {
    path.with_extension(format!("part-{}", std::process::id()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_its_authority() {
        let folder = tempfile::tempdir().unwrap();
        let read = |name: &str| std::fs::read_to_string(folder.path().join(name)).unwrap();
        let first = Authority::in_folder(folder.path()).unwrap();
        assert_eq!(read("ca.pem"), first.pem());
        let key = read("ca-key.pem");
        first.issue(&["localhost"], false).unwrap().write(folder.path()).unwrap();
        let certificate = read("cert.pem");
        let second = Authority::in_folder(folder.path()).unwrap();
        assert_eq!((read("ca.pem").as_str(), read("ca-key.pem")), (first.pem(), key));
        second.issue(&["localhost"], false).unwrap().write(folder.path()).unwrap();
        assert_ne!(read("cert.pem"), certificate);
        assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 4, "no parts are left behind");
    }

    #[test]
    fn names_that_cannot_be_are_refused() {
        assert!(Authority::new().unwrap().issue(&["b\u{fc}cher.example"], false).is_err());
    }
}
