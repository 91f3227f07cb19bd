//! PostgreSQL's protocol, against a stand-in for a few statements.

use super::*;
use std::collections::HashMap;

fn message(kind: u8, body: &[u8]) -> Vec<u8> {
    let length = u32::try_from(body.len() + 4).expect("short").to_be_bytes();
    [&[kind][..], &length, body].concat()
}

fn error(code: &str, text: &str) -> Vec<u8> {
    message(b'E', format!("SERROR\0C{code}\0M{text}\0\0").as_bytes())
}

fn row(text: &str) -> Vec<u8> {
    let length = u32::try_from(text.len()).expect("short").to_be_bytes();
    message(b'D', &[&[0, 1][..], &length, text.as_bytes()].concat())
}

fn body(stream: &mut TcpStream) -> Option<Vec<u8>> {
    let mut length = [0; 4];
    stream.read_exact(&mut length).ok()?;
    let mut body = vec![0; u32::from_be_bytes(length) as usize - 4];
    stream.read_exact(&mut body).ok()?;
    Some(body)
}

fn texts(body: &[u8]) -> Vec<String> {
    body.split(|byte| *byte == 0).map(|text| String::from_utf8_lossy(text).into_owned()).collect()
}

/// Returns the parameters of a Bind whose formats are all the default.
fn parameters(bind: &[u8]) -> Vec<String> {
    let names = bind.iter().enumerate().filter(|(_, byte)| **byte == 0).nth(1).expect("two names").0 + 1;
    let (mut rest, mut out) = (&bind[names + 4..], Vec::new());
    for _ in 0..u16::from_be_bytes([bind[names + 2], bind[names + 3]]) {
        let (length, after) = rest.split_first_chunk().expect("a length");
        let (text, after) = after.split_at(u32::from_be_bytes(*length) as usize);
        out.push(String::from_utf8_lossy(text).into_owned());
        rest = after;
    }
    out
}

/// Serves one session, for a client with the password `secret`. Its prepared statements go into `log`.
fn session(mut stream: TcpStream, log: &Mutex<Vec<String>>) -> Option<()> {
    let start = texts(&body(&mut stream)?[4..]);
    assert_eq!(start[..4], ["user", "me", "database", "db"]);
    stream.write_all(&message(b'R', &3_u32.to_be_bytes())).ok()?;
    let mut kind = [0];
    stream.read_exact(&mut kind).ok()?;
    if texts(&body(&mut stream)?)[0] != "secret" {
        return stream.write_all(&error("28P01", "password authentication failed for user \"me\"")).ok();
    }
    let welcome = [message(b'R', &[0; 4]), message(b'S', b"a\0b\0"), message(b'Z', b"I")].concat();
    stream.write_all(&welcome).ok()?;
    let (mut statements, mut bound, mut failed) = (HashMap::new(), (String::new(), Vec::new()), false);
    loop {
        stream.read_exact(&mut kind).ok()?;
        let body = body(&mut stream)?;
        let reply = match kind[0] {
            b'S' => {
                failed = false;
                message(b'Z', b"I")
            }
            _ if failed => continue,
            b'P' => {
                let said = texts(&body);
                log.lock().expect("a log").push(said[1].clone());
                statements.insert(said[0].clone(), said[1].clone());
                message(b'1', b"")
            }
            b'B' => {
                bound = (statements.get(&texts(&body)[1]).expect("it was prepared").clone(), parameters(&body));
                message(b'2', b"")
            }
            _ if bound.0.contains("missing") => error("42P01", "relation \"missing\" does not exist"),
            _ if bound.0.contains("busy") => error("53300", "sorry, too many clients already"),
            _ => {
                let count: u32 = bound.1.first().map_or(0, |count| count.parse().expect("a number"));
                let rows: Vec<u8> = (0..count).flat_map(|n| row(&format!("row {n}"))).collect();
                // In pieces that end inside a message.
                rows.chunks(1000).try_for_each(|piece| stream.write_all(piece)).ok()?;
                message(b'C', b"SELECT\0")
            }
        };
        failed |= reply[0] == b'E';
        stream.write_all(&reply).ok()?;
    }
}

