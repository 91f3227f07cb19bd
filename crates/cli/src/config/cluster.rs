//! The role of a process in a cluster, and its settings.

use super::nats::Nats;
use super::roles::Roles;
use super::s3::S3;
use super::scan::Scan;
use super::setting::{GIB, MIB, Setting, TIB, size, text, within};
use crate::failure::Failure;
use crate::units;
use meridian_model::Invalid;
use meridian_model::policy::groups::{GROUPS_MAX, Groups};
use std::fmt;
use std::str::FromStr;
use std::time::Duration;
use toml::Value;

/// The role of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// Everything, in one process.
    All,
    /// Serves clients from the collections of owners.
    Gateway,
    /// Writes the collections in the bucket.
    Owner,
    /// Serves clients from what owners have flushed to the bucket.
    Scan,
}

impl Role {
    const fn name(self) -> &'static str {
        match self {
            Role::All => "all",
            Role::Gateway => "gateway",
            Role::Owner => "owner",
            Role::Scan => "scan",
        }
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Role {
    type Err = Invalid;

    fn from_str(name: &str) -> Result<Role, Invalid> {
        let all = [Role::All, Role::Gateway, Role::Owner, Role::Scan];
        let found = all.into_iter().find(|role| role.name() == name);
        found.ok_or_else(|| Invalid::new(format!("{name:?}: expected all, gateway, owner or scan")))
    }
}

/// Limits of what a process caches of the bucket, in bytes.
#[derive(Debug, Clone, Copy)]
pub struct Cache {
    /// Pieces of objects in memory.
    pub memory: u64,
    /// Pieces of objects in the data folder of a scan server.
    pub disk: u64,
    /// Open segment trees of a scan server.
    pub trees: u64,
}

impl Default for Cache {
    fn default() -> Cache {
        Cache { memory: 256 * MIB, disk: 4 * GIB, trees: 512 * MIB }
    }
}

/// Settings shared by the processes of a cluster, and their addresses.
#[derive(Debug, Clone)]
pub struct Cluster {
    /// The log: `bucket` or `nats`; empty outside of a cluster.
    pub log: String,
    /// The bucket's address, such as `file:///srv/bucket` or `s3://events/production`.
    pub bucket: String,
    /// Address where an owner serves gateways.
    pub flight: String,
    /// Address by which gateways reach an owner; empty: the listening address.
    pub flight_advertise: String,
    /// URL by which other gateways reach a gateway; empty: derived from its listening address.
    pub advertise: String,
    /// File of authorities that gateways trust for each other, in addition to the system's; empty: none.
    pub advertise_ca: String,
    /// The name of this process; empty: a generated one.
    pub node: String,
    /// Number of groups into which the partitions of a new bucket are divided, each with an owner.
    pub groups: Groups,
    /// How long an owner's lease holds without renewal.
    pub lease: Duration,
    /// Max age of a write before its owner flushes it.
    pub staleness_max: Duration,
    /// Max difference between the clocks of two machines.
    pub skew: Duration,
    /// Caches of the bucket in this process.
    pub cache: Cache,
    /// Scan servers, and how gateways use them.
    pub scan: Scan,
    /// The log over NATS.
    pub nats: Nats,
    /// The store of the bucket, unless that is a folder of this machine.
    pub s3: S3,
    /// TLS between its roles.
    pub tls: Roles,
}

impl Default for Cluster {
    fn default() -> Cluster {
        Cluster {
            log: String::new(),
            bucket: String::new(),
            flight: "127.0.0.1:7118".to_owned(),
            flight_advertise: String::new(),
            advertise: String::new(),
            advertise_ca: String::new(),
            node: String::new(),
            groups: Groups::ONE,
            lease: Duration::from_secs(3),
            staleness_max: Duration::from_secs(60),
            skew: Duration::ZERO,
            cache: Cache::default(),
            scan: Scan::default(),
            nats: Nats::default(),
            s3: S3::default(),
            tls: Roles::default(),
        }
    }
}

impl Cluster {
    /// Checks that a role has the settings it needs, and none that it would ignore.
    ///
    /// # Errors
    /// [`Failure::Usage`] that names the option.
    pub fn check(&self, role: Role, ephemeral: bool) -> Result<(), Failure> {
        let wrong = |what: String| Err(Failure::Usage(what));
        crate::args::bucket_without_key(&self.bucket)?;
        // A single process ignores these, so setting one is a mistake in the role.
        if role == Role::All {
            for (option, value) in [("--log", &self.log), ("--bucket", &self.bucket)] {
                if !value.is_empty() {
                    return wrong(format!(
                        "{option} {value}: one process keeps its log and its segments in --data; a bucket is for --role gateway, \
                         owner or scan"
                    ));
                }
            }
            return Ok(());
        }
        if cfg!(not(feature = "cluster")) {
            return wrong(format!("--role {role}: this program was built without the feature `cluster`: expected all"));
        }
        match self.log.as_str() {
            "bucket" => {}
            "nats" if cfg!(feature = "nats") => {}
            "nats" => {
                return wrong(
                    "--log nats: this program was built without the feature `nats`: expected bucket".to_owned(),
                );
            }
            "" => {
                return wrong(format!(
                    "--role {role}: it needs the cluster's log: expected --log bucket or --log nats"
                ));
            }
            nats if nats.starts_with("nats://") => {
                return wrong(format!("--log {nats}: expected nats, and the address in the setting cluster.nats.urls"));
            }
            other => return wrong(format!("--log {other}: expected bucket or nats")),
        }
        if self.bucket.is_empty() {
            return wrong(format!(
                "--role {role}: it needs the cluster's bucket: expected --bucket file://DIR or s3://BUCKET/PREFIX"
            ));
        }
        self.tls.files()?;
        if ephemeral {
            return wrong(format!(
                "--ephemeral: the collections of a cluster lie in its bucket, so --role {role} takes none"
            ));
        }
        Ok(())
    }
}

pub(super) const ROLE: &[Setting] = &[Setting {
    key: "server.role",
    help: "Role of this process: all, or one of a cluster: gateway, owner or scan.",
    get: |c| Value::String(c.role.to_string()),
    set: |c, v| {
        c.role = text(v)?.parse().map_err(|e: Invalid| e.to_string())?;
        Ok(())
    },
}];

pub(super) const SETTINGS: &[Setting] = &[
    plain!("cluster.log", "Log of a cluster: bucket or nats; empty outside of one.", cluster.log),
    plain!(
        "cluster.bucket",
        "Bucket of a cluster: file://DIR, a folder that all its processes share, or s3://BUCKET/PREFIX.",
        cluster.bucket
    ),
    plain!("cluster.flight", "Address and port where an owner answers gateways.", cluster.flight),
    plain!(
        "cluster.flight_advertise",
        "Host and port by which gateways reach an owner; empty: cluster.flight.",
        cluster.flight_advertise
    ),
    plain!(
        "cluster.advertise",
        "URL by which other gateways reach this one; empty: made from server.listen.",
        cluster.advertise
    ),
    plain!(
        "cluster.advertise_ca",
        "File of authorities in PEM that this gateway trusts for other gateways, beside those of the system.",
        cluster.advertise_ca
    ),
    plain!(
        "cluster.node",
        "Name of this process in its cluster; empty: made from its role and process id.",
        cluster.node
    ),
    Setting {
        key: "cluster.groups",
        help: "Into how many groups the first owner of a bucket divides its partitions: each group has an owner, so as many may write at once.",
        get: |c| Value::Integer(c.cluster.groups.count().into()),
        set: |c, v| {
            let count = v.as_integer().and_then(|n| u16::try_from(n).ok()).and_then(Groups::new);
            c.cluster.groups = count.ok_or_else(|| format!("expected a whole number from 1 to {GROUPS_MAX}"))?;
            Ok(())
        },
    },
    duration!(
        "cluster.lease",
        "How long an owner's lease holds without being renewed; another takes over after that and an eighth more.",
        cluster.lease,
        "500ms",
        "5m"
    ),
    duration!(
        "cluster.staleness_max",
        "How old a write may get before its owner flushes it, so that servers of the role scan see it.",
        cluster.staleness_max,
        "1s",
        "1d"
    ),
    duration!(
        "cluster.skew",
        "How far the clocks of two machines may be apart: answers of the role scan say that they are so much older.",
        cluster.skew,
        "0s",
        "1h"
    ),
    size!(
        "cluster.cache.memory",
        "Max memory for pieces of the bucket's objects, on owners and servers of the role scan; 0: none are kept, also not on disk.",
        cluster.cache.memory,
        0,
        TIB
    ),
    size!(
        "cluster.cache.disk",
        "Max disk for such pieces in --data, on servers of the role scan; 0: none are kept there.",
        cluster.cache.disk,
        0,
        1024 * TIB
    ),
    size!(
        "cluster.cache.trees",
        "Max memory for trees of segments, on servers of the role scan: those used last stay, and others are read when a question needs them.",
        cluster.cache.trees,
        0,
        TIB
    ),
];
