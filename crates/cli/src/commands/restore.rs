//! `meridian restore`: creates a data folder from a backup.

use crate::args::{Target, TargetArgs};
use crate::commands::backup::{list, read_key};
use crate::commands::copied::Copied;
use crate::failure::Failure;
use crate::output::say;
use crate::trust::Address;
use clap::Args;
use meridian_store::Options;
use meridian_store::seams::Seams;
use std::path::PathBuf;

/// Create a data folder from a backup
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian restore /backups/monday --data ./restored
  meridian serve --data ./restored

Every checksum is verified, and each collection must have as many events as in the backup. The data folder must be new
or empty. It becomes valid in the last step, so an interrupted restore leaves a folder that does not open: run it again.
Secrets come back with the key that the backup was made with.
docs/backup.md has more.")]
pub struct RestoreArgs {
    /// Folder of the backup
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// File with the key that the backup was made with
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &RestoreArgs) -> Result<(), Failure> {
    let data = match args.target.resolve() {
        Target::Folder(data) => data,
        Target::Server(Address { url, .. }) => {
            return Err(Failure::Usage(format!(
                "{url}: a running server is not restored into: name a new or empty folder with --data, and start a server on it"
            )));
        }
    };
    let key = args.key.as_deref().map(read_key).transpose()?.map(|(_, key)| key);
    let mut copied = Copied::start("restore");
    let restored = meridian_store::restore(&args.dir, Options::at(&data), Seams::real(), key.as_ref(), &mut |bytes| {
        copied.add(bytes);
    });
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
    say(&format!("{}: restored from {}", data.display(), args.dir.display()));
    Ok(())
}
