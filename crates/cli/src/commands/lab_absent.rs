//! `meridian lab` of a program that was built without it.

use crate::failure::Failure;
use clap::Args;

/// Measure and predict the capacity of a server (not in this build: it needs the feature `lab`)
#[derive(Args, Debug)]
#[command(disable_help_flag = true)]
pub struct LabArgs {
    #[arg(trailing_var_arg = true, allow_hyphen_values = true, hide = true)]
    _args: Vec<String>,
}

/// Reports the missing feature.
pub fn run(_: &LabArgs) -> Result<(), Failure> {
    Err(Failure::Usage("lab is not in this build: build meridian with the feature `lab`".to_owned()))
}
