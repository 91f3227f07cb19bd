//! Arguments shared by commands: where to work, and on which events.

use crate::failure::Failure;
use crate::trust::Address;
use clap::Args;
use meridian_model::{Interval, Invalid, filter};
use std::path::{Path, PathBuf};

/// Folder used where neither a folder nor a server is named.
const FOLDER: &str = "./meridian-data";

/// Where a command works.
#[derive(Args, Debug, Clone)]
pub struct TargetArgs {
    /// Work on this data folder [default: ./meridian-data]
    #[arg(long, value_name = "DIR", help_heading = "Where")]
    pub data: Option<PathBuf>,
    /// Work on the server at this address instead [default: $MERIDIAN_URL, where neither is given]
    #[arg(long, value_name = "URL", help_heading = "Where")]
    pub url: Option<String>,
    /// Trust the authorities in this file (PEM) for https://, instead of the system's
    #[arg(long, value_name = "FILE", env = "MERIDIAN_CA", help_heading = "Where")]
    pub ca_file: Option<PathBuf>,
}

/// Where a command works, decided.
pub enum Target {
    /// A data folder that no server has open.
    Folder(PathBuf),
    /// A running server.
    Server(Address),
}

impl TargetArgs {
    /// `--url` wins over `--data`, and both win over `MERIDIAN_URL`.
    pub fn resolve(&self) -> Target {
        let from_environment = || std::env::var("MERIDIAN_URL").ok().filter(|u| !u.is_empty());
        let server = |url| Target::Server(Address { url, ca: self.ca_file.clone() });
        match (&self.url, &self.data) {
            (Some(url), _) => server(url.clone()),
            (None, Some(folder)) => Target::Folder(folder.clone()),
            (None, None) => match from_environment() {
                Some(url) => server(url),
                None => Target::Folder(PathBuf::from(FOLDER)),
            },
        }
    }
}

/// Where a command works that administers: as others do, or in the bucket of a cluster.
#[derive(Args, Debug, Clone)]
pub struct OwnerArgs {
    #[command(flatten)]
    target: TargetArgs,
    /// Work on the bucket of a cluster, file://DIR or s3://BUCKET/PREFIX, whether or not servers serve it
    #[arg(long, value_name = "ADDRESS", help_heading = "Where", conflicts_with_all = ["data", "url"])]
    bucket: Option<String>,
    /// Settings of a process of the cluster, in TOML: they say how the store of --bucket s3://… is reached
    #[arg(long, value_name = "FILE", help_heading = "Where", requires = "bucket")]
    config: Option<PathBuf>,
}

/// Where a command works that administers, decided.
pub enum OwnerTarget {
    /// A folder or a server.
    Target(Target),
    /// The bucket at this address.
    Bucket {
        /// `file://DIR` or `s3://BUCKET/PREFIX`.
        address: String,
        /// Settings of a process of its cluster.
        config: Option<PathBuf>,
    },
}

impl OwnerArgs {
    /// `--bucket` wins over what the environment names.
    pub fn resolve(&self) -> OwnerTarget {
        match &self.bucket {
            Some(address) => OwnerTarget::Bucket { address: address.clone(), config: self.config.clone() },
            None => OwnerTarget::Target(self.target.resolve()),
        }
    }
}

/// Refuses a missing folder, for commands that only read; `otherwise` names the alternatives to a folder.
pub fn folder_exists(folder: &Path, otherwise: &str) -> Result<(), Failure> {
    if folder.is_dir() {
        return Ok(());
    }
    Err(Failure::Usage(format!("there is no data folder {}: name one with --data{otherwise}", folder.display())))
}

/// Refuses the address of a bucket that may contain a key. The message omits the address, since messages end up in
/// logs.
pub fn bucket_without_key(address: &str) -> Result<(), Failure> {
    if address.starts_with("file://") || !address.contains('@') {
        return Ok(());
    }
    let what = "--bucket: the address has an \"@\", as if it held a key: a key in an address is shown to others: put it into files, and name \
                these in cluster.s3.access_key_file and cluster.s3.secret_key_file";
    Err(Failure::Usage(what.to_owned()))
}

/// Refuses the address of a bucket whose folder is missing, for read-only commands. Other addresses are refused when
/// they are opened.
pub fn bucket_exists(address: &str) -> Result<(), Failure> {
    bucket_without_key(address)?;
    match address.strip_prefix("file://").map(Path::new).filter(|folder| !folder.is_dir()) {
        Some(missing) => Err(Failure::Usage(format!("--bucket {address}: there is no folder {}", missing.display()))),
        None => Ok(()),
    }
}

