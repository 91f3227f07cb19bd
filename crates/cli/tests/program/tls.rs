//! The server and the program over https.

use crate::common::{PATIENCE, Run, Server, command, meridian, send};
use rcgen::{CertificateParams, KeyPair};
use std::fs;
use std::path::Path;
use std::time::Instant;

/// Writes a self-signed certificate for this machine, and its key.
fn write_pair(folder: &Path, name: &str) -> (String, String) {
    let params = CertificateParams::new(vec!["localhost".to_owned(), "127.0.0.1".to_owned()]).unwrap();
    let key = KeyPair::generate().unwrap();
    let path = |end: &str| folder.join(format!("{name}.{end}")).display().to_string();
    fs::write(path("pem"), params.self_signed(&key).unwrap().pem()).unwrap();
    fs::write(path("key"), key.serialize_pem()).unwrap();
    (path("pem"), path("key"))
}

fn serve(certificate: &str, key: &str) -> Server {
    Server::start_with(&["--ephemeral", "--tls-cert", certificate, "--tls-key", key])
}

/// Queries the collection `c`, trusting the authorities in a file.
fn asks(server: &Server, ca: &str) -> Run {
    meridian(&["aggregate", "c", "--url", &server.url, "--ca-file", ca])
}

#[track_caller]
fn wait_for_log(server: &Server, words: &str) {
    let begun = Instant::now();
    while !server.log().contains(words) {
        assert!(begun.elapsed() < PATIENCE, "{words:?} is not in:\n{}", server.log());
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
}

#[test]
fn commands_speak_https_and_name_a_certificate_that_they_do_not_trust() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = write_pair(folder.path(), "one");
    let server = serve(&certificate, &key);
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
    let events = folder.path().join("events.csv");
    // Larger than the size from which bodies are announced before they are sent.
    let rows: String =
        (0..40_000).map(|n| format!("{n},{},{},a note that takes some room\n", n % 90, n % 45)).collect();
    fs::write(&events, format!("n,lon,lat,note\n{rows}")).unwrap();
    let events = events.display().to_string();
    meridian(&["load", "c", &events, "--url", &server.url, "--ca-file", &certificate]).ended(0);
    let by_name = server.url.replace("127.0.0.1", "localhost");
    let counted = command(&["aggregate", "c", "--url", &by_name]).env("MERIDIAN_CA", &certificate).output().unwrap();
    assert!(Run::from(counted).ended(0).out.contains("40000"));

    meridian(&["aggregate", "c", "--url", &server.url]).ended(3).says(&["--ca-file", "MERIDIAN_CA", &server.url]);
    let (other, _) = write_pair(folder.path(), "other");
    asks(&server, &other).ended(3).says(&["no trusted authority"]);
    asks(&server, "/nowhere.pem").ended(2).says(&["--ca-file", "/nowhere.pem"]);
    let plain = server.url.replace("https://", "http://");
    meridian(&["aggregate", "c", "--url", &plain]).ended(3).says(&["400", "use https"]);
}

#[test]
fn a_new_pair_is_used_and_a_broken_one_is_not() {
    let folder = tempfile::tempdir().unwrap();
    let (certificate, key) = write_pair(folder.path(), "used");
    let old = folder.path().join("old.pem").display().to_string();
    fs::copy(&certificate, &old).unwrap();
    let server = serve(&certificate, &key);
    meridian(&["create", "c", "--schema", "n:Integer", "--url", &server.url, "--ca-file", &old]).ended(0);

    // The certificate has arrived, but not its key.
    let (new, new_key) = write_pair(folder.path(), "new");
    fs::copy(&new, &certificate).unwrap();
    send(server.pid(), "HUP");
    wait_for_log(&server, "does not belong");
    assert!(server.log().contains(&key), "{}", server.log());
    asks(&server, &old).ended(0);
    // It is noticed without a signal.
    fs::copy(&new_key, &key).unwrap();
    wait_for_log(&server, "a new certificate is in use");
    asks(&server, &new).ended(0);
    asks(&server, &old).ended(3);
}

#[test]
fn a_pair_that_cannot_be_used_ends_the_start_with_its_file_and_the_reason() {
    let folder = tempfile::tempdir().unwrap();
    let ((one, one_key), (_, other_key)) = (write_pair(folder.path(), "one"), write_pair(folder.path(), "other"));
    // Nobody writes to it: reading it would take forever.
    let pipe = folder.path().join("pipe").display().to_string();
    assert!(std::process::Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let start = |more: &[&str]| meridian(&[&["serve", "--listen", "127.0.0.1:0", "--ephemeral"], more].concat());
    for (args, words) in [
        (&["--tls-cert", one.as_str()][..], &["tls.key", "--tls-key"][..]),
        (&["--tls-key", &one_key], &["tls.certificate", "--tls-cert"]),
        (&["--tls-cert", "/nowhere.pem", "--tls-key", &one_key], &["(--tls-cert): /nowhere.pem: cannot be read"]),
        (&["--tls-cert", &one, "--tls-key", "/nowhere.key"], &["(--tls-key): /nowhere.key: cannot be read"]),
        (&["--tls-cert", &pipe, "--tls-key", &one_key], &["tls.certificate (--tls-cert)", &pipe, "not a pipe"]),
        (&["--tls-cert", &one, "--tls-key", &pipe], &["tls.key (--tls-key)", &pipe, "not a pipe"]),
        (&["--tls-cert", &one, "--tls-key", &other_key], &["--tls-key", &other_key, "does not belong"]),
        (&["--tls-cert", &one_key, "--tls-key", &one_key], &["--tls-cert", &one_key, "no certificate"]),
        (&["--tls-cert", &one, "--tls-key", &one], &["--tls-key", &one, "no private key"]),
    ] {
        start(args).ended(2).says(words);
    }
}
