//! Checks that the parser accepts the command lines of the documentation, so that none names an option that is gone.

use super::commands;
use std::path::{Path, PathBuf};

/// Returns README.md and the pages below docs/.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let (mut pages, mut folders) = (vec![root.join("README.md")], vec![root.join("docs")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Returns the lines of shell of a page with their numbers: in fenced blocks of a shell or of no language, and in
/// indented blocks. Lines that a backslash continues are joined.
fn shell_lines(page: &str) -> Vec<(usize, String)> {
    let mut lines: Vec<(usize, String)> = Vec::new();
    let mut language = None;
    let mut continued = false;
    for (number, line) in page.lines().enumerate() {
        if let Some(words) = line.trim_start().strip_prefix("```") {
            language = match language {
                Some(_) => None,
                None => Some(words.split_whitespace().next().unwrap_or("")),
            };
            continue;
        }
        let code = match language {
            Some("" | "sh" | "bash" | "console") => Some(line),
            Some(_) => None,
            None => line.strip_prefix("    "),
        };
        let Some(code) = code else {
            continued = false;
            continue;
        };
        let (text, goes_on) = code.strip_suffix('\\').map_or((code, false), |text| (text, true));
        match lines.last_mut() {
            Some((_, last)) if continued => last.push_str(text.trim_start()),
            _ => lines.push((number + 1, text.to_owned())),
        }
        continued = goes_on;
    }
    lines
}

/// Splits a line of shell into commands, each a list of words without quotes. The target of a redirection becomes a
/// command of its own. Comments are left out, and so are remarks: words after a wide gap that are no option or path.
fn split(line: &str) -> Vec<Vec<String>> {
    let mut commands: Vec<Vec<String>> = vec![Vec::new()];
    let mut word: Option<String> = None;
    let mut quote = None;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let ends = quote.is_none() && " |;&()<>".contains(c);
        if ends {
            // A number before a redirection names a stream.
            let stream = matches!(c, '<' | '>') && word.as_ref().is_some_and(|word| word.parse::<u8>().is_ok());
            let ended = word.take().filter(|_| !stream);
            if let Some(command) = commands.last_mut() {
                command.extend(ended);
            }
        }
        match c {
            ' ' if ends => {
                let gap = chars.peek() == Some(&' ');
                while chars.next_if_eq(&' ').is_some() {}
                let is_remark = chars.peek().is_some_and(|next| !matches!(next, '-' | '/'));
                if gap && is_remark {
                    break;
                }
            }
            _ if ends => commands.push(Vec::new()),
            '#' if quote.is_none() && word.is_none() => break,
            '\'' | '"' if quote.is_none() => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            _ if quote == Some(c) => quote = None,
            '\\' if quote == Some('"') => word.get_or_insert_default().extend(chars.next()),
            _ => word.get_or_insert_default().push(c),
        }
    }
    if let Some(command) = commands.last_mut() {
        command.extend(word);
    }
    commands
}

/// Returns whether a command runs the program with arguments, and is no synopsis such as `FILE... [options]`.
fn runs_the_program(command: &[String]) -> bool {
    let [program, arguments @ ..] = command else { return false };
    let is_program = program == "meridian" || program.ends_with("/meridian");
    let is_synopsis = arguments.iter().any(|word| word.starts_with('[') || word.ends_with("..."));
    is_program && !arguments.is_empty() && !is_synopsis
}

#[test]
fn the_parser_accepts_every_command_line_of_the_documentation() {
    let (mut checked, mut wrong) = (0, Vec::new());
    for page in pages() {
        let text = std::fs::read_to_string(&page).unwrap();
        for (number, line) in shell_lines(&text) {
            for command in split(&line).into_iter().filter(|command| runs_the_program(command)) {
                checked += 1;
                match commands().try_get_matches_from(command) {
                    Err(error) if error.use_stderr() => {
                        wrong.push(format!("{}:{number}: {line}\n{error}", page.display()));
                    }
                    _ => {}
                }
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(checked > 100, "only {checked} command lines were found");
}

#[test]
fn lines_of_shell_are_split_into_commands() {
    let split = |line: &str| split(line).into_iter().filter(|command| !command.is_empty()).collect::<Vec<_>>();
    assert_eq!(
        split("zcat a.gz | meridian load b - --url x"),
        [vec!["zcat", "a.gz"], vec!["meridian", "load", "b", "-", "--url", "x"]]
    );
    assert_eq!(
        split("meridian query a --filter \"x > '1 2'\" > b.csv  # all"),
        [vec!["meridian", "query", "a", "--filter", "x > '1 2'"], vec!["b.csv"]]
    );
    assert_eq!(
        split("meridian backup  /b --tenant c   --url d   the backup of c"),
        [vec!["meridian", "backup", "/b", "--tenant", "c", "--url", "d"]]
    );
    assert_eq!(
        split("F=$(meridian files a) x 2> y"),
        [vec!["F=$"], vec!["meridian", "files", "a"], vec!["x"], vec!["y"]]
    );
    let page =
        "```sh\nmeridian load a \\\n  b\n```\n\ntext\n\n    meridian list\n\n```python\nmeridian.open(\"a\")\n```\n";
    let lines: Vec<(usize, String)> = shell_lines(page).into_iter().filter(|(_, line)| !line.is_empty()).collect();
    assert_eq!(lines, [(2, "meridian load a b".to_owned()), (8, "meridian list".to_owned())]);
    assert!(commands().try_get_matches_from(["meridian", "list", "--no-such-option"]).is_err());
}
