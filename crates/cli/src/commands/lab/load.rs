//! Arguments of commands that send load: the scenario with its changes, the folder for results, and the allowed hosts.

use super::failure;
use crate::failure::Failure;
use clap::Args;
use meridian_lab_drive::driver;
use meridian_lab_drive::scenario::Scenario;
use meridian_store::seams::{expect_file, read_named_text};
use std::path::{Path, PathBuf};

/// A scenario to run, and how.
#[derive(Args, Debug)]
pub struct LoadArgs {
    /// The scenario
    #[arg(value_name = "SCENARIO.toml")]
    pub scenario: PathBuf,
    /// Folder to create for the results [default: lab-results/NAME-TIME]
    #[arg(long, value_name = "DIR")]
    pub out: Option<PathBuf>,
    /// Change a value of the scenario, such as phases.measured_s=20; may repeat
    #[arg(long = "set", value_name = "KEY=VALUE")]
    pub sets: Vec<String>,
    /// Print the outcome as one JSON object
    #[arg(long)]
    pub json: bool,
    /// Send load to this host although it is outside loopback and private networks; may repeat
    #[arg(long, value_name = "HOST")]
    pub allow_public: Vec<String>,
    /// Trust the certificates of this file (PEM) too, such as a target's self-signed one
    #[arg(long, value_name = "FILE")]
    pub ca: Option<PathBuf>,
    /// Accept any certificate of a target: its identity is not checked
    #[arg(long)]
    pub insecure: bool,
}

impl LoadArgs {
    /// Returns the scenario to run.
    pub fn scenario(&self) -> Result<Scenario, Failure> {
        let scenario = Scenario::load(&self.scenario, &self.sets, read_named_text, expect_file);
        let mut scenario = scenario.map_err(failure)?;
        if let Some(ca) = &self.ca {
            expect_file(ca).map_err(|e| Failure::Usage(format!("--ca {}: {e}", ca.display())))?;
        }
        // Made absolute, so that the scenario in a results folder can be run again from any folder.
        let whole = |ca: &PathBuf| std::path::absolute(ca).unwrap_or_else(|_| ca.clone());
        driver::trust(&mut scenario, self.ca.as_ref().map(whole).as_deref(), self.insecure).map_err(failure)?;
        Ok(scenario)
    }

    /// Returns the folder for results; by default one named by the scenario and the time.
    pub fn folder(&self, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_alphanumeric() || c == '-' { c } else { '-' };
        let made = || {
            let time = jiff::Zoned::now().strftime("%Y%m%dT%H%M%S").to_string();
            Path::new("lab-results").join(format!("{}-{time}", name.chars().map(plain).collect::<String>()))
        };
        self.out.clone().unwrap_or_else(made)
    }
}
