//! Files that an operator names, in an option or a setting: read whole, bounded, and not waited on, except for a pipe
//! of the person at the command line.
#![allow(clippy::disallowed_methods, reason = "files of the operator, and none of the store")]

use super::real::expect_file;
use std::fs::File;
use std::io::{self, ErrorKind, Read as _};
use std::path::Path;

/// Max bytes of such a file: settings, keys, certificates and declarations take far fewer.
const BYTES_MAX: u64 = 16 << 20;

/// Reads a file that an operator names. The caller adds the name of the option to an error.
///
/// # Errors
/// A sentence with what was expected, or the error of the file system.
pub fn read_named(path: &Path) -> io::Result<Vec<u8>> {
    expect_file(path)?;
    read_bounded(File::open(path)?)
}

/// Opens what a person names at the command line for one read: a file, or a pipe such as `<(command)` and `/dev/stdin`.
/// Only the open of a pipe waits.
///
/// # Errors
/// A folder, or the error of the file system.
pub fn open_named_once(path: &Path) -> io::Result<File> {
    match std::fs::metadata(path)?.is_dir() {
        true => Err(invalid("expected a file or a pipe, and not a folder".to_owned())),
        false => File::open(path),
    }
}

/// Reads to its end what a person names at the command line for one read. A device is read up to the limit.
///
/// # Errors
/// Those of [`open_named_once`], and a sentence for what is too long.
pub fn read_named_once(path: &Path) -> io::Result<Vec<u8>> {
    read_bounded(open_named_once(path)?)
}

fn read_bounded(file: File) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    // One byte beyond the limit, so that a longer file is noticed without reading it whole.
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes)?;
    match bytes.len() as u64 > BYTES_MAX {
        true => Err(invalid(format!("expected at most {} MiB", BYTES_MAX >> 20))),
        false => Ok(bytes),
    }
}

/// Reads a text that an operator names, as [`read_named`] does.
///
/// # Errors
/// Those of [`read_named`], and a sentence for what is no text.
pub fn read_named_text(path: &Path) -> io::Result<String> {
    text(read_named(path)?)
}

/// Reads a text as [`read_named_once`] does.
///
/// # Errors
/// Those of [`read_named_once`], and a sentence for what is no text.
pub fn read_named_text_once(path: &Path) -> io::Result<String> {
    text(read_named_once(path)?)
}

fn text(bytes: Vec<u8>) -> io::Result<String> {
    String::from_utf8(bytes).map_err(|_| invalid("expected a text in UTF-8".to_owned()))
}

fn invalid(detail: String) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, detail)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_file_is_refused_before_it_is_opened() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("socket");
        let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
        // An open of the socket fails, one of the device does not end the reading.
        for path in [folder.path(), Path::new("/dev/zero"), &socket] {
            let error = read_named(path).unwrap_err();
            assert!(error.to_string().starts_with("expected a file"), "{}: {error}", path.display());
        }
        assert_eq!(read_named(&folder.path().join("none")).unwrap_err().kind(), ErrorKind::NotFound);
    }

    #[test]
    fn a_pipe_is_read_once_and_a_device_up_to_the_limit() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe");
        assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let writer = {
            let pipe = pipe.clone();
            // An open for writing waits for the reader below.
            std::thread::spawn(move || std::fs::write(pipe, "key"))
        };
        assert_eq!(read_named_text_once(&pipe).unwrap(), "key");
        writer.join().unwrap().unwrap();
        assert_eq!(read_named_once(Path::new("/dev/zero")).unwrap_err().to_string(), "expected at most 16 MiB");
        let refused = read_named_once(folder.path()).unwrap_err();
        assert_eq!(refused.to_string(), "expected a file or a pipe, and not a folder");
    }

    #[test]
    fn a_file_has_a_limit_and_a_text_is_utf_8() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        File::create(&path).unwrap().set_len(BYTES_MAX).unwrap();
        assert_eq!(read_named(&path).unwrap().len() as u64, BYTES_MAX);
        File::create(&path).unwrap().set_len(BYTES_MAX + 1).unwrap();
        assert_eq!(read_named(&path).unwrap_err().to_string(), "expected at most 16 MiB");
        std::fs::write(&path, "süß").unwrap();
        assert_eq!(read_named_text(&path).unwrap(), "süß");
        std::fs::write(&path, [b'a', 0xff]).unwrap();
        assert_eq!(read_named_text(&path).unwrap_err().to_string(), "expected a text in UTF-8");
    }
}
