//! `meridian restore`: creates a data folder, or the collections of a bucket, from a backup.

use crate::args::{OwnerArgs, OwnerTarget, Target};
use crate::commands::backup::{list, read_key};
use crate::commands::copied::CopyProgress;
use crate::commands::create;
use crate::failure::Failure;
use crate::output::say;
use crate::trust::Address;
use clap::Args;
#[cfg(feature = "cluster")]
use meridian_store::StoreError;
use meridian_store::seams::Seams;
use meridian_store::{Backup, Options, Restore};
use std::path::{Path, PathBuf};

/// Create a data folder, or the collections of a bucket, from a backup
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian restore /backups/monday --data ./restored
  meridian serve --data ./restored

Every checksum is verified, and each collection must have as many events as in the backup. The data folder or bucket must
be empty; no process may use it. It becomes valid in the last step, so an interrupted restore leaves one that does not
open: run it again. Secrets come back with the key that the backup was made with.
With --bucket file:///srv/bucket the collections and records of a cluster are made, also from the backup of a server, as a
folder is made from that of a cluster. --partitions divides the events of each collection again: events keep their ids, and
idempotency keys are not kept.
docs/backup.md has more.")]
pub struct RestoreArgs {
    /// Folder of the backup
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// File with the key that the backup was made with
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    /// Number of partitions of each collection, 1 to 256 [default: as in the backup]
    #[arg(long, value_name = "N")]
    pub partitions: Option<String>,
    #[command(flatten)]
    pub target: OwnerArgs,
}

/// Runs the command.
pub fn run(args: &RestoreArgs) -> Result<(), Failure> {
    let target = args.target.resolve();
    if let OwnerTarget::Target(Target::Server(Address { url, .. })) = &target {
        return Err(Failure::Usage(format!(
            "{url}: a running server is not restored into: name a new or empty folder with --data, and start a server on it"
        )));
    }
    let partitions = args.partitions.as_deref().map(create::partitions).transpose();
    let partitions = partitions.map_err(|e| Failure::Usage(format!("--partitions: {e}")))?;
    let key = args.key.as_deref().map(read_key).transpose()?.map(|(_, key)| key);
    let restore = Restore::of(&args.dir).with_key(key.clone()).in_partitions(partitions);
    let mut copied = CopyProgress::start("restore");
    let restored = match &target {
        OwnerTarget::Bucket { address, config } => {
            into_bucket(&restore, address, config.as_deref(), &mut |bytes| copied.add(bytes))
        }
        OwnerTarget::Target(Target::Folder(data)) => {
            let to = restore.to_folder(Options::at(data), Seams::real(), &mut |bytes| copied.add(bytes));
            to.map_err(Failure::from)
        }
        OwnerTarget::Target(Target::Server(_)) => return Ok(()),
    };
    copied.end();
    let restored = restored?;
    list(&restored);
    match (key, restored.sealed(), restored.left_out().len()) {
        (None, 1.., _) | (_, _, 1..) => {
            say(
                "secrets are not restored: `meridian token create` and `meridian user passwd` let callers in; webhooks are gone",
            );
        }
        (Some(_), 0, 0) => say("the backup has no secrets: --key is not needed"),
        _ => {}
    }
    let place = match &target {
        OwnerTarget::Bucket { address, .. } => address.clone(),
        OwnerTarget::Target(Target::Folder(data)) => data.display().to_string(),
        OwnerTarget::Target(Target::Server(Address { url, .. })) => url.clone(),
    };
    say(&format!("{place}: restored from {}", args.dir.display()));
    Ok(())
}

/// Restores the collections and records into a bucket.
#[cfg(feature = "cluster")]
fn into_bucket(
    restore: &Restore,
    address: &str,
    config: Option<&Path>,
    progress: &mut dyn FnMut(u64),
) -> Result<Backup, Failure> {
    use crate::calls::calls;
    use crate::commands::serve::cluster::open_log;
    use crate::config::Config;

    crate::args::bucket_without_key(address)?;
    let (seams, cluster) = (Seams::real(), config.map(Config::read).transpose()?.unwrap_or_default().cluster);
    let bucket = meridian_bucket::open(address, &cluster.s3.options(), &calls()?, &seams.random);
    let bucket = bucket.map_err(|e| of_option(e, &format!("--bucket {address}")))?;
    let log = calls()?.block_on(open_log(&cluster))?;
    restore.to_bucket(&seams, &bucket, log, progress).map_err(|e| of_option(e, &format!("--bucket {address}")))
}

#[cfg(not(feature = "cluster"))]
fn into_bucket(_: &Restore, address: &str, _: Option<&Path>, _: &mut dyn FnMut(u64)) -> Result<Backup, Failure> {
    Err(Failure::Usage(format!("--bucket {address}: this program was built without the feature `cluster`")))
}

/// Blames the option that caused the error.
#[cfg(feature = "cluster")]
fn of_option(error: StoreError, option: &str) -> Failure {
    match error {
        StoreError::Invalid(what) if matches!(what.field.as_deref(), Some("bucket" | "log")) => {
            Failure::Usage(format!("{option}: {}", what.detail))
        }
        other => other.into(),
    }
}
