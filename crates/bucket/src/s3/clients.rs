//! The clients of a store: their credentials, and their retries.

use super::options::S3Options;
use meridian_model::Invalid;
use object_store::StaticCredentialProvider;
use object_store::aws::{AmazonS3, AmazonS3Builder, AmazonS3ConfigKey, AwsCredential, AwsCredentialProvider};
use object_store::{BackoffConfig, Certificate, ClientOptions, HeaderMap, HeaderValue, RetryConfig};
use std::fs::File;
use std::io::{self, BufRead as _, BufReader, ErrorKind, Read};
use std::sync::Arc;
use std::time::Duration;

/// Timeout of a connection attempt.
const CONNECT: Duration = Duration::from_secs(3);
/// Max silence of the store during a read, before the read is resent.
const SILENCE: Duration = Duration::from_secs(5);
/// Max bytes read of a file with a key or with certificates.
const FILE_MAX: u64 = 1 << 20;

/// Environment variables with credentials. Others that `object_store` knows are ignored: they could switch off what the
/// bucket depends on, such as conditional creates or TLS.
const CREDENTIALS: [(&str, AmazonS3ConfigKey); 10] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_WEB_IDENTITY_TOKEN_FILE", AmazonS3ConfigKey::WebIdentityTokenFile),
    ("AWS_ROLE_ARN", AmazonS3ConfigKey::RoleArn),
    ("AWS_ROLE_SESSION_NAME", AmazonS3ConfigKey::RoleSessionName),
    ("AWS_ENDPOINT_URL_STS", AmazonS3ConfigKey::StsEndpoint),
    ("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", AmazonS3ConfigKey::ContainerCredentialsRelativeUri),
    ("AWS_CONTAINER_CREDENTIALS_FULL_URI", AmazonS3ConfigKey::ContainerCredentialsFullUri),
    ("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE", AmazonS3ConfigKey::ContainerAuthorizationTokenFile),
];

/// Four clients of one bucket.
///
/// `object_store` retries a call after a 5xx or a broken connection, and then a create that took effect returns
/// "exists". The caller tells this from another process's object by reading it back. But the caller could not know how
/// many attempts are still in flight, nor could the deadline of an attempt be kept. So calls that change the bucket are
/// sent once, and only reads are retried.
pub(super) struct Clients {
    /// Reads, and the start and the end of an upload without an object: repeating them changes nothing.
    pub(super) reads: AmazonS3,
    /// Parts of uploads, also retried. The store responds only once it has all of a part, which takes long on a slow
    /// line.
    pub(super) parts: AmazonS3,
    /// Creates and deletes, each sent once.
    pub(super) writes: AmazonS3,
    /// Completes uploads, once and only if the name is free. `object_store` has no such call, so every call of this
    /// client has the condition.
    pub(super) completes: AmazonS3,
}

impl Clients {
    /// Makes the clients, without connecting.
    pub(super) fn new(bucket: &str, options: &S3Options) -> Result<Clients, Invalid> {
        options.check()?;
        // The clients use the process-wide crypto provider. A second call changes nothing, so its error can be ignored.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let again = RetryConfig {
            backoff: BackoffConfig {
                init_backoff: Duration::from_millis(50),
                max_backoff: Duration::from_secs(2),
                base: 2.0,
            },
            max_retries: 4,
            retry_timeout: Duration::from_secs(30),
        };
        let once = RetryConfig { max_retries: 0, ..again.clone() };
        let mut connection =
            ClientOptions::new().with_connect_timeout(CONNECT).with_allow_http(options.endpoint.starts_with("http://"));
        for certificate in certificates(&options.ca_file)? {
            connection = connection.with_root_certificate(certificate);
        }
        // Callers have their own deadlines. A client timeout would cut off a large object on a slow line.
        let patient = connection.clone().with_timeout_disabled();
        let mut condition = HeaderMap::new();
        condition.insert("if-none-match", HeaderValue::from_static("*"));

