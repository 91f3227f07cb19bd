//! HTTP/2 connections that their server ends gracefully (GOAWAY: RFC 9113, section 6.8), frame by frame. A library's
//! server would not leave requests unanswered, as these tests need.

use super::*;
use std::net::Shutdown;

// Frame types and their flags.
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const ACK: u8 = 1;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// `:status: 200`, the eighth entry of the static table (RFC 7541, appendix A).
const GOOD: [u8; 1] = [0x88];

/// Requests of each test, all sent at once over one connection.
const REQUESTS: usize = 20;

/// How a server handles its connections.
#[derive(Clone, Copy)]
struct Behaviour {
    /// Number of streams that each connection takes; the server reports later ones as not processed.
    takes: usize,
    /// Number of streams taken but never answered.
    forgets: usize,
}

struct Ending {
    url: String,
    /// Number of connections that carried a stream.
    used: Arc<AtomicU32>,
}

/// Runs a server that waits on each connection for all requests not taken yet, announces which it takes, answers those
/// and closes.
fn server(habit: Behaviour) -> Ending {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("http://{}", listener.local_addr().expect("an address"));
    let (used, left) = (Arc::new(AtomicU32::new(0)), Arc::new(Mutex::new(REQUESTS)));
    let count = Arc::clone(&used);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let (count, left) = (Arc::clone(&count), Arc::clone(&left));
            // A connection that the other side closes is at its end.
            std::thread::spawn(move || drop(connection(stream, habit, &left, &count)));
        }
    });
    Ending { url, used }
}

fn connection(mut stream: TcpStream, habit: Behaviour, left: &Mutex<usize>, used: &AtomicU32) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut preface = [0; 24];
    stream.read_exact(&mut preface)?;
    write(&mut stream, SETTINGS, 0, 0, &[])?;
    let mut asked = Vec::new();
    let taken = loop {
        let (kind, flags, id, payload) = read(&mut stream)?;
        match kind {
            SETTINGS if flags & ACK == 0 => write(&mut stream, SETTINGS, ACK, 0, &[])?,
            PING if flags & ACK == 0 => write(&mut stream, PING, ACK, 0, &payload)?,
            DATA | HEADERS if flags & END_STREAM != 0 => asked.push(id),
            _ => {}
        }
        let mut left = left.lock().expect("a count");
        if !asked.is_empty() && asked.len() == *left {
            let taken = habit.takes.min(asked.len());
            *left -= taken;
            break taken;
        }
    };
    used.fetch_add(1, Ordering::SeqCst);
    asked.sort_unstable();
    let last = asked[..taken].last().copied().unwrap_or(0);
    // The last stream id, and NO_ERROR.
    write(&mut stream, GOAWAY, 0, 0, &[last.to_be_bytes(), [0; 4]].concat())?;
    for id in &asked[..taken - habit.forgets] {
        write(&mut stream, HEADERS, END_STREAM | END_HEADERS, *id, &GOOD)?;
    }
    stream.shutdown(Shutdown::Write)?;
    // Closing a socket with unread input discards data in flight to the other side.
    while read(&mut stream).is_ok() {}
    Ok(())
}

fn read(stream: &mut TcpStream) -> std::io::Result<(u8, u8, u32, Vec<u8>)> {
    let mut head = [0; 9];
    stream.read_exact(&mut head)?;
    let [a, b, c, kind, flags, id @ ..] = head;
    let mut payload = vec![0; u32::from_be_bytes([0, a, b, c]) as usize];
    stream.read_exact(&mut payload)?;
    Ok((kind, flags, u32::from_be_bytes(id) & 0x7fff_ffff, payload))
}

fn write(stream: &mut TcpStream, kind: u8, flags: u8, id: u32, payload: &[u8]) -> std::io::Result<()> {
    let length = u32::try_from(payload.len()).expect("a small frame").to_be_bytes();
    let head = [&length[1..], &[kind, flags][..], &id.to_be_bytes()[..]].concat();
    stream.write_all(&[head.as_slice(), payload].concat())
}

/// Queries a server with POST, so that no request may be repeated.
fn ask(server: &Ending) -> Ran {
    drive(&format!(
        "[target]\nurl = \"{}\"\nhttp2 = true\nstreams = {REQUESTS}\n[arrival]\nkind = \"burst\"\ncount = {REQUESTS}\n\
         [request]\npath = \"/x\"\nmethod = \"POST\"\nbody = \"once\"\n",
        server.url
    ))
}

#[test]
fn what_a_connection_took_before_its_end_is_answered_and_what_it_did_not_goes_to_the_next() {
    let server = server(Behaviour { takes: 8, forgets: 0 });
    let ran = ask(&server);
    assert_eq!(ran.outcomes(), BTreeMap::from([("sound", REQUESTS)]), "{:?}", ran.records);
    // 8, 8 and 4.
    assert_eq!(server.used.load(Ordering::SeqCst), 3);
}

#[test]
fn what_was_taken_and_never_answered_has_failed_and_is_not_asked_again() {
    let server = server(Behaviour { takes: 8, forgets: 1 });
    let ran = ask(&server);
    assert_eq!(ran.outcomes(), BTreeMap::from([("failed", 3), ("sound", REQUESTS - 3)]), "{:?}", ran.records);
    let failed = ran.records.iter().filter(|record| record.outcome == Came::Failed);
    assert!(failed.clone().all(|record| record.detail.as_deref() == Some("the connection was closed")));
    assert_eq!(server.used.load(Ordering::SeqCst), 3);
}

#[test]
fn a_server_that_takes_nothing_on_any_connection_refuses() {
    let server = server(Behaviour { takes: 0, forgets: 0 });
    let ran = ask(&server);
    assert_eq!(ran.outcomes(), BTreeMap::from([("refused", REQUESTS)]), "{:?}", ran.records);
    let why = "the server ended every connection before it took the request";
    assert!(ran.records.iter().all(|record| record.detail.as_deref() == Some(why)));
    assert_eq!(server.used.load(Ordering::SeqCst), 16);
}