fn server() -> Server {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let url = format!("postgres://me:secret@{}/db", listener.local_addr().expect("an address"));
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let log = Arc::clone(&log);
            std::thread::spawn(move || session(stream, &log));
        }
    });
    Server { url, asked }
}

#[test]
fn a_postgres_is_asked_by_statements_whose_rows_are_results_and_errors_are_named() {
    let server = server();
    let request =
        |name: &str, body: &str| format!("[[request]]\nname = \"{name}\"\nbody = '{body}'\nresult = \"row\"\n");
    let text = format!(
        "[target]\nurl = \"{}\"\n[arrival]\nkind = \"closed\"\nusers = 3\n[limits]\nrequests = 120\n[generate.n]\nkind = \"choice\"\nvalues = [\"700\"]\n{}{}{}{}",
        server.url,
        request("rows", "select n from generate_series(1, {n})"),
        request("wrong", "select * from missing"),
        request("busy", "select busy()"),
        "[[request]]\nname = \"whole\"\nbody = \"select {n}\"\n[request.check]\nends_with = \"row 699\"\n",
    );
    let ran = drive(&text);
    assert_eq!(ran.records.len(), 120);
    let bytes = (0..700).map(|n| 6 + format!("row {n}").len() as u64).sum();
    for record in &ran.records {
        let wrong = "SQLSTATE 42P01: relation \"missing\" does not exist";
        let busy = "SQLSTATE 53300: sorry, too many clients already";
        let due = [
            (Came::Sound, 700, bytes, None),
            (Came::Failed, 0, 0, Some(wrong)),
            (Came::Refused, 0, 0, Some(busy)),
            (Came::Sound, 1, bytes, None),
        ];
        let came = (record.outcome, record.results, record.bytes, record.detail.as_deref());
        assert_eq!(came, due[usize::from(record.request)], "{record:?}");
        assert!(record.sent <= record.first_byte && record.first_byte <= record.done, "{record:?}");
        assert!(record.first_result <= record.last_result && record.last_result <= record.done, "{record:?}");
    }
    // Once per statement and connection; after an error the connection stays usable.
    let prepared = server.asked.lock().expect("a log").clone();
    assert!(prepared.len() <= 12, "{prepared:?}");
    assert!(prepared.contains(&"select n from generate_series(1, $1)".to_owned()), "{prepared:?}");
}

#[test]
fn who_is_not_let_in_and_what_is_no_statement_end_a_run_before_it_begins() {
    let server = server();
    let of = |url: &str, request: &str| {
        refusal(&format!("[target]\nurl = \"{url}\"\n[arrival]\nkind = \"burst\"\ncount = 1\n[request]\n{request}\n"))
    };
    let stranger = of(&server.url.replace("secret", "guess"), "body = \"select 1\"");
    assert!(matches!(&stranger, LabError::Target(text) if text.contains("28P01")), "{stranger}");
    let web = serve(|_, _, stream| ok(stream));
    let other = of(&web.url.replace("http://", "postgres://me:secret@"), "body = \"select 1\"");
    assert!(matches!(&other, LabError::Target(text) if text.contains("cannot be reached")), "{other}");
    for (request, words) in [
        ("path = \"/x\"", "the body is the statement"),
        ("body = \"select 1\"\nresult = \"feature\"", "expected \"body\" or \"line\""),
        ("body = \"select '{n}'\"\n[generate.n]\nkind = \"id\"\nto = 9", "lies within quotes"),
    ] {
        let error = of(&server.url, request);
        assert!(matches!(&error, LabError::Scenario(text) if text.contains(words)), "{error}");
    }
}
