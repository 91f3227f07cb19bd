//! A configurable outside source on loopback.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// A source that responds as told, and records requests.
pub struct Source {
    pub address: SocketAddr,
    calls: Arc<Mutex<Vec<String>>>,
}

impl Source {
    /// Starts a source. `answer` gets a complete request, its head in lower case, and returns the complete response.
    pub fn start(answer: impl Fn(&str) -> Vec<u8> + Send + Sync + 'static) -> Source {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let (calls, answer) = (Arc::new(Mutex::new(Vec::new())), Arc::new(answer));
        let noted = calls.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (noted, answer) = (noted.clone(), answer.clone());
                // A client that leaves midway must not end the source.
                std::thread::spawn(move || drop(serve(stream, &noted, &*answer)));
            }
        });
        Source { address, calls }
    }

    /// Returns the requests so far, each with its head (in lower case except for the first line) and its body.
    pub fn calls(&self) -> Vec<String> {
        self.calls.lock().unwrap().clone()
    }
}

fn serve(mut stream: TcpStream, noted: &Mutex<Vec<String>>, answer: &dyn Fn(&str) -> Vec<u8>) -> std::io::Result<()> {
    let mut reader = BufReader::new(stream.try_clone()?);
    let (mut request, mut length) = (String::new(), 0);
    reader.read_line(&mut request)?;
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line)? <= 2 {
            break;
        }
        if let Some((name, value)) = line.split_once(':') {
            let name = name.to_ascii_lowercase();
            if name == "content-length" {
                length = value.trim().parse().unwrap();
            }
            request.push_str(&format!("{name}: {}\n", value.trim()));
        }
    }
    let mut body = vec![0; length];
    reader.read_exact(&mut body)?;
    request.push_str(&String::from_utf8_lossy(&body));
    noted.lock().unwrap().push(request.clone());
    stream.write_all(&answer(&request))
}

/// Returns a response of this content type.
pub fn typed(kind: &str, body: &str) -> Vec<u8> {
    format!(
        "HTTP/1.1 200 OK\r\ncontent-type: {kind}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
    .into_bytes()
}

/// Returns a JSON response.
pub fn json(body: &str) -> Vec<u8> {
    typed("application/json", body)
}
