//! Files that options and settings name: a pipe, a folder or a device in place of one is refused, with its option.

use crate::common::{Run, meridian, meridian_with_input};
use std::process::Command;

/// A plan of costs.
const COST: &str = "\
scenario = 'SCENARIO'
size = 'workers'
sizes = [8, 60]
[prices]
currency = 'USD'
machine_hour = 0.5
[[promise]]
name = 'soon'
first_s = 5.0
share = 0.9
[[pattern]]
name = 'steady'
[[pattern.part]]
hours = 24
";

/// The target of a scenario.
const TARGET: &str = "[target]\nurl = 'http://127.0.0.1:9'\n";

#[test]
fn what_an_option_names_in_place_of_a_file_is_refused_and_never_waited_on() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    // Nobody writes to it: an open would wait forever.
    let pipe = at("pipe.toml");
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    let data = at("data");
    std::fs::create_dir(&data).unwrap();
    let scenario = at("scenario.toml");
    for no_file in [pipe.as_str(), data.as_str(), "/dev/zero"] {
        let refused = |option: &str, args: &[&str]| {
            meridian(args).ended(2).says(&[option, no_file, "expected a file", "not a pipe"]);
        };
        refused("--config", &["serve", "--ephemeral", "--config", no_file]);
        refused("--ca-file", &["list", "--url", "https://127.0.0.1:9", "--ca-file", no_file]);
        refused(no_file, &["provider", "test", no_file]);
        refused("--schema", &["create", "spots", "--data", &data, "--schema", no_file]);
        if cfg!(feature = "lab") {
            refused(no_file, &["lab", "simulate", no_file]);
            refused(no_file, &["lab", "run", no_file]);
            refused(no_file, &["lab", "mock", no_file]);
            let plain = format!("{TARGET}[arrival]\nkind = 'constant'\nrate = 1\n[request]\npath = '/'\n");
            std::fs::write(&scenario, &plain).unwrap();
            refused("--ca", &["lab", "run", &scenario, "--ca", no_file]);
            for (key, text) in [
                ("arrival.file", format!("{TARGET}[arrival]\nkind = 'replay'\nfile = '{no_file}'\n")),
                ("generate.a.file", format!("{plain}[generate.a]\nkind = 'polygons'\nfile = '{no_file}'\n")),
                ("check.truth", format!("{plain}check = {{ truth = '{no_file}' }}\n")),
                ("check.points", format!("{plain}check = {{ points = '{no_file}' }}\n")),
                ("target.ca", plain.replace("[arrival]", &format!("ca = '{no_file}'\n[arrival]"))),
            ] {
                std::fs::write(&scenario, text).unwrap();
                refused(key, &["lab", "run", &scenario]);
            }
            let delay = format!("delay = {{ kind = 'empirical', file = '{no_file}' }}");
            std::fs::write(&scenario, format!("[[source]]\nname = 'a'\n{delay}\n")).unwrap();
            refused("delay.file", &["lab", "mock", &scenario]);
        }
    }
    // Refused before the input is read, which is empty.
    let rejects = ["load", "spots", "-", "--data", &data, "--invalid", "skip", "--rejects", &pipe];
    meridian(&rejects).ended(2).says(&["--rejects", &pipe, "nobody reads this pipe"]);
    if cfg!(feature = "lab") {
        let plan = at("plan");
        std::fs::create_dir(&plan).unwrap();
        assert!(Command::new("mkfifo").arg(format!("{plan}/cost.toml")).status().unwrap().success());
        meridian(&["lab", "cost", &plan]).ended(2).says(&["cost.toml", "expected a file", "not a pipe"]);
        // The scenario that a plan names, too.
        std::fs::remove_file(format!("{plan}/cost.toml")).unwrap();
        for scenario in [pipe.as_str(), data.as_str(), "/dev/zero"] {
            let text = COST.replace("SCENARIO", scenario);
            std::fs::write(format!("{plan}/cost.toml"), text).unwrap();
            meridian(&["lab", "cost", &plan]).ended(2).says(&["scenario", scenario, "expected a file", "not a pipe"]);
        }
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

#[test]
fn what_is_read_once_may_be_a_pipe_and_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name).display().to_string();
    let (data, backup) = (at("data"), at("backup"));
    meridian(&["create", "spots", "--schema", "name:String", "--data", &data]).ended(0);
    let key = |file: &str| ["backup", &backup, "--data", &data, "--key", file].map(str::to_owned);
    let password = |file: &str| {
        ["user", "create", "anna", "--role", "reader", "--data", &data, "--password-file", file].map(str::to_owned)
    };
    let answer = |file: &str| ["provider", "test", "wikipedia", "--answer", file].map(str::to_owned);
    // 32 bytes in hexadecimal.
    meridian_with_input(&key("/dev/stdin"), "ab".repeat(32).as_bytes()).ended(0);
    meridian_with_input(&password("/dev/stdin"), b"a long password\n").ended(0);
    // It is read, and is no answer of this source.
    meridian_with_input(&answer("/dev/stdin"), b"no JSON").ended(1).says(&["the answer cannot be read"]);
    let refused = |option: &str, args: &[String], words: &str| {
        meridian(args).ended(2).says(&[option, words]);
    };
    refused("--key", &key("/dev/zero"), "expected at most 16 MiB");
    refused("--password-file", &password("/dev/zero"), "a first line of less than 64 KiB");
    refused("--answer", &answer("/dev/zero"), "expected at most 16 MiB");
    let no_folder = "expected a file or a pipe, and not a folder";
    refused("--key", &key("/"), no_folder);
    refused("--password-file", &password("/"), no_folder);
    refused("--answer", &answer("/"), no_folder);
}
