//! The live report, on loopback: a page that refreshes itself every two seconds until the run has ended.
//!
//! It is served from its own thread, one reader at a time, and drawn on request. Drawing takes processor time of the
//! lab's machine, so avoid it in a run at a server's limit.

use super::Progress;
use meridian_lab_results::error::{LabError, Result};
use meridian_lab_results::folder::Run;
use meridian_lab_results::picture::escaped;
use meridian_lab_results::record::Record;
use meridian_lab_results::report::page::HEADER;
use meridian_lab_results::report::{LivePage, style};
use parking_lot::Mutex;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

/// The figures so far.
#[derive(Debug, Default)]
pub struct Live {
    /// Held only briefly, because the sending thread writes it.
    now: Mutex<(Run, Progress)>,
    /// Held while pictures are drawn. The thread that writes to disk may wait for it, since a queue precedes that
    /// thread.
    report: Mutex<LivePage>,
    ended: AtomicBool,
}

/// The page's server; when it is dropped the page shows that the run has ended.
#[derive(Debug)]
pub struct Server {
    live: Arc<Live>,
    address: SocketAddr,
    thread: Option<std::thread::JoinHandle<()>>,
}

/// Timeout of a reader for sending its request and taking the response.
const PATIENCE: Duration = Duration::from_secs(2);

/// Max bytes of a request.
const REQUEST: u64 = 16 << 10;

const SCRIPT: &str = "const report=document.getElementById('report');async function again(){try{const answer=await \
fetch('/report');if(!answer.ok)throw 0;report.innerHTML=await answer.text();setTimeout(again,2000)}catch(e){document.\
getElementById('state').textContent='The run has ended: its results folder has the whole.'}}again();";

impl Live {
    /// Adds records.
    pub(super) fn add(&self, records: &[Record]) {
        self.report.lock().add(records);
    }

    /// Sets the progress of the run.
    pub(super) fn look(&self, run: &Run, progress: &Progress) {
        *self.now.lock() = (run.clone(), progress.clone());
    }

    fn report(&self) -> String {
        // Cloned, not held: drawing the page takes long, and the driver waits for this lock.
        let (run, progress) = self.now.lock().clone();
        let end = progress.end_s.map_or_else(String::new, |end| format!(" of {end:.0}"));
        format!(
            "<p>Trial {} of {} · {:.0}{end} s · {} requests due, {} ended, {} in flight, {} not sound</p>{}",
            progress.trial.0 + 1,
            progress.trial.1,
            progress.elapsed_s,
            progress.arrivals,
            progress.done,
            progress.in_flight,
            progress.not_sound,
            self.report.lock().html(&run)
        )
    }
}

impl Server {
    /// Serves a page about the run `name` on 127.0.0.1, at a port chosen by the system.
    pub fn start(name: &str) -> Result<Server> {
        let failed = |e: std::io::Error| LabError::results(format!("--live: cannot serve on loopback: {e}"));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let live = Arc::new(Live::default());
        let (shown, page) = (Arc::clone(&live), page(name));
        let thread = std::thread::Builder::new().name("lab-live".to_owned()).spawn(move || {
            for stream in listener.incoming().flatten() {
                if shown.ended.load(Ordering::Acquire) {
                    return;
                }
                // A reader that disconnects early does not end the server.
                let _ = answer(stream, address, &page, &shown);
            }
        });
        Ok(Server { live, address, thread: Some(thread.map_err(failed)?) })
    }

    /// Returns the address of the page.
    pub fn url(&self) -> String {
        format!("http://{}/", self.address)
    }

    /// Returns the figures to which a run reports ([`super::Options::live`]).
    pub fn live(&self) -> Arc<Live> {
        Arc::clone(&self.live)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.live.ended.store(true, Ordering::Release);
        // Wakes the thread; if that fails, the thread ends with the process.
        if TcpStream::connect_timeout(&self.address, PATIENCE).is_ok()
            && let Some(thread) = self.thread.take()
        {
            let _ = thread.join();
        }
    }
}

fn page(name: &str) -> String {
    let (title, style) = (escaped(name), style());
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <meta name=\"color-scheme\" content=\"light dark\"><title>{title}: live</title><style>{style}</style>{HEADER}<main><h1>{title}</h1>\
         <p id=\"state\">While it runs: what has come so far.</p><div id=\"report\"></div></main><script>{SCRIPT}</script></html>"
    )
}

fn answer(mut stream: TcpStream, address: SocketAddr, page: &str, live: &Live) -> std::io::Result<()> {
    // One thread serves all readers, so one that stalls must not keep the others.
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let mut asked = Vec::new();
    let mut piece = [0; 2048];
    while !asked.windows(4).any(|four| four == b"\r\n\r\n") {
        match stream.read(&mut piece)? {
            0 => return Ok(()),
            _ if asked.len() as u64 > REQUEST => return Ok(()),
            n => asked.extend_from_slice(&piece[..n]),
        }
    }
    let asked = String::from_utf8_lossy(&asked).to_ascii_lowercase();
    // A foreign name that points here (DNS rebinding) is refused.
    let ours = [format!("\r\nhost: {address}\r\n"), format!("\r\nhost: localhost:{}\r\n", address.port())];
    let (status, body) = match asked.split(' ').nth(1) {
        _ if !ours.iter().any(|host| asked.contains(host)) => ("403 Forbidden", "not from here".to_owned()),
        Some("/") => ("200 OK", page.to_owned()),
        Some("/report") => ("200 OK", live.report()),
        _ => ("404 Not Found", "there is / and /report".to_owned()),
    };
    let head = format!(
        "HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {}\r\ncache-control: no-store\r\n\
         content-security-policy: default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; connect-src \
         'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'\r\nx-content-type-options: nosniff\r\nconnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes())?;
    stream.write_all(body.as_bytes())
}
