//! Runs the examples of the help texts unchanged, on the project's data.

use crate::common::{MERIDIAN, Run, Server, command, meridian, root};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};

/// Commands whose examples need files of the user, outside sources or other processes; `guide.rs`, `provider.rs`,
/// `search.rs` and `cluster_up.rs` run those.
const OTHERS: [&str; 4] = ["cluster", "lab", "provider", "search"];

/// The id of a token in the examples.
const SOME_TOKEN: &str = "8f1d0c2a9be34f55";

/// Returns the examples of a help text: indented lines after its heading, without the remarks beside them.
fn examples(help: &str) -> Vec<String> {
    let body = help.lines().skip_while(|line| !matches!(line.trim(), "Examples:" | "First steps:")).skip(1);
    let lines = body.take_while(|line| line.starts_with("  "));
    lines.map(|line| line.trim().split("  ").next().unwrap().to_owned()).collect()
}

/// Returns the subcommands listed by the program.
fn commands() -> Vec<String> {
    let help = meridian(&["--help"]).ended(0).out;
    let listed = help.lines().skip_while(|line| line.trim() != "Commands:").skip(1);
    let names = listed.take_while(|line| line.starts_with("  ")).filter(|line| !line.starts_with("   "));
    names.map(|line| line.split_whitespace().next().unwrap().to_owned()).filter(|name| name != "help").collect()
}

fn typed(line: &str, folder: &Path) -> Run {
    let program = Path::new(MERIDIAN).parent().unwrap();
    let path = format!("{}:{}", program.display(), std::env::var("PATH").unwrap_or_default());
    let mut shell = Command::new("sh");
    shell.args(["-c", line]).current_dir(folder).env("PATH", path).env_remove("MERIDIAN_URL").stdin(Stdio::null());
    shell.output().unwrap().into()
}

#[test]
fn every_example_of_the_help_runs_on_the_projects_data() {
    let folder = tempfile::tempdir().unwrap();
    let here = folder.path();
    std::os::unix::fs::symlink(root().join("data"), here.join("data")).unwrap();
    let mut all: Vec<(String, String)> = Vec::new();
    for command in commands().into_iter().filter(|name| !OTHERS.contains(&name.as_str())) {
        let found = examples(&meridian(&[command.as_str(), "--help"]).ended(0).out);
        assert!(!found.is_empty(), "{command} has no examples");
        all.extend(found.into_iter().map(|line| (command.clone(), line)));
    }
    let first = examples(&meridian(&["--help"]).ended(0).out);
    assert!(first.len() >= 3, "{first:?}");
    all.extend(first.into_iter().map(|line| ("first steps".to_owned(), line)));
    // Collections are created before they are queried, and a backup is made before it is restored.
    let order = |command: &str| match command {
        "load" => 0,
        "restore" => 2,
        // After the first token, the other commands would need one.
        "token" | "tenant" | "user" => 3,
        _ => 1,
    };
    all.sort_by_key(|(command, _)| order(command));
    std::fs::write(here.join("password.txt"), "correct horse battery\n").unwrap();
    let backups = here.join("backups");
    std::fs::create_dir(&backups).unwrap();
    // A cluster's bucket, as created by its first owner.
    let bucket = format!("file://{}", here.join("bucket").display());
    let role = ["serve", "--role", "owner", "--log", "bucket", "--flight", "127.0.0.1:0", "--bucket", &bucket];
    let mut owner = command(&role).arg("--data").arg(here.join("owner")).stdout(Stdio::piped()).spawn().unwrap();
    let mut lines = BufReader::new(owner.stdout.take().unwrap()).lines().map_while(Result::ok);
    assert!(lines.any(|line| line.starts_with("owns")), "it never owns the bucket");
    owner.kill().unwrap();
    owner.wait().unwrap();
    let mut ran = 0;
    // `cluster_s3.rs` has a store.
    for (command, line) in all.iter().filter(|(_, line)| !line.contains("s3://")) {
        // A third-party program may be missing; its input must be right.
        let line = match line.strip_prefix("duckdb") {
            Some(rest) => format!("echo {rest}"),
            None => line.clone(),
        };
        let mut line =
            line.replace("/backups/", &format!("{}/", backups.display())).replace("/srv/events", "./meridian-data");
        line = line.replace("file:///srv/bucket", &bucket);
        if line.starts_with("meridian serve") && !line.contains("--show-config") {
            line += " --show-config";
        }
        if line.contains(SOME_TOKEN) {
            let listed = typed("meridian token list", here).ended(0).out;
            line = line.replace(SOME_TOKEN, listed.lines().nth(1).unwrap().split_whitespace().next().unwrap());
        }
        let server = line.contains("--url").then(|| Server::start(&here.join("meridian-data")));
        if let Some(server) = &server {
            line = line.replace("http://127.0.0.1:7117", &server.url);
        }
        let run = typed(&line, here);
        assert_eq!(run.code, 0, "{command}: {line}\n{}\n{}", run.out, run.err);
        // An example without results shows nothing.
        assert!(!run.err.contains("no event matches"), "{command}: {line}\n{}", run.err);
        if let Some(server) = server {
            server.stop("TERM");
        }
        ran += 1;
    }
    assert!(ran > 25, "{ran} examples: {all:?}");
}
