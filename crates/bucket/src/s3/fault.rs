//! Converts errors of an S3 store to those of the store of collections. The kind is for the program; the text names the
//! setting at fault.

use object_store::Error;
use object_store::client::{HttpError, HttpErrorKind};
use std::error::Error as _;
use std::io::{self, ErrorKind};

/// Max characters of the store's message to include.
const WORDS_MAX: usize = 300;

/// Prefix of addresses where cloud machines obtain credentials.
const CREDENTIALS_AT: &str = "//169.254.";

/// A bucket, as named in messages.
#[derive(Debug, Clone)]
pub(super) struct BucketLocation {
    /// `s3://BUCKET/PREFIX`.
    pub(super) address: String,
    pub(super) bucket: String,
    /// Address of the store.
    pub(super) endpoint: String,
    pub(super) region: String,
}

/// The error body of a store: the members read.
#[derive(Debug, Default, PartialEq, Eq)]
struct ErrorDetails {
    code: String,
    message: String,
    /// The region it expects.
    region: Option<String>,
}

impl BucketLocation {
    /// Converts the error of a call.
    ///
    /// A failed create *may* have taken effect, unless the kind of its error excludes that. Kinds of a lost response
    /// lead to a retry, and to a check of what exists. So everything unknown gets such a kind, including errors of a
    /// proxy in front of the store.
    pub(super) fn error(&self, error: &Error) -> io::Error {
        let text = error.to_string();
        let Some(details) = details_in(&text) else { return self.without_answer(error, &text) };
        let (bucket, endpoint, region) = (&self.bucket, &self.endpoint, &self.region);
        let (kind, meaning) = match details.code.as_str() {
            "NoSuchKey" => return io::Error::new(ErrorKind::NotFound, "there is no such object"),
            "PreconditionFailed" => return io::Error::new(ErrorKind::AlreadyExists, "there is such an object"),
            "InvalidRange" => return io::Error::new(ErrorKind::UnexpectedEof, "the object ends before"),
            // Neither "absent" nor "refused": without the bucket, nothing is known of its objects.
            "NoSuchBucket" => (
                ErrorKind::Other,
                format!(
                    "there is no bucket {bucket} at {endpoint}: create it, or correct the address {} (cluster.bucket, --bucket) or \
                     cluster.s3.endpoint",
                    self.address
                ),
            ),
            "InvalidAccessKeyId" | "XAdminUserNotFound" => (
                ErrorKind::PermissionDenied,
                format!(
                    "{endpoint} does not know the access key: expected one of this store in cluster.s3.access_key_file, or in \
                     AWS_ACCESS_KEY_ID"
                ),
            ),
            "SignatureDoesNotMatch" => (
                ErrorKind::PermissionDenied,
                "the secret does not belong to the access key: expected its secret in cluster.s3.secret_key_file, or in \
                 AWS_SECRET_ACCESS_KEY"
                    .to_owned(),
            ),
            "ExpiredToken" | "InvalidToken" | "TokenRefreshRequired" => {
                (ErrorKind::PermissionDenied, "the credentials have expired, or are of another store".to_owned())
            }
            "AccessDenied" | "AllAccessDisabled" | "AccountProblem" => (
                ErrorKind::PermissionDenied,
                format!(
                    "access to the bucket {bucket} is denied: the credentials need s3:ListBucket on it, and s3:GetObject, s3:PutObject, \
                     s3:DeleteObject and s3:AbortMultipartUpload on its objects"
                ),
            ),
            "RequestTimeTooSkewed" => (
                ErrorKind::PermissionDenied,
                "the clock of this machine is too far from the store's: set it".to_owned(),
            ),
            "AuthorizationHeaderMalformed" | "PermanentRedirect" | "TemporaryRedirect" | "IllegalLocationConstraintException" => (
                ErrorKind::PermissionDenied,
                match &details.region {
                    Some(expected) => format!("cluster.s3.region is {region}: expected {expected}, the region of the bucket {bucket}"),
                    None => wrong_region(region, bucket),
                },
            ),
            "QuotaExceeded" | "XMinioAdminBucketQuotaExceeded" => {
                (ErrorKind::QuotaExceeded, format!("the bucket {bucket} has used up its quota"))
            }
            "InsufficientStorage" | "XMinioStorageFull" => {
                (ErrorKind::StorageFull, format!("the store at {endpoint} is full"))
            }
            "NotImplemented" => (
                ErrorKind::Unsupported,
                format!("the store at {endpoint} lacks what a bucket needs: expected creates with If-None-Match, also of uploads in parts"),
            ),
            _ => (ErrorKind::ConnectionAborted, format!("the store at {endpoint} failed")),
        };
        io::Error::new(kind, format!("{meaning} ({}: {})", details.code, details.message))
    }

