//! The control socket of a data folder. Only the folder's owner can open it, and is an operator.

use std::io::{self, Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use ureq::unversioned::transport::{Buffers, ConnectionDetails, Connector, LazyBuffers, NextTimeout, Transport};

/// Its name in the folder.
const NAME: &str = "control.sock";
/// Its name until no other user can open it.
const UNFINISHED: &str = "control.sock.new";

/// Listens on the socket of a folder. The caller holds the folder's lock, so an existing socket is a leftover.
pub fn listen(folder: &Path) -> io::Result<UnixListener> {
    let at = |name: &str| folder.join(name);
    for name in [NAME, UNFINISHED] {
        match std::fs::remove_file(at(name)) {
            Err(e) if e.kind() != io::ErrorKind::NotFound => return Err(e),
            _ => {}
        }
    }
    // Bound under another name and renamed once it is private: at no time can another user open it.
    let listener = with_short_path(folder, UNFINISHED, |path| UnixListener::bind(path))?;
    std::fs::set_permissions(at(UNFINISHED), std::fs::Permissions::from_mode(0o600))?;
    std::fs::rename(at(UNFINISHED), at(NAME))?;
    // Required by tokio for a listener that it takes over.
    listener.set_nonblocking(true)?;
    Ok(listener)
}

/// Removes the socket of a folder.
pub fn remove(folder: &Path) {
    let _ = std::fs::remove_file(folder.join(NAME));
}

/// Returns true if a server serves the folder now.
pub fn is_served(folder: &Path) -> bool {
    connect(folder).is_ok()
}

fn connect(folder: &Path) -> io::Result<UnixStream> {
    with_short_path(folder, NAME, |path| UnixStream::connect(path))
}

/// A socket's address has about 100 bytes, which a path may exceed. The folder's descriptor provides a short path.
fn with_short_path<T>(folder: &Path, name: &str, act: impl FnOnce(&Path) -> io::Result<T>) -> io::Result<T> {
    use std::os::fd::AsRawFd as _;
    let opened = std::fs::File::open(folder)?;
    act(&PathBuf::from(format!("/proc/self/fd/{}", opened.as_raw_fd())).join(name))
}

/// Connects requests to the socket of a folder, regardless of the host they name.
#[derive(Debug)]
pub struct SocketConnector(pub PathBuf);

impl Connector<()> for SocketConnector {
    type Out = SocketTransport;

    fn connect(&self, details: &ConnectionDetails<'_>, _: Option<()>) -> Result<Option<SocketTransport>, ureq::Error> {
        let stream = connect(&self.0)?;
        let config = details.config;
        let buffers = LazyBuffers::new(config.input_buffer_size(), config.output_buffer_size());
        Ok(Some(SocketTransport { stream, buffers }))
    }
}

/// A connection to the socket.
#[derive(Debug)]
pub struct SocketTransport {
    stream: UnixStream,
    buffers: LazyBuffers,
}

impl Transport for SocketTransport {
    fn buffers(&mut self) -> &mut dyn Buffers {
        &mut self.buffers
    }

    fn transmit_output(&mut self, amount: usize, timeout: NextTimeout) -> Result<(), ureq::Error> {
        // Set for each call, as the time left until the request's deadline shrinks.
        self.stream.set_write_timeout(timeout.not_zero().map(|after| *after))?;
        self.stream.write_all(&self.buffers.output()[..amount])?;
        Ok(())
    }

    fn await_input(&mut self, timeout: NextTimeout) -> Result<bool, ureq::Error> {
        self.stream.set_read_timeout(timeout.not_zero().map(|after| *after))?;
        let read = self.stream.read(self.buffers.input_append_buf())?;
        self.buffers.input_appended(read);
        Ok(read > 0)
    }

    fn is_open(&mut self) -> bool {
        // Each request opens a new connection.
        false
    }
}
