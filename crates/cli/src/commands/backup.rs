//! `meridian backup`: copies a live server, or a data folder, for a later restore.

use crate::args::{OwnerArgs, OwnerTarget, Target};
use crate::commands::client::Client;
use crate::commands::copied::CopyProgress;
use crate::failure::Failure;
use crate::output::say;
use crate::trust;
use crate::units::{count_text, size_short};
use clap::Args;
use meridian_store::seams::{RealDisk, read_named_text_once};
use meridian_store::{Backup, BackupFolder, BackupKey};
use serde_json::json;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Copy everything, or one tenant, into a folder, from which `meridian restore` makes a data folder
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian backup /backups/monday --url http://127.0.0.1:7117
  meridian backup /backups/monday --data ./meridian-data
  meridian backup /backups/default --tenant default --data ./meridian-data

Writes and reads continue. Each partition is saved as of one position: everything acknowledged before the backup
began, and whole batches only. The folder is on this machine, wherever the server is. A folder with an older backup
gets only new files, and the new backup replaces the older one once it is complete. An interrupted backup is resumed.
Tokens, passwords and webhooks are secrets: they are left out, or sealed with the key in a file, which
`openssl rand -base64 32 > FILE` makes.
With --bucket file:///srv/bucket the owner of a cluster flushes its collections, and the command reads them in the bucket.
Without an owner it is the owner for as long as it runs.
docs/backup.md has more.")]
pub struct BackupArgs {
    /// Folder for the backup: new, empty, or that of an older one
    #[arg(value_name = "DIR")]
    pub dir: PathBuf,
    /// Only what belongs to this tenant
    #[arg(long, value_name = "T")]
    pub tenant: Option<String>,
    /// File with the key that seals secrets: 32 bytes in base64 or hexadecimal
    #[arg(long, value_name = "FILE")]
    pub key: Option<PathBuf>,
    #[command(flatten)]
    pub target: OwnerArgs,
}

/// Runs the command.
pub fn run(args: &BackupArgs) -> Result<(), Failure> {
    let key = args.key.as_deref().map(read_key).transpose()?;
    let target = args.target.resolve();
    if let (Some(_), OwnerTarget::Target(Target::Server(address))) = (&key, &target) {
        // The server seals the secrets, so it receives the key.
        trust::demand_private(&address.url, "--key")?;
    }
    let client = Client::of_collections(&target)?;
    // A new folder is created once the server has agreed: a refusal leaves nothing behind.
    let open = || BackupFolder::open(Arc::new(RealDisk), &args.dir);
    let older = args.dir.exists().then(open).transpose()?;
    let have = older.as_ref().map_or_else(|| Ok(Default::default()), BackupFolder::have)?;
    let kept = have.len();
    let mut answer = client
        .post_stream(&["backup"], &json!({ "have": have, "tenant": args.tenant, "key": key.map(|(text, _)| text) }))?;
    let folder = older.map_or_else(open, Ok)?;
    let mut copied = CopyProgress::start("backup");
    let received = folder.receive(&mut answer, &mut |bytes| copied.add(bytes));
    copied.end();
    // Returned after the display has ended, so that the error is not printed over it.
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

/// Reads a key file; returns its text, and the parsed key.
pub fn read_key(file: &Path) -> Result<(String, BackupKey), Failure> {
    let wrong = |why: String| Failure::Usage(format!("--key {}: {why}", file.display()));
    let text = read_named_text_once(file).map_err(|e| wrong(format!("it cannot be read: {e}")))?;
    let key = BackupKey::parse(&text).map_err(|e| wrong(e.detail))?;
    Ok((text, key))
}

/// Prints the contents of a backup: a line per collection, and the records that a server keeps beside them.
pub fn list(backup: &Backup) {
    for saved in &backup.collections {
        let of = if saved.tenant() == "default" { String::new() } else { format!("{}/", saved.tenant()) };
        let part = if saved.partitions() > 1 { format!(" (partition {})", saved.partition()) } else { String::new() };
        say(&format!(
            "{of}{}{part}: {} events at position {} (snapshot {}), {}",
            saved.name(),
            count_text(saved.events()),
            saved.position(),
            saved.seq().to_id(),
            size_short(saved.bytes()),
        ));
    }
    let (records, bytes) = backup.records();
    if records > 0 {
        let (records, bytes) = (count_text(records as u64), size_short(bytes));
        say(&format!("tenants, tokens, users, saved searches: {records} records, {bytes}"));
    }
    if backup.sealed() > 0 {
        say(&format!("secrets sealed with a key: {}", count_text(backup.sealed() as u64)));
    }
    if !backup.left_out().is_empty() {
        let each = backup.left_out().iter().map(|(kind, n)| format!("{kind} ({})", count_text(*n)));
        say(&format!("secrets left out, as it was made without --key: {}", each.collect::<Vec<_>>().join(", ")));
    }
}
