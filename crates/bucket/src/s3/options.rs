//! The operator's settings of an S3-compatible store, and their errors.

use meridian_model::Invalid;
use std::path::Path;
use url::{Host, Url};

/// Region for stores without regions.
const REGION: &str = "us-east-1";

/// How to reach a store, by the settings `cluster.s3.*`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct S3Options {
    /// Address of the store, `https://HOST` or `http://HOST:PORT`; empty: AWS.
    pub endpoint: String,
    /// Region of the bucket; empty: that of `AWS_REGION`, and for a store with an endpoint `us-east-1`.
    pub region: String,
    /// File whose first line is the id of an access key; empty: credentials of the environment, or of the machine.
    pub access_key_file: String,
    /// File whose first line is the secret of that key.
    pub secret_key_file: String,
    /// File with certificates of authorities for the store, in PEM, in addition to the system's; empty: none.
    pub ca_file: String,
    /// Whether requests have the bucket in the path; otherwise its name is a prefix of the host.
    pub path_style: bool,
    /// Whether to use plain HTTP for a store on another machine.
    pub allow_http: bool,
}

impl Default for S3Options {
    fn default() -> S3Options {
        S3Options {
            endpoint: String::new(),
            region: String::new(),
            access_key_file: String::new(),
            secret_key_file: String::new(),
            ca_file: String::new(),
            path_style: true,
            allow_http: false,
        }
    }
}

impl S3Options {
    /// Checks everything that can be checked without a store.
    ///
    /// # Errors
    /// The setting at fault, and the expected form.
    #[allow(clippy::disallowed_methods, reason = "files of the operator, and none of the store")]
    pub fn check(&self) -> Result<(), Invalid> {
        self.check_endpoint()?;
        for (field, file) in [
            ("access_key_file", &self.access_key_file),
            ("secret_key_file", &self.secret_key_file),
            ("ca_file", &self.ca_file),
        ] {
            if !file.is_empty() && !Path::new(file).is_file() {
                return wrong(field, format!("{file:?}: expected the name of a file that this process can read"));
            }
        }
        match (self.access_key_file.is_empty(), self.secret_key_file.is_empty()) {
            (false, true) => wrong(
                "secret_key_file",
                "it is empty, and cluster.s3.access_key_file is not: expected the file with the key's secret"
                    .to_owned(),
            ),
            (true, false) => wrong(
                "access_key_file",
                "it is empty, and cluster.s3.secret_key_file is not: expected the file with the key's id".to_owned(),
            ),
            _ => self.region().map(drop),
        }
    }

    fn check_endpoint(&self) -> Result<(), Invalid> {
        if self.endpoint.is_empty() {
            return Ok(());
        }
        let expected = "expected an address such as https://store.example.org or http://127.0.0.1:9000";
        let Ok(url) = Url::parse(&self.endpoint) else {
            return wrong("endpoint", format!("{:?}: {expected}", self.endpoint));
        };
        // Settings are displayed, and so are logs. For the same reason, the address is not repeated here.
        if !url.username().is_empty() || url.password().is_some() {
            return wrong(
                "endpoint",
                "a key in an address is shown to others: put it into files, and name these in cluster.s3.access_key_file \
                 and cluster.s3.secret_key_file"
                    .to_owned(),
            );
        }
        if !matches!(url.scheme(), "http" | "https") || url.path() != "/" || url.query().or(url.fragment()).is_some() {
            return wrong("endpoint", format!("{:?}: {expected}, without a path", self.endpoint));
        }
        let local = match url.host() {
            Some(Host::Domain(name)) => name == "localhost",
            Some(Host::Ipv4(address)) => address.is_loopback(),
            Some(Host::Ipv6(address)) => address.is_loopback(),
            None => false,
        };
        if url.scheme() == "http" && !local && !self.allow_http {
            return wrong(
                "endpoint",
                format!(
                    "{}: events would cross the network unencrypted: expected https://, or cluster.s3.allow_http = true \
                     in a private network",
                    self.endpoint
                ),
            );
        }
        if !self.path_style && !matches!(url.host(), Some(Host::Domain(_))) {
            return wrong(
                "path_style",
                format!("{}: a bucket's name cannot stand in front of an address: expected true", self.endpoint),
            );
        }
        Ok(())
    }

