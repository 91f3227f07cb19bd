//! Permissions of files that hold secrets.

use meridian_store::seams::{RealDisk, Seams};
use meridian_store::{BackupFolder, BackupScope, Options, Store};
use std::path::Path;
use std::sync::Arc;

#[cfg(unix)]
#[test]
fn records_and_backups_are_for_their_owner_alone() {
    use std::os::unix::fs::PermissionsExt;
    let folder = tempfile::tempdir().unwrap();
    let data = folder.path().join("data");
    let rights = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    let set = |path: &Path, mode| std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
    let store = Store::open(Options { background: false, ..Options::at(&data) }, Seams::real()).unwrap();
    store.records("saved").put("one", b"secret").unwrap();
    assert_eq!((rights(&data.join("saved")), rights(&data.join("saved/one"))), (0o700, 0o600));
    // State left by an older version: the folder is made private, and so is each rewritten file.
    set(&data.join("saved"), 0o755);
    set(&data.join("saved/one"), 0o644);
    std::fs::write(data.join("saved/one.new"), "half").unwrap();
    let records = store.records("saved");
    assert_eq!(rights(&data.join("saved")), 0o700);
    records.put("one", b"another").unwrap();
    assert_eq!(rights(&data.join("saved/one")), 0o600);

    let to = folder.path().join("backup");
    let backup = BackupFolder::open(Arc::new(RealDisk), &to).unwrap();
    let mut tar = Vec::new();
    store.backup(&BackupScope::everything(), &backup.have().unwrap(), &mut tar, &|| false).unwrap();
    backup.receive(&mut tar.as_slice(), &mut |_| {}).unwrap();
    assert_eq!((rights(&to), rights(&to.join("files")), rights(&to.join("BACKUP"))), (0o700, 0o700, 0o600));
    for file in std::fs::read_dir(to.join("files")).unwrap() {
        assert_eq!(rights(&file.unwrap().path()), 0o600);
    }
}
