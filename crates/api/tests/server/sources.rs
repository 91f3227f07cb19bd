//! Sources on the loopback interface, sound and faulty.

use meridian_api::ServerConfig;
use meridian_federation::{Settings, SourceDeclaration, provider::shipped};
use std::collections::{HashMap, VecDeque};
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// A server of sources; the first segment of a path selects the behaviour.
pub struct Sources {
    pub address: SocketAddr,
    /// The requests received: path and body.
    pub calls: Arc<Mutex<Vec<String>>>,
    /// Responses of the source `/switch`.
    pub switch: Arc<Mutex<Vec<u8>>>,
    responses: Arc<Mutex<Responses>>,
}

/// The responses set for sources, by name.
type Responses = HashMap<String, VecDeque<Vec<u8>>>;

impl Sources {
    pub fn start() -> Sources {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (calls, switch) = (Arc::new(Mutex::new(Vec::new())), Arc::new(Mutex::new(json(GOOD))));
        let responses = Arc::new(Mutex::new(Responses::new()));
        let shared = (calls.clone(), switch.clone(), responses.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (calls, switch, responses) = shared.clone();
                // A client that disconnects early must not stop the server.
                std::thread::spawn(move || drop(answer(stream, &calls, &switch, &responses)));
            }
        });
        Sources { address, calls, switch, responses }
    }

    /// Sets the responses of the source with this name, one per call; the last one repeats.
    pub fn tell(&self, name: &str, answers: &[Vec<u8>]) {
        self.responses.lock().unwrap().insert(name.to_owned(), answers.iter().cloned().collect());
    }

    /// Returns the requests that a source received.
    pub fn calls_of(&self, name: &str) -> Vec<String> {
        let calls = self.calls.lock().unwrap();
        calls.iter().filter(|call| call[1..].split(['/', '?', ' ']).next() == Some(name)).cloned().collect()
    }

    /// Builds a provider from a declaration over the source of its name: `SOURCE` stands for its address, and
    /// `[limits]` come last.
    pub fn declared(&self, name: &str, text: &str) -> Arc<SourceDeclaration> {
        let text = text.replace("SOURCE", &format!("http://{}/{name}", self.address));
        let text = format!("name = \"{name}\"\n{text}\nallow_private = true\n");
        Arc::new(SourceDeclaration::parse(&text, &shipped::text).unwrap())
    }

    /// Builds a provider over one of the sources.
    pub fn provider(&self, name: &str, more: &str) -> Arc<SourceDeclaration> {
        let text = format!(
            "name = \"{name}\"\n[takes]\nkeywords = \"all\"\n[request]\nurl = \"http://{}/{name}\"\n[request.query]\nq = \"{{words}}\"\n\
             [answer]\nformat = \"json\"\nitems = \"items\"\n[answer.map]\nid = \"id\"\ntext = \"text\"\nlon = \"lon\"\nlat = \"lat\"\n\
             [limits]\nallow_private = true\nretries = 0\n{more}",
            self.address
        );
        Arc::new(SourceDeclaration::parse(&text, &|_| None).unwrap())
    }

    /// Builds a shipped provider that calls this server.
    pub fn shipped(&self, name: &str) -> Arc<SourceDeclaration> {
        let set = match name {
            "rss" => format!("feed = \"http://{}/{name}\"", self.address),
            "ogc-features" => format!("base = \"http://{}/{name}\"\ncollection = \"c\"", self.address),
            _ => format!("base = \"http://{}/{name}\"", self.address),
        };
        let text = format!("name = \"{name}\"\nextends = \"{name}\"\n[set]\n{set}\n[limits]\nallow_private = true\n");
        Arc::new(SourceDeclaration::parse(&text, &shipped::text).unwrap())
    }
}

/// Returns the configuration of a server that calls these sources.
pub fn config(providers: Vec<Arc<SourceDeclaration>>) -> ServerConfig {
    let patient = Duration::from_secs(60);
    ServerConfig {
        search: Settings { providers, gone: patient, wait: patient, ..Settings::default() },
        ..ServerConfig::default()
    }
}

