//! Files that options and settings name: a pipe, a folder or a device in place of one is refused, with its option.

use crate::common::{Run, meridian};
use std::process::Command;

#[test]
fn what_an_option_names_in_place_of_a_file_is_refused_and_never_waited_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    // Nobody writes to it: an open would wait forever.
    let pipe = at("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let data = at("data");
    std::fs::create_dir(&data).unwrap();
    for no_file in [pipe.as_str(), data.as_str(), "/dev/zero"] {
        let refused = |option: &str, args: &[&str]| {
            meridian(args).ended(2).says(&[option, no_file, "expected a file", "not a pipe"]);
        };
        refused("--config", &["serve", "--ephemeral", "--config", no_file]);
        refused("--key", &["backup", &at("backup"), "--data", &data, "--key", no_file]);
        refused("--ca-file", &["list", "--url", "https://127.0.0.1:9", "--ca-file", no_file]);
        refused("--password-file", &["user", "passwd", "anna", "--data", &data, "--password-file", no_file]);
        refused(no_file, &["provider", "test", no_file]);
        refused("--answer", &["provider", "test", "wikipedia", "--answer", no_file]);
    }
    // Settings that name files, in a file of settings.
    let config = at("settings");
    let start = |text: &str| -> Run {
        std::fs::write(&config, text).unwrap();
        meridian(&["serve", "--ephemeral", "--listen", "127.0.0.1:0", "--config", &config]).ended(2)
    };
    // The folder of providers has the pipe in it.
    let providers = folder.path().display().to_string();
    start(&format!("[search]\nproviders = {providers:?}\n")).says(&["search", &pipe, "not a pipe"]);
    let tls = format!("[tls]\ncertificate = {pipe:?}\nkey = {pipe:?}\n");
    start(&tls).says(&[&pipe, "not a pipe"]);
    // Of both kinds of keys, at each start.
    for keys in ["keys", "secret"] {
        let issuer = format!(
            "[[access.issuers]]\nname = \"us\"\nissuer = \"us\"\naudience = \"here\"\n{keys} = {pipe:?}\n\
             [[access.issuers.rules]]\nrole = \"reader\"\ntenant = \"default\"\n"
        );
        start(&issuer).says(&["access.issuers", &pipe, "not a pipe"]);
    }
}