    /// Converts the error of a call without a response, or with one that is not a store's.
    fn without_answer(&self, error: &Error, text: &str) -> io::Error {
        let mut kind = match error {
            Error::InvalidPath { .. } => ErrorKind::InvalidInput,
            _ => ErrorKind::ConnectionAborted,
        };
        let mut cause = error.source();
        let mut last = None;
        while let Some(source) = cause {
            match source.downcast_ref::<HttpError>().map(HttpError::kind) {
                Some(HttpErrorKind::Timeout) => kind = ErrorKind::TimedOut,
                Some(HttpErrorKind::Connect) => kind = ErrorKind::ConnectionRefused,
                Some(HttpErrorKind::Request | HttpErrorKind::Interrupted) => kind = ErrorKind::ConnectionReset,
                _ => {}
            }
            last = Some(source);
            cause = source.source();
        }
        let endpoint = &self.endpoint;
        // The addresses where cloud machines request credentials. If the store itself has such an address, it is a lost
        // response.
        if text.contains(CREDENTIALS_AT) && !endpoint.contains(CREDENTIALS_AT) {
            let detail = "there are no credentials: expected cluster.s3.access_key_file and cluster.s3.secret_key_file, or \
                          AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or a role of this machine";
            return io::Error::new(ErrorKind::PermissionDenied, detail);
        }
        if text.contains("Received redirect without LOCATION") {
            return io::Error::new(ErrorKind::PermissionDenied, wrong_region(&self.region, &self.bucket));
        }
        let cause = short(&last.map_or_else(|| text.to_owned(), ToString::to_string));
        let hint = match kind {
            ErrorKind::InvalidInput => return io::Error::new(kind, cause),
            ErrorKind::ConnectionRefused if cause.contains("certificate") => {
                "; the authority of its certificate belongs into cluster.s3.ca_file, if the system does not know it"
            }
            ErrorKind::ConnectionRefused => ": expected an S3-compatible store at cluster.s3.endpoint",
            _ => "",
        };
        io::Error::new(kind, format!("no answer from {endpoint} ({cause}){hint}"))
    }
}

fn wrong_region(region: &str, bucket: &str) -> String {
    format!("cluster.s3.region is {region}: expected the region of the bucket {bucket}")
}

/// Parses the response to a failed call. `object_store` keeps the error with its details private, but they are in the
/// text.
fn details_in(text: &str) -> Option<ErrorDetails> {
    let within = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        Some(rest.split_once(&format!("</{name}>"))?.0)
    };
    Some(ErrorDetails {
        code: short(within("Code")?),
        message: short(&unescaped(within("Message").unwrap_or_default())),
        region: within("Region").map(short),
    })
}

/// Returns the text of an XML element.
fn unescaped(text: &str) -> String {
    let mut text = text.to_owned();
    for (name, meant) in [
        ("&#34;", "\""),
        ("&quot;", "\""),
        ("&#39;", "'"),
        ("&apos;", "'"),
        ("&lt;", "<"),
        ("&gt;", ">"),
        ("&amp;", "&"),
    ] {
        text = text.replace(name, meant);
    }
    text
}

fn short(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(WORDS_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn location() -> BucketLocation {
        BucketLocation {
            address: "s3://events/p".to_owned(),
            bucket: "events".to_owned(),
            endpoint: "http://127.0.0.1:9000".to_owned(),
            region: "us-east-1".to_owned(),
        }
    }

    fn answer(text: &str) -> io::Error {
        location().error(&Error::Generic { store: "S3", source: text.to_owned().into() })
    }

    fn xml(code: &str, more: &str) -> io::Error {
        answer(&format!("status 4xx: <?xml?><Error><Code>{code}</Code><Message>a &#34;b&#34;</Message>{more}</Error>"))
    }

    #[test]
    fn only_an_object_that_is_not_there_is_absent() {
        assert_eq!(xml("NoSuchKey", "").kind(), ErrorKind::NotFound);
        // Stores answer 404 to these as well.
        for code in ["NoSuchBucket", "XAdminUserNotFound", "NoSuchUpload"] {
            assert_ne!(xml(code, "").kind(), ErrorKind::NotFound, "{code}");
        }
    }

    #[test]
    fn a_mistake_in_the_settings_is_named_by_its_setting() {
        for (error, words) in [
            (xml("NoSuchBucket", ""), "no bucket events at http://127.0.0.1:9000"),
            (xml("InvalidAccessKeyId", ""), "cluster.s3.access_key_file"),
            (xml("SignatureDoesNotMatch", "<StringToSign>x</StringToSign>"), "cluster.s3.secret_key_file"),
            (
                xml("AuthorizationHeaderMalformed", "<Region>eu-west-1</Region>"),
                "cluster.s3.region is us-east-1: expected eu-west-1",
            ),
            (xml("PermanentRedirect", ""), "cluster.s3.region is us-east-1: expected the region of the bucket"),
            (answer("Received redirect without LOCATION"), "cluster.s3.region is us-east-1"),
            (xml("AccessDenied", ""), "s3:PutObject"),
            (answer("Error performing PUT http://169.254.169.254/latest/api/token"), "there are no credentials"),
        ] {
            let text = error.to_string();
            assert!(text.contains(words) && !text.contains("StringToSign"), "{text}");
        }
    }

    #[test]
    fn an_error_is_certain_only_where_the_store_has_refused() {
        // Means "no effect now or later" to the store of collections.
        let certain = |error: &io::Error| {
            use ErrorKind::{PermissionDenied, QuotaExceeded, StorageFull, Unsupported};
            matches!(error.kind(), PermissionDenied | QuotaExceeded | StorageFull | Unsupported)
        };
        for code in ["AccessDenied", "SignatureDoesNotMatch", "InsufficientStorage", "QuotaExceeded", "NotImplemented"]
        {
            assert!(certain(&xml(code, "")), "{code}");
        }
        for code in
            ["InternalError", "SlowDown", "ServiceUnavailable", "ConditionalRequestConflict", "RequestTimeout", "Odd"]
        {
            let error = xml(code, "");
            assert!(!certain(&error) && error.kind() == ErrorKind::ConnectionAborted, "{code}: {error}");
            assert!(error.to_string().contains("a \"b\""), "{error}");
        }
        assert!(!certain(&answer("status code: 502: <html>Bad gateway</html>")));
        // A store at a link-local address whose response was lost.
        let link = BucketLocation { endpoint: "http://169.254.7.7:9000".to_owned(), ..location() };
        let lost = "Error performing PUT http://169.254.7.7:9000/events/a".to_owned();
        assert!(!certain(&link.error(&Error::Generic { store: "S3", source: lost.into() })));
    }
}
