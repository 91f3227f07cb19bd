//! `meridian completions`: completion scripts of shells.

use crate::Program;
use crate::failure::Failure;
use crate::output::{unwritable, with_stdout};
use clap::{Args, CommandFactory};
use clap_complete::Shell;

/// Print the completions of a shell
#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  meridian completions bash > meridian.bash

bash: `. meridian.bash`, or put the file into /usr/share/bash-completion/completions as meridian. zsh: as _meridian
into a folder of $fpath. fish: into ~/.config/fish/completions as meridian.fish.")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum)]
    pub shell: Shell,
}

/// Runs the command.
pub fn run(args: &CompletionsArgs) -> Result<(), Failure> {
    // Into memory first: the generator panics if its output cannot be written.
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Program::command(), "meridian", &mut script);
    with_stdout(|out| out.write_all(&script).map_err(|e| unwritable(&e)))
}
