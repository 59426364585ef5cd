//! A certificate authority for one race. It signs one certificate, which all contenders of a race over TLS use.
//!
//! Owns: that certificate and its key as files, and the TLS settings for contenders that use them. The authority's own key is never
//! written to a file. Must not know: contenders.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

use deadheat_load::{TlsError, TlsSettings, TlsTrust};
use deadheat_record::Plan;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

use deadheat_host::process::run::{RunId, lives};

/// The host name in requests to contenders. The certificate also names their addresses.
const NAME: &str = "localhost";
const NAMES: [&str; 3] = [NAME, "127.0.0.1", "::1"];
/// Prefix of the name of a certificate folder, before the run that it belongs to.
const FOLDER: &str = "tls-";
/// The number of the next authority in this process.
static NEXT: AtomicU64 = AtomicU64::new(0);

/// Why there is no certificate.
#[derive(Debug, thiserror::Error)]
pub enum AuthorityError {
    /// The certificate could not be created.
    #[error("the certificate for this race could not be made: {0}")]
    Make(#[from] rcgen::Error),
    /// A file could not be written.
    #[error("the certificate for this race could not be written to {path}: {source}; make that folder writable", path = path.display())]
    Write {
        /// The file or folder.
        path: PathBuf,
        /// The error of the operating system.
        source: io::Error,
    },
    /// The load generator does not accept it.
    #[error(transparent)]
    Settings(#[from] TlsError),
}

/// An authority and its certificate. Dropping it removes the files.
#[derive(Debug)]
pub(crate) struct Authority {
    folder: PathBuf,
    settings: TlsSettings,
}

impl Authority {
    /// Creates an authority if any scenario of the plan uses TLS; none otherwise.
    ///
    /// # Errors
    /// See [`AuthorityError`].
    pub(crate) fn of(plan: &Plan) -> Result<Option<Self>, AuthorityError> {
        let wanted = plan.scenarios.iter().any(|scenario| scenario.traffic.tls);
        wanted.then(|| Self::new(&plan.work)).transpose()
    }

    /// Creates an authority for this run, in a separate folder inside `work`. Removes the folders of runs that have ended.
    ///
    /// # Errors
    /// See [`AuthorityError`].
    fn new(work: &Path) -> Result<Self, AuthorityError> {
        remove_stale(work);
        let (run, number) = (RunId::current(), NEXT.fetch_add(1, Ordering::Relaxed));
        let folder = work.join(format!("{FOLDER}{run}-{number}").replace(':', "-"));
        let failed = |path: &Path, source| AuthorityError::Write { path: path.into(), source };
        let mut builder = DirBuilder::new();
        builder.recursive(true).mode(0o755).create(&folder).map_err(|source| failed(&folder, source))?;
        let write = |name: &str, text: &str, mode| {
            let path = folder.join(name);
            let file = OpenOptions::new().write(true).create_new(true).mode(mode).open(&path);
            file.and_then(|mut file| file.write_all(text.as_bytes())).map_err(|source| failed(&path, source))
        };
        let made = make()?;
        write("ca.pem", &made.authority, 0o644)?;
        write("cert.pem", &made.certificate, 0o644)?;
        write("key.pem", &made.key, 0o600)?;
        let settings = TlsSettings::new(NAME, TlsTrust::File(folder.join("ca.pem")))?.without_resumption();
        Ok(Self { folder, settings })
    }

    /// The TLS settings for contenders: only a certificate of this authority is accepted, and each connection makes a full handshake.
    pub(crate) fn settings(&self) -> TlsSettings {
        self.settings.clone()
    }

    /// The placeholders for the paths of the certificate and its key, with their values.
    pub(crate) fn values(&self) -> [(String, String); 2] {
        let path = |name: &str| self.folder.join(name).to_string_lossy().into_owned();
        [("cert".into(), path("cert.pem")), ("key".into(), path("key.pem"))]
    }
}

impl Drop for Authority {
    fn drop(&mut self) {
        // The next run removes anything left here.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Certificates and key, all in PEM.
struct Made {
    authority: String,
    certificate: String,
    key: String,
}

fn make() -> Result<Made, rcgen::Error> {
    let mut params = CertificateParams::default();
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    params.distinguished_name.push(DnType::CommonName, "deadheat, for one race");
    let key = KeyPair::generate()?;
    let authority = params.self_signed(&key)?.pem();
    let issuer = Issuer::new(params, key);

    let mut params = CertificateParams::new(NAMES.map(str::to_owned))?;
    params.distinguished_name.push(DnType::CommonName, NAME);
    params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate()?;
    let certificate = params.signed_by(&key, &issuer)?.pem();
    Ok(Made { authority, certificate, key: key.serialize_pem() })
}

/// Removes the folders of runs that were killed.
fn remove_stale(work: &Path) {
    let entries = fs::read_dir(work).into_iter().flatten().flatten();
    for entry in entries {
        let name = entry.file_name();
        if name.to_str().and_then(|name| name.strip_prefix(FOLDER)).is_some_and(|run| !lives(run)) {
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt as _;

    #[test]
    fn its_files_live_as_long_as_it_does() {
        let work = tempfile::tempdir().unwrap();
        let names = || {
            let entries = fs::read_dir(work.path()).unwrap();
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect::<Vec<_>>()
        };
        fs::create_dir(work.path().join("tls-1-1-0")).unwrap();
        let (one, two) = (Authority::new(work.path()).unwrap(), Authority::new(work.path()).unwrap());
        assert_eq!(names().len(), 2, "what a run of before left is gone: {:?}", names());
        let [(cert, certificate), (key, secret)] = one.values();
        assert_eq!((cert.as_str(), key.as_str()), ("cert", "key"));
        assert!(fs::read_to_string(certificate).unwrap().starts_with("-----BEGIN CERTIFICATE-----"));
        assert_eq!(fs::metadata(secret).unwrap().permissions().mode() & 0o777, 0o600);
        assert_ne!(one.values(), two.values());
        drop((one, two));
        assert_eq!(names(), Vec::<String>::new());
    }
}
