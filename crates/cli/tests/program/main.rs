//! The program's tests, as one test program: it is linked once. `scripts/cargo_tests.py` runs each module in a process of its own.

#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on ends")]

mod common;

mod access;
mod backup;
mod backup_secrets;
mod bad_input;
mod canaries;
mod canaries_asked;
#[cfg(feature = "nats")]
mod chaos;
mod cli;
mod cluster;
mod cluster_away;
mod cluster_change;
mod cluster_groups;
mod cluster_harm;
#[cfg(feature = "nats")]
mod cluster_nats;
mod cluster_pages;
#[cfg(feature = "cluster")]
mod cluster_s3;
mod cluster_saved;
mod cluster_scan;
mod cluster_slots;
#[cfg(feature = "cluster")]
mod cluster_tls;
mod cluster_up;
mod crash;
mod damage;
mod disk;
mod follow;
#[cfg(feature = "geopackage")]
mod geopackage;
mod guide;
mod help;
mod idle;
mod issuers;
#[cfg(feature = "lab")]
mod lab;
mod lab_analysis;
mod load_guess;
mod load_invalid;
mod load_resume;
mod memory;
mod moves;
mod named_files;
mod observe;
mod ogr2ogr;
mod other_formats;
#[cfg(feature = "lab")]
mod overload;
mod provider;
mod readers;
mod saved;
mod search;
mod security_page;
mod serve;
mod soak;
mod studies;
mod tls;
mod traces;
mod wrk;
