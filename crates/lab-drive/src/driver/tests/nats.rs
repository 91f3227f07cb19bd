//! NATS, against a stand-in that answers by subject.

use super::*;
use std::io::{BufRead as _, BufReader};

/// Serves one connection, which is pinged before each reply.
fn session(stream: TcpStream) -> Option<()> {
    let mut out = stream.try_clone().ok()?;
    let mut lines = BufReader::new(stream);
    say(&mut out, "INFO {\"server_id\":\"x\",\"headers\":true,\"jetstream\":true}\r\n");
    loop {
        let mut line = String::new();
        if lines.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            ["PING"] => drop(say(&mut out, "PONG\r\n")),
            ["PUB", subject, reply, length] => {
                let mut payload = vec![0; length.parse::<usize>().expect("a length") + 2];
                lines.read_exact(&mut payload).ok()?;
                let payload = String::from_utf8_lossy(&payload[..payload.len() - 2]).into_owned();
                say(&mut out, "PING\r\n");
                let mut pong = String::new();
                if !subject.starts_with("deaf") {
                    answer(&mut out, subject, reply, &payload);
                }
                lines.read_line(&mut pong).ok()?;
                assert_eq!(pong, "PONG\r\n");
            }
            ["CONNECT", options] if options.contains("\"pass\":\"guess\"") => {
                say(&mut out, "-ERR 'Authorization Violation'\r\n");
                return None;
            }
            _ => assert!(line.starts_with("CONNECT ") || line.starts_with("SUB _INBOX."), "{line}"),
        }
    }
}

fn answer(out: &mut TcpStream, subject: &str, reply: &str, payload: &str) {
    let said = |text: &str| format!("MSG {reply} 1 {}\r\n{text}\r\n", text.len());
    let text = match subject {
        "nobody" => format!("HMSG {reply} 1 16 16\r\nNATS/1.0 503\r\n\r\n\r\n"),
        "orders.new" => said("{\"stream\":\"ORDERS\",\"seq\":7}"),
        "full" => said("{\"error\":{\"code\":503,\"description\":\"insufficient resources\"}}"),
        _ => said(payload).repeat(3),
    };
    say(out, &text);
}

fn server() -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("an address");
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            std::thread::spawn(move || session(stream));
        }
    });
    address
}

#[test]
fn a_nats_is_asked_over_subjects_and_its_replies_are_results() {
    let request = |method: &str, path: &str, rest: &str| {
        format!("[[request]]\nmethod = \"{method}\"\npath = \"{path}\"\nbody = '{{\"n\":{{n}}}}'\n{rest}\n")
    };
    let text = format!(
        "[target]\nurl = \"nats://{}\"\n[[population]]\nname = \"a\"\npatience_s = 2\narrival = {{ kind = \"burst\", count = 60 }}\n[generate.n]\nkind = \"choice\"\nvalues = [\"7\"]\n{}{}{}{}{}{}",
        server(),
        request("GET", "/echo.{n}", "check.fields = [\"/n=number\"]"),
        request("GET", "/all", "result = \"event\""),
        request("GET", "/nobody", ""),
        request("PUT", "/orders.new", ""),
        request("PUT", "/full", ""),
        request("PUT", "/echo", ""),
    );
    let ran = drive(&text);
    assert_eq!(ran.records.len(), 60);
    for record in &ran.records {
        let due = [
            (Came::Sound, 1, None),
            (Came::Sound, 3, None),
            (Came::Failed, 0, Some("no responder listens to this subject")),
            (Came::Sound, 1, None),
            (Came::Refused, 0, Some("JetStream has no room")),
            (Came::Failed, 0, Some("the reply is no acknowledgement of JetStream")),
        ];
        let came = (record.outcome, record.results, record.detail.as_deref());
        assert_eq!(came, due[usize::from(record.request)], "{record:?}");
    }
}

#[test]
fn a_subject_without_an_answer_times_out_and_a_stranger_is_not_let_in() {
    let address = server();
    let text = |who: &str, request: &str| {
        format!(
            "[target]\nurl = \"nats://{who}{address}\"\ntimeout_s = 0.2\n[arrival]\nkind = \"burst\"\ncount = 2\n[request]\n{request}\n"
        )
    };
    assert_eq!(drive(&text("", "path = \"/deaf\"")).outcomes(), BTreeMap::from([("timed out", 2)]));
    let stranger = refusal(&text("me:guess@", "path = \"/echo\""));
    assert!(matches!(&stranger, LabError::Target(text) if text.contains("Authorization Violation")), "{stranger}");
    for (request, words) in [
        ("path = \"/\"", "the path is the subject"),
        ("path = \"/a\"\nmethod = \"POST\"", "expected GET (a request) or PUT"),
        ("path = \"/a\"\nresult = \"line\"", "expected \"body\""),
        ("path = \"/a\"\nheaders = { x = \"y\" }", "headers are for HTTP"),
    ] {
        let error = refusal(&text("", request));
        assert!(matches!(&error, LabError::Scenario(text) if text.contains(words)), "{error}");
    }
}
