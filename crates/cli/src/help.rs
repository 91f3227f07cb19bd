//! Help texts in paragraphs, which fill the terminal's width.

use crate::Program;
use clap::{Command, CommandFactory};

/// The program's commands, with the lines of each paragraph after the options joined. Sources break lines for their own
/// width.
pub fn commands() -> Command {
    joined(Program::command())
}

fn joined(command: Command) -> Command {
    let after = command.get_after_help().map(|text| paragraphs(&text.to_string()));
    let command = command.mut_subcommands(joined);
    match after {
        Some(text) => command.after_help(text),
        None => command,
    }
}

/// Joins consecutive lines. Indented lines, such as examples, and headings stay as they are.
fn paragraphs(text: &str) -> String {
    let mut out: Vec<String> = Vec::new();
    for line in text.lines() {
        let flows = |line: &str| !line.is_empty() && !line.starts_with(' ');
        match out.last_mut() {
            Some(last) if flows(line) && flows(last) && !last.ends_with(':') => {
                last.push(' ');
                last.push_str(line);
            }
            _ => out.push(line.to_owned()),
        }
    }
    out.join("\n")
}

#[cfg(test)]
mod pages;

#[cfg(test)]
mod tests {
    use super::paragraphs;

    #[test]
    fn only_the_lines_of_a_paragraph_are_joined() {
        let text = "Examples:\n  meridian list\n  meridian drop x\n\nA sentence that\ngoes on. Another.\n\nFormats:\ncsv or json\n  indented\nafter it";
        let expected = "Examples:\n  meridian list\n  meridian drop x\n\nA sentence that goes on. Another.\n\nFormats:\ncsv or json\n  indented\nafter it";
        assert_eq!(paragraphs(text), expected);
        assert_eq!(paragraphs(expected), expected);
    }
}