    /// Returns the region that requests are signed for.
    pub(crate) fn region(&self) -> Result<String, Invalid> {
        if !self.region.is_empty() {
            return Ok(self.region.clone());
        }
        if !self.endpoint.is_empty() {
            return Ok(REGION.to_owned());
        }
        let named = ["AWS_REGION", "AWS_DEFAULT_REGION"].into_iter().filter_map(|name| std::env::var(name).ok());
        match named.into_iter().find(|region| !region.is_empty()) {
            Some(region) => Ok(region),
            None => wrong(
                "region",
                "it is empty, and so is AWS_REGION: expected the region of the bucket, such as eu-central-1, or \
                 cluster.s3.endpoint for another store than AWS"
                    .to_owned(),
            ),
        }
    }

    /// Returns the address of the store without a trailing slash, or `None` for AWS. The bucket's name is in front of
    /// the host if it belongs there.
    pub(crate) fn endpoint_of(&self, bucket: &str) -> Option<String> {
        let endpoint = self.endpoint.trim_end_matches('/');
        match endpoint.split_once("://") {
            None => None,
            Some((scheme, host)) if !self.path_style => Some(format!("{scheme}://{bucket}.{host}")),
            Some(_) => Some(endpoint.to_owned()),
        }
    }
}

fn wrong<T>(field: &str, detail: String) -> Result<T, Invalid> {
    Err(Invalid::field(format!("cluster.s3.{field}"), detail))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(endpoint: &str) -> S3Options {
        S3Options { endpoint: endpoint.to_owned(), ..S3Options::default() }
    }

    #[test]
    fn a_setting_that_cannot_work_is_named() {
        // Any existing file.
        let here = || concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml").to_owned();
        let good = at("http://127.0.0.1:9000");
        for endpoint in
            ["http://127.0.0.1:9000", "http://[::1]:9000/", "http://localhost:9000", "https://s3.example.org"]
        {
            assert_eq!(at(endpoint).check(), Ok(()), "{endpoint}");
        }
        assert_eq!(S3Options { allow_http: true, ..at("http://minio:9000") }.check(), Ok(()));
        assert_eq!(S3Options { access_key_file: here(), secret_key_file: here(), ..good.clone() }.check(), Ok(()));
        for (options, words) in [
            (at("minio:9000"), "cluster.s3.endpoint"),
            (at("store"), "expected an address"),
            (at("ftp://store"), "expected an address"),
            (at("https://store/path"), "without a path"),
            (at("https://store/?a=1"), "without a path"),
            (at("http://minio:9000"), "cluster.s3.allow_http = true"),
            (at("http://10.0.0.7:9000"), "cluster.s3.allow_http = true"),
            (S3Options { path_style: false, ..good.clone() }, "cluster.s3.path_style"),
            (S3Options { access_key_file: here(), ..good.clone() }, "cluster.s3.secret_key_file: it is empty"),
            (S3Options { secret_key_file: here(), ..good.clone() }, "cluster.s3.access_key_file: it is empty"),
            (S3Options { access_key_file: "/no/such".to_owned(), ..good.clone() }, "cluster.s3.access_key_file"),
            (S3Options { ca_file: "/no/such".to_owned(), ..good.clone() }, "cluster.s3.ca_file"),
            (S3Options { ca_file: "/dev/zero".to_owned(), ..good.clone() }, "cluster.s3.ca_file"),
        ] {
            let said = options.check().unwrap_err().to_string();
            assert!(said.contains(words), "{said}");
        }
    }

    #[test]
    fn an_address_with_a_key_is_refused_and_not_repeated() {
        for endpoint in ["https://key:hidden@store", "https://:hidden@store", "http://hidden@127.0.0.1:9000"] {
            let said = at(endpoint).check().unwrap_err().to_string();
            assert!(said.contains("cluster.s3.secret_key_file") && !said.contains("hidden"), "{said}");
        }
    }

    #[test]
    fn a_bucket_is_in_the_path_or_in_front_of_the_host() {
        assert_eq!(at("http://127.0.0.1:9000/").endpoint_of("events").as_deref(), Some("http://127.0.0.1:9000"));
        let hosted = S3Options { path_style: false, ..at("https://store.example.org:8443") };
        assert_eq!(hosted.endpoint_of("events").as_deref(), Some("https://events.store.example.org:8443"));
        assert_eq!(at("").endpoint_of("events"), None);
        assert_eq!(at("http://127.0.0.1:9000").region().unwrap(), "us-east-1");
        let region = S3Options { region: "eu-central-1".to_owned(), ..S3Options::default() };
        assert_eq!(region.region().unwrap(), "eu-central-1");
    }
}