const GOOD: &str = r#"{"items":[{"id":"1","text":"flood at the bridge","lon":4.8,"lat":45.7},{"id":"2","text":"a fire","lon":4.8,"lat":45.7}]}"#;

/// Builds a JSON response.
pub fn json(body: &str) -> Vec<u8> {
    typed("200 OK", "application/json", body.as_bytes())
}

/// Builds a response.
pub fn typed(status: &str, kind: &str, body: &[u8]) -> Vec<u8> {
    let mut out = format!(
        "HTTP/1.1 {status}\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

fn answer(
    mut stream: TcpStream,
    calls: &Mutex<Vec<String>>,
    switch: &Mutex<Vec<u8>>,
    responses: &Mutex<Responses>,
) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut head, mut length) = (String::new(), 0);
    reader.read_line(&mut head)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some(value) = line.to_ascii_lowercase().strip_prefix("content-length:") {
            length = value.trim().parse().unwrap();
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    let path = head.split(' ').nth(1).unwrap().to_owned();
    calls.lock().unwrap().push(format!("{path} {}", String::from_utf8_lossy(&body)));
    let source = path[1..].split(['/', '?']).next().unwrap().to_owned();
    let next = |answers: &mut VecDeque<Vec<u8>>| {
        if answers.len() > 1 { answers.pop_front() } else { answers.front().cloned() }
    };
    let bytes = responses.lock().unwrap().get_mut(&source).and_then(next);
    if let Some(bytes) = bytes {
        return stream.write_all(&bytes);
    }
    let bytes = match source.as_str() {
        "slow" => {
            std::thread::sleep(Duration::from_millis(300));
            json(r#"{"items":[{"id":"s","text":"flood, seen late"}]}"#)
        }
        "hang" => {
            std::thread::sleep(Duration::from_secs(30));
            Vec::new()
        }
        "half" => b"HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"items\":[".to_vec(),
        "garbage" => b"\x00\x01 this is not HTTP\r\n\r\n".to_vec(),
        "html" => typed("200 OK", "text/html", b"<!doctype html><html><body>Sign in</body></html>"),
        "empty" => json(r#"{"items":[]}"#),
        "schema" => json(r#"{"results":[{"key":1}]}"#),
        "broken" => typed("500 Internal Server Error", "text/plain", b"oh"),
        "busy" => typed("429 Too Many Requests", "text/plain", b"later"),
        "latin" => typed(
            "200 OK",
            "application/json; charset=iso-8859-1",
            b"{\"items\":[{\"id\":\"l\",\"text\":\"flood at the caf\xe9\"}]}",
        ),
        "klingon" => typed("200 OK", "application/json; charset=klingon", b"{}"),
        "gigabyte" => {
            stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\nconnection: close\r\n\r\n")?;
            (0..1024).try_for_each(|_| stream.write_all(&[b' '; 1 << 20]))?;
            Vec::new()
        }
        "pages" => {
            let page: usize = path.split("page=").nth(1).unwrap().split('&').next().unwrap().parse().unwrap();
            let items: Vec<String> = (0..40)
                .map(|n| format!(r#"{{"id":"{page}-{n}","text":"flood {page} {n} {}"}}"#, "x".repeat(400)))
                .collect();
            json(&format!(r#"{{"items":[{}]}}"#, items.join(",")))
        }
        "switch" => switch.lock().unwrap().clone(),
        name => fixture(name),
    };
    stream.write_all(&bytes)
}

/// Returns the recorded response of a shipped provider, or else that of a good source.
fn fixture(name: &str) -> Vec<u8> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../federation/fixtures");
    match (std::fs::read(format!("{folder}/{name}.json")), std::fs::read(format!("{folder}/{name}.xml"))) {
        (Ok(body), _) => typed("200 OK", "application/json", &body),
        (_, Ok(body)) => typed("200 OK", "application/rss+xml", &body),
        _ => json(GOOD),
    }
}