        let mut builder = AmazonS3Builder::new()
            .with_bucket_name(bucket)
            .with_region(options.region()?)
            .with_virtual_hosted_style_request(!options.path_style)
            // One call per object, which every store supports.
            .with_disable_bulk_delete(true);
        if let Some(endpoint) = options.endpoint_of(bucket) {
            builder = builder.with_endpoint(endpoint);
        }
        let build = |builder: AmazonS3Builder, connection: ClientOptions, retry: RetryConfig| {
            builder.with_client_options(connection).with_retry(retry).build().map_err(|error| {
                Invalid::field(
                    "cluster.s3",
                    format!("these settings, with the environment's AWS_*, make no client: {error}"),
                )
            })
        };
        let named = match from_files(options)? {
            Some(credentials) => builder.clone().with_credentials(credentials),
            None => from_environment(builder.clone()),
        };
        let reads = build(named, patient.clone().with_read_timeout(SILENCE), again.clone())?;
        // All from the same source, so that they are requested once.
        let builder = builder.with_credentials(reads.credentials().clone());
        let parts = build(builder.clone(), patient.clone(), again)?;
        let writes = build(builder.clone(), patient.clone(), once.clone())?;
        let completes = build(builder, patient.with_default_headers(condition), once)?;
        Ok(Clients { reads, parts, writes, completes })
    }
}

fn from_environment(builder: AmazonS3Builder) -> AmazonS3Builder {
    CREDENTIALS.into_iter().fold(builder, |builder, (name, key)| match std::env::var(name) {
        Ok(value) if !value.is_empty() => builder.with_config(key, value),
        _ => builder,
    })
}

fn from_files(options: &S3Options) -> Result<Option<AwsCredentialProvider>, Invalid> {
    if options.access_key_file.is_empty() {
        return Ok(None);
    }
    let read = |field: &str, file: &str, what: &str| {
        first_line(file).map_err(|error| {
            Invalid::field(
                format!("cluster.s3.{field}"),
                format!("{file:?}: {error}: expected a file whose first line is {what}"),
            )
        })
    };
    let credential = AwsCredential {
        key_id: read("access_key_file", &options.access_key_file, "the id of an access key")?,
        secret_key: read("secret_key_file", &options.secret_key_file, "the secret of an access key")?,
        token: None,
    };
    Ok(Some(Arc::new(StaticCredentialProvider::new(credential))))
}

/// Returns the first line of a file, trimmed, as no key has white space around it.
fn first_line(file: &str) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(open(file)?).read_line(&mut line)?;
    match line.trim() {
        "" => Err(io::Error::new(ErrorKind::InvalidData, "its first line is empty")),
        key => Ok(key.to_owned()),
    }
}

fn certificates(file: &str) -> Result<Vec<Certificate>, Invalid> {
    if file.is_empty() {
        return Ok(Vec::new());
    }
    let wrong = |why: String| {
        Invalid::field("cluster.s3.ca_file", format!("{file:?}: {why}: expected certificates of authorities in PEM"))
    };
    let mut pem = Vec::new();
    open(file).and_then(|mut file| file.read_to_end(&mut pem)).map_err(|error| wrong(error.to_string()))?;
    match Certificate::from_pem_bundle(&pem) {
        Ok(certificates) if certificates.is_empty() => Err(wrong("it has none".to_owned())),
        Ok(certificates) => Ok(certificates),
        Err(error) => Err(wrong(error.to_string())),
    }
}

/// Opens a file. Bounded, since it may be an endless device.
#[allow(clippy::disallowed_methods, reason = "a file of the operator, and none of the store")]
fn open(file: &str) -> io::Result<io::Take<File>> {
    Ok(File::open(file)?.take(FILE_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[allow(clippy::disallowed_methods, reason = "files of the test")]
    fn a_file_without_a_key_or_a_certificate_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            std::fs::write(folder.path().join(name), text).unwrap();
            folder.path().join(name).display().to_string()
        };
        let good = S3Options {
            endpoint: "http://127.0.0.1:9".to_owned(),
            access_key_file: file("key", " id\r\nmore"),
            secret_key_file: file("secret", "hidden\n"),
            ..S3Options::default()
        };
        assert_eq!(first_line(&good.access_key_file).unwrap(), "id");
        assert!(Clients::new("events", &good).is_ok());
        for (options, words) in [
            (S3Options { access_key_file: file("a", ""), ..good.clone() }, "cluster.s3.access_key_file"),
            (S3Options { secret_key_file: file("b", "\nhidden"), ..good.clone() }, "cluster.s3.secret_key_file"),
            (S3Options { ca_file: file("c", "nothing"), ..good.clone() }, "cluster.s3.ca_file"),
        ] {
            let said = Clients::new("events", &options).err().unwrap().to_string();
            assert!(said.contains(words) && !said.contains("hidden"), "{said}");
        }
    }
}
