//! `meridian check`: reads and verifies everything in a data folder, or in the bucket of a cluster.

use crate::args::{bucket_exists, folder_exists};
#[cfg(feature = "cluster")]
use crate::calls::calls;
use crate::collection::TENANT;
#[cfg(feature = "cluster")]
use crate::config::{Config, S3};
use crate::failure::Failure;
use crate::output::say;
use clap::Args;
#[cfg(feature = "cluster")]
use meridian_store::StoreError;
use meridian_store::seams::Seams;
use meridian_store::{Options, Repair, Store};
use std::path::{Path, PathBuf};

/// Read everything in a data folder or a bucket and verify every checksum and tree
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian check
  meridian check --data /srv/events
  meridian check --repair --data /srv/events
  meridian check --bucket file:///srv/bucket
  meridian check --bucket s3://events/production --config /etc/meridian/cluster.toml

Exits with 0 if everything is sound, otherwise with 1 and a list of the damage. The folder must not be in use. A check
only makes the repairs of every start: a torn tail of the log, unfinished files after a crash, and files that can be
rebuilt from sound ones, which are listed.

A repair keeps the readable parts of a damaged collection, so that it accepts writes again. It deletes nothing: damaged
and unreferenced files move to the folder lost of the collection. It exits with 1 if anything is missing.

With --bucket file:///srv/bucket it checks the bucket of a cluster, beside its servers or without them. It names damaged
and missing objects there, and repairs none: put them back from a copy of the bucket. It writes nothing but a pin, which
keeps in place what it reads. It does not read a log in NATS.")]
pub struct CheckArgs {
    /// Folder to check
    #[arg(long, value_name = "DIR", default_value = "./meridian-data")]
    pub data: PathBuf,
    /// First repair collections that cannot be opened, are incomplete, refuse writes or have unreadable events
    #[arg(long)]
    pub repair: bool,
    /// Check the bucket of a cluster instead, file://DIR or s3://BUCKET/PREFIX
    #[arg(long, value_name = "ADDRESS", conflicts_with = "data")]
    pub bucket: Option<String>,
    /// Settings of a process of the cluster, in TOML: they say how the store of --bucket s3://… is reached
    #[arg(long, value_name = "FILE", requires = "bucket")]
    pub config: Option<PathBuf>,
}

/// Reports what a repair found, did and missed.
fn tell(repair: &Repair) {
    let outcome = if repair.mended { "is repaired" } else { "could not be repaired" };
    say(&format!("the collection {} {outcome}", repair.name));
    repair.done.iter().for_each(|what| say(&format!("  {what}")));
    repair.missing.iter().for_each(|what| say(&format!("  missing: {what}")));
}

/// Runs the command.
pub fn run(args: &CheckArgs) -> Result<(), Failure> {
    if let Some(bucket) = &args.bucket {
        return check_bucket(bucket, args.config.as_deref(), args.repair);
    }
    folder_exists(&args.data, "")?;
    // Opening an empty folder would make it a data folder.
    if std::fs::read_dir(&args.data).is_ok_and(|mut names| names.next().is_none()) {
        return Err(Failure::Usage(format!("{} is empty: there is nothing to check", args.data.display())));
    }
    // Without background work, no event expires and nothing is flushed or merged meanwhile.
    let options = Options { background: false, ..Options::at(&args.data) };
    let store = Store::open(options, Seams::real())?;
    // Before the check, which then reports only the remaining damage.
    let repairs = if args.repair { store.repair() } else { Vec::new() };
    repairs.iter().for_each(tell);
    let problems = store.check();
    for problem in &problems {
        say(&problem.to_string());
    }
    for damaged in store.damaged(TENANT) {
        say(&format!("the collection {} is not served: {}", damaged.name, damaged.cure));
    }
    for collection in store.list(TENANT).iter().filter(|collection| collection.stats().refuses.is_some()) {
        let name = collection.name();
        say(&format!(
            "the collection {name} accepts no writes: `meridian check --repair` keeps its readable parts, and deletes nothing"
        ));
    }
    // Read while the store is open; printed only if nothing is wrong.
    let acts = store.audit().ends();
    // Closing would flush: a check changes nothing.
    drop(store);
    let missing: usize = repairs.iter().map(|repair| repair.missing.len()).sum();
    if problems.is_empty() && missing > 0 {
        let data = args.data.display();
        return Err(Failure::Bad(format!(
            "{data}: repaired; the rest is in order, except for the missing parts listed above"
        )));
    }
    if problems.is_empty() {
        say(&format!("{}: everything is in order", args.data.display()));
        if let Some((first, last, hash)) = acts {
            say(&format!("the audit log has the lines {first} to {last}; the last has the SHA-256 {hash}"));
        }
        return Ok(());
    }
    Err(Failure::Bad(format!("{}: {}", args.data.display(), count_text(problems.len()))))
}

fn count_text(problems: usize) -> String {
    format!("{problems} {}", if problems == 1 { "problem" } else { "problems" })
}

/// Checks a bucket.
#[cfg(feature = "cluster")]
fn check_bucket(address: &str, config: Option<&Path>, repair: bool) -> Result<(), Failure> {
    if repair {
        let what = "--repair: objects in a bucket are not repaired: put damaged ones back from a copy of the bucket";
        return Err(Failure::Usage(what.to_owned()));
    }
    bucket_exists(address)?;
    let s3 = config.map(Config::read).transpose()?.map_or_else(S3::default, |config| config.cluster.s3).options();
    let of_bucket = |error: StoreError| match error {
        StoreError::Invalid(what) => Failure::Usage(format!("--bucket {address}: {what}")),
        other => other.into(),
    };
    let bucket = meridian_bucket::open_to_look(address, &s3, &calls()?).map_err(of_bucket)?;
    let found = meridian_store::check_bucket(&bucket, &Seams::real()).map_err(of_bucket)?;
    found.problems.iter().for_each(|problem| say(&problem.to_string()));
    if !found.logs {
        say("the log in NATS is not checked: an owner names what it lacks");
    }
    match found.problems.len() {
        0 => say(&format!("{address}: everything is in order, in {} collections", found.collections)),
        count => return Err(Failure::Bad(format!("{address}: {}", count_text(count)))),
    }
    Ok(())
}

#[cfg(not(feature = "cluster"))]
fn check_bucket(address: &str, _: Option<&Path>, _: bool) -> Result<(), Failure> {
    bucket_exists(address)?;
    Err(Failure::Usage(format!("--bucket {address}: this program was built without the feature `cluster`")))
}