/// Which events.
#[derive(Args, Debug, Clone, Default)]
pub struct SelectionArgs {
    /// Only events in this box: west,south,east,north in degrees (west > east crosses the antimeridian)
    #[arg(long, value_name = "W,S,E,N", allow_hyphen_values = true, help_heading = "Which events")]
    pub bbox: Option<String>,
    /// Only events of this time: an instant, a date, or START/END with .. for an open end
    #[arg(long, value_name = "TIME", help_heading = "Which events")]
    pub datetime: Option<String>,
    /// Only events that match this CQL2 text, such as "mag > 5 AND type = 'earthquake'"
    #[arg(long, value_name = "CQL2", help_heading = "Which events")]
    pub filter: Option<String>,
    /// Only events within this distance in metres of a point, nearest first: LON,LAT,METRES
    #[arg(long, value_name = "LON,LAT,METRES", allow_hyphen_values = true, help_heading = "Which events")]
    pub near: Option<String>,
}

impl SelectionArgs {
    /// The parameters of a request, checked as far as they can be without knowing the collection.
    pub fn parameters(&self) -> Result<Vec<(&'static str, String)>, Failure> {
        let mut out = Vec::new();
        if let Some(bbox) = &self.bbox {
            // Checked here only for its form: the server decides what the box means.
            numbers("--bbox", bbox, &[4, 6], "west,south,east,north in degrees, such as -10,35,5,45")?;
            out.push(("bbox", bbox.clone()));
        }
        if let Some(datetime) = &self.datetime {
            Interval::parse(datetime).map_err(|e| Failure::option("--datetime", &e))?;
            out.push(("datetime", datetime.clone()));
        }
        if let Some(text) = &self.filter {
            // Here as well as on the server: the error then names the option, and comes before a folder is opened.
            filter::parse_text(text).map_err(|e| Failure::option("--filter", &e))?;
            out.push(("filter", text.clone()));
        }
        if let Some(near) = &self.near {
            let n = numbers("--near", near, &[3], "longitude,latitude,metres, such as 2.35,48.86,5000")?;
            meridian_model::geometry::validate_position(n[0], n[1]).map_err(|e| Failure::option("--near", &e))?;
            if n[2] < 0.0 {
                return Err(Failure::Usage(format!("--near: {} metres: expected 0 or more", n[2])));
            }
            out.push(("near", format!("{},{}", n[0], n[1])));
            out.push(("radius", n[2].to_string()));
        }
        Ok(out)
    }
}

/// Reads numbers separated by commas; `counts` lists how many are allowed.
pub fn numbers(option: &str, text: &str, counts: &[usize], expected: &str) -> Result<Vec<f64>, Failure> {
    let numbers: Option<Vec<f64>> =
        text.split(',').map(|n| n.trim().parse().ok().filter(|n: &f64| n.is_finite())).collect();
    match numbers {
        Some(numbers) if counts.contains(&numbers.len()) => Ok(numbers),
        _ => Err(Failure::option(option, &Invalid::new(format!("{text:?}: expected {expected}")))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mistakes_are_found_before_anything_is_asked() {
        let good = SelectionArgs {
            bbox: Some("-10,35,5,45".to_owned()),
            datetime: Some("2026-01-01/..".to_owned()),
            filter: Some("mag > 5".to_owned()),
            near: Some("2.35,48.86,5e3".to_owned()),
        };
        let names: Vec<&str> = good.parameters().unwrap().iter().map(|p| p.0).collect();
        assert_eq!(names, ["bbox", "datetime", "filter", "near", "radius"]);
        for (bad, option) in [
            (SelectionArgs { bbox: Some("1,2,3,4,5".to_owned()), ..Default::default() }, "--bbox"),
            (SelectionArgs { bbox: Some("1,2,3,NaN".to_owned()), ..Default::default() }, "--bbox"),
            (SelectionArgs { datetime: Some("yesterday".to_owned()), ..Default::default() }, "--datetime"),
            (SelectionArgs { filter: Some("mag >".to_owned()), ..Default::default() }, "--filter"),
            (SelectionArgs { near: Some("48,200,5".to_owned()), ..Default::default() }, "--near"),
            (SelectionArgs { near: Some("2,48".to_owned()), ..Default::default() }, "--near"),
            (SelectionArgs { near: Some("2,48,-1".to_owned()), ..Default::default() }, "--near"),
        ] {
            let error = bad.parameters().unwrap_err();
            assert_eq!(error.code(), 2);
            assert!(error.to_string().starts_with(option), "{error}");
        }
    }
}
