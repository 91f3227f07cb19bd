//! `meridian backup`: a copy of a live server, or of a data folder, to be restored from.

use crate::args::TargetArgs;
use crate::client::Client;
use crate::commands::copied::Copied;
use crate::failure::Failure;
use crate::output::say;
use crate::units::{count_text, size_short};
use clap::Args;
use meridian_store::seams::RealDisk;
use meridian_store::{Backup, BackupFolder};
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;

/// Copy everything into a folder, from which `meridian restore` makes a data folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian backup /backups/monday --url http://127.0.0.1:7117
  meridian backup /backups/monday --data ./meridian-data

Writes and reads continue. Each collection is saved as of one position: everything acknowledged before the backup
began, and whole batches only. The folder is on this machine, wherever the server is. A folder with an older backup
gets only new files, and the new backup replaces the older one once it is complete. An interrupted backup is resumed.
docs/backup.md has more.")]
pub struct BackupArgs {
    /// Folder for the backup: new, empty, or that of an older one
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    #[command(flatten)]
    pub target: TargetArgs,
}

/// Runs the command.
pub fn run(args: &BackupArgs) -> Result<(), Failure> {
    let client = Client::open(&args.target.resolve())?;
    let folder = BackupFolder::open(Arc::new(RealDisk), &args.dir)?;
    let have = folder.have()?;
    let kept = have.len();
    let mut answer = client.post_stream(&["backup"], &json!({ "have": have }))?;
    let mut copied = Copied::start("backup");
    let received = folder.receive(&mut answer, &mut |bytes| copied.add(bytes));
    copied.end();
    let received = received?;
    drop(answer);
    list(&received.backup);
    let reused = if kept > 0 { " (the rest was there already)" } else { "" };
    say(&format!(
        "{}: {} in {} files are new{reused}",
        args.dir.display(),
        size_short(received.bytes),
        count_text(received.files)
    ));
    client.close()
}

/// Prints what a backup holds, a collection a line, and the records that a server keeps beside them: those of saved searches.
pub fn list(backup: &Backup) {
    for saved in &backup.collections {
        say(&format!(
            "{}: {} events at position {} (snapshot {}), {}",
            saved.name(),
            count_text(saved.events()),
            saved.position(),
            saved.seq().to_id(),
            size_short(saved.bytes()),
        ));
    }
    let (records, bytes) = backup.records();
    if records > 0 {
        say(&format!("saved searches: {} records, {}", count_text(records as u64), size_short(bytes)));
    }
}
