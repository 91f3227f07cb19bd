//! A certificate authority, and the files of the certificates it signs.

use rcgen::string::Ia5String;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DnType, IsCa, KeyPair, KeyUsagePurpose, SanType,
    date_time_ymd,
};
use std::fs;
use std::path::{Path, PathBuf};

/// Signs certificates; its own is stored in a file.
pub struct Authority {
    issuer: CertifiedIssuer<'static, KeyPair>,
    pub file: String,
    folder: PathBuf,
}

/// The files of one identity.
#[derive(Clone)]
pub struct Identity {
    pub cert: String,
    pub key: String,
    pub ca: String,
}

impl Authority {
    /// Makes a new one, with its files in this folder.
    pub fn new(folder: &Path, name: &str) -> Authority {
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign];
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let file = folder.join(format!("{name}.pem"));
        fs::write(&file, issuer.pem()).unwrap();
        Authority { issuer, file: file.display().to_string(), folder: folder.to_owned() }
    }

    /// Signs a certificate for these names: addresses, DNS names and URIs.
    pub fn sign(&self, file: &str, names: &[&str]) -> Identity {
        self.sign_until(file, names, 4000)
    }

    /// As [`Authority::sign`], valid until the end of a year.
    pub fn sign_until(&self, file: &str, names: &[&str], year: i32) -> Identity {
        let (uris, others): (Vec<&str>, Vec<&str>) = names.iter().partition(|name| name.contains("://"));
        let others: Vec<String> = others.into_iter().map(str::to_owned).collect();
        let mut params = CertificateParams::new(others).unwrap();
        let uri = |uri: &str| SanType::URI(Ia5String::try_from(uri.to_owned()).unwrap());
        params.subject_alt_names.extend(uris.into_iter().map(uri));
        params.not_before = date_time_ymd(2000, 1, 1);
        params.not_after = date_time_ymd(year, 12, 31);
        let key = KeyPair::generate().unwrap();
        let path = |end: &str| self.folder.join(format!("{file}.{end}")).display().to_string();
        fs::write(path("pem"), params.signed_by(&key, &self.issuer).unwrap().pem()).unwrap();
        fs::write(path("key"), key.serialize_pem()).unwrap();
        Identity { cert: path("pem"), key: path("key"), ca: self.file.clone() }
    }
}

impl Identity {
    /// Returns the settings of a process with it, plus further settings of the section.
    pub fn settings(&self, more: &str) -> String {
        let Identity { cert, key, ca } = self;
        format!("[cluster.tls]\ncert = {cert:?}\nkey = {key:?}\nca = {ca:?}\n{more}\n")
    }

    /// Replaces its files with those of another one, key first.
    pub fn becomes(&self, other: &Identity) {
        fs::copy(&other.key, &self.key).unwrap();
        fs::copy(&other.cert, &self.cert).unwrap();
    }
}
