//! `--tls`: an authority for one start, and the certificates it signs. Its own key is not stored.

use super::super::private;
use crate::failure::Failure;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa,
    KeyPair, KeyUsagePurpose,
};
use std::fmt::Display;
use std::path::{Path, PathBuf};

/// Hosts at which all processes listen.
const HERE: [&str; 2] = ["127.0.0.1", "localhost"];

/// Files of a process for TLS.
pub(super) struct Identity {
    pub(super) certificate: PathBuf,
    pub(super) key: PathBuf,
    pub(super) authority: PathBuf,
}

impl Identity {
    /// Returns the files of a process, below the folder of a cluster.
    pub(super) fn of(folder: &Path, name: &str) -> Identity {
        let folder = folder.join("tls");
        Identity {
            certificate: folder.join(format!("{name}.pem")),
            key: folder.join(format!("{name}.key")),
            authority: folder.join("ca.pem"),
        }
    }
}

/// Makes an authority, and writes a certificate signed by it for each process.
pub(super) fn certify<'a>(folder: &Path, names: impl Iterator<Item = &'a str>) -> Result<(), Failure> {
    let failed = |what: &dyn Display| Failure::Refused(format!("--tls: certificates cannot be made: {what}"));
    private::folder(&folder.join("tls")).map_err(|e| failed(&e))?;
    let authority = authority().map_err(|e| failed(&e))?;
    for name in names {
        let files = Identity::of(folder, name);
        let (certificate, key) = signed(&authority, name).map_err(|e| failed(&e))?;
        for (file, text) in [(&files.authority, authority.pem()), (&files.certificate, certificate), (&files.key, key)]
        {
            private::write(file, &text).map_err(|e| failed(&format!("{}: {e}", file.display())))?;
        }
    }
    Ok(())
}

fn authority() -> Result<CertifiedIssuer<'static, KeyPair>, rcgen::Error> {
    let mut params = CertificateParams::new(Vec::new())?;
    params.distinguished_name = named("Meridian, a cluster for trial");
    params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
    CertifiedIssuer::self_signed(params, KeyPair::generate()?)
}

/// Returns certificate and key of a process, in PEM.
fn signed(authority: &CertifiedIssuer<'_, KeyPair>, name: &str) -> Result<(String, String), rcgen::Error> {
    let mut names: Vec<String> = HERE.map(str::to_owned).to_vec();
    names.push(name.to_owned());
    let mut params = CertificateParams::new(names)?;
    params.distinguished_name = named(name);
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
    let key = KeyPair::generate()?;
    Ok((params.signed_by(&key, authority)?.pem(), key.serialize_pem()))
}

fn named(name: &str) -> DistinguishedName {
    let mut all = DistinguishedName::new();
    all.push(DnType::CommonName, name);
    all
}
