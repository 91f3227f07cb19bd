//! `meridian manual`: the help of all commands as manual pages.

use crate::failure::Failure;
use crate::help;
use crate::output::say;
use clap::{Args, Command};
use clap_mangen::Man;
use std::fs;
use std::path::PathBuf;

/// Write the manual pages, one for each command
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian manual man1  then: man man1/meridian-load.1

A package puts them into /usr/share/man/man1.")]
pub struct ManualArgs {
    /// Folder to write to; made where it is missing
    #[arg(value_name = "DIR")]
    pub folder: PathBuf,
}

/// Runs the command.
pub fn run(args: &ManualArgs) -> Result<(), Failure> {
    let folder = &args.folder;
    let failed = |e: std::io::Error| Failure::Refused(format!("{} cannot be written: {e}", folder.display()));
    let mut pages = Vec::new();
    collect(help::commands(), None, &mut pages);
    fs::create_dir_all(folder).map_err(failed)?;
    for (name, page) in &pages {
        let mut text = Vec::new();
        page.render(&mut text).map_err(failed)?;
        fs::write(folder.join(format!("{name}.1")), text).map_err(failed)?;
    }
    say(&format!("{} pages in {}", pages.len(), folder.display()));
    Ok(())
}

/// Collects the pages of a command and its subcommands. Names follow git's pages: `meridian-cluster-up`.
fn collect(command: Command, above: Option<&str>, pages: &mut Vec<(String, Man)>) {
    let name = above.map_or_else(|| command.get_name().to_owned(), |above| format!("{above}-{}", command.get_name()));
    for below in command.get_subcommands() {
        collect(below.clone(), Some(&name), pages);
    }
    // The title and the usage line have the whole name.
    let named = command.display_name(name.clone()).bin_name(name.replace('-', " "));
    pages.push((name, Man::new(named)));
}
