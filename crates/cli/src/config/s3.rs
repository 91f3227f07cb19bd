//! An S3-compatible store for the bucket of a cluster.

use super::setting::{Setting, text, truth};
use toml::Value;

/// The settings `cluster.s3.*`.
#[derive(Debug, Clone)]
pub struct S3 {
    /// Address of the store; empty: AWS.
    pub endpoint: String,
    /// Region of the bucket; empty: that of the environment.
    pub region: String,
    /// File whose first line is the id of an access key; empty: credentials of the environment, or of the machine.
    pub access_key_file: String,
    /// File whose first line is its secret.
    pub secret_key_file: String,
    /// File with the certificates of authorities; empty: those of the system.
    pub ca_file: String,
    /// Whether requests have the bucket's name in the path.
    pub path_style: bool,
    /// Whether to use plain HTTP for a store on another machine.
    pub allow_http: bool,
}

impl Default for S3 {
    fn default() -> S3 {
        S3 {
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

#[cfg(feature = "cluster")]
impl S3 {
    /// Converts them to the options of the bucket.
    pub fn options(&self) -> meridian_bucket::S3Options {
        meridian_bucket::S3Options {
            endpoint: self.endpoint.clone(),
            region: self.region.clone(),
            access_key_file: self.access_key_file.clone(),
            secret_key_file: self.secret_key_file.clone(),
            ca_file: self.ca_file.clone(),
            path_style: self.path_style,
            allow_http: self.allow_http,
        }
    }
}

pub(super) const SETTINGS: &[Setting] = &[
    plain!(
        "cluster.s3.endpoint",
        "Address of an S3-compatible store for a bucket s3://BUCKET/PREFIX, such as https://store.example.org; empty: AWS.",
        cluster.s3.endpoint
    ),
    plain!(
        "cluster.s3.region",
        "Region of the bucket; empty: that of AWS_REGION, and for a store with an endpoint us-east-1.",
        cluster.s3.region
    ),
    plain!(
        "cluster.s3.access_key_file",
        "File whose first line is the id of an access key; empty: credentials of the environment (AWS_*), or of the machine.",
        cluster.s3.access_key_file
    ),
    plain!(
        "cluster.s3.secret_key_file",
        "File whose first line is the secret of that key.",
        cluster.s3.secret_key_file
    ),
    plain!(
        "cluster.s3.ca_file",
        "File with the certificates of authorities, in PEM, that the store is trusted by beside those of the system.",
        cluster.s3.ca_file
    ),
    Setting {
        key: "cluster.s3.path_style",
        help: "Name the bucket in the path of requests; false: in front of the store's host name.",
        get: |c| Value::Boolean(c.cluster.s3.path_style),
        set: |c, v| truth(v).map(|b| c.cluster.s3.path_style = b),
    },
    Setting {
        key: "cluster.s3.allow_http",
        help: "Take an endpoint http:// on another machine. Events cross the network unencrypted.",
        get: |c| Value::Boolean(c.cluster.s3.allow_http),
        set: |c, v| truth(v).map(|b| c.cluster.s3.allow_http = b),
    },
];
