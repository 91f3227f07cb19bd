//! What a gateway caches of a collection and of a response's snapshot.

use super::fault::shown;
use meridian_backend::{Collection, CollectionStats, Head, ImportOrigin, Problem, Settings, WriteError};
use meridian_model::{Positions, Schema, Seq};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Serializes a shared schema as the schema itself.
mod shared {
    use meridian_model::Schema;
    use serde::de::Error;
    use serde::{Deserialize, Deserializer, Serialize, Serializer};
    use std::sync::Arc;

    pub(super) fn serialize<S: Serializer>(schema: &Arc<Schema>, serializer: S) -> Result<S::Ok, S::Error> {
        schema.as_ref().serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Arc<Schema>, D::Error> {
        let schema = Schema::deserialize(deserializer)?;
        // Roles are field numbers, which users of the schema index with.
        schema.validate().map_err(D::Error::custom)?;
        Ok(Arc::new(schema))
    }
}

/// Identifies one collection, or a partition of it. A later collection of the same name has another creation time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct CollectionRef {
    pub(crate) tenant: String,
    pub(crate) name: String,
    /// Creation time in microseconds since 1970.
    pub(crate) made: i64,
    /// Number of the partition; `None`: the whole collection.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) partition: Option<u16>,
}

impl CollectionRef {
    /// Refers to a whole collection.
    pub(crate) fn of(tenant: impl Into<String>, name: impl Into<String>, made: i64) -> CollectionRef {
        CollectionRef { tenant: tenant.into(), name: name.into(), made, partition: None }
    }
}

/// A collection at one moment.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Description {
    pub(crate) place: CollectionRef,
    /// Start of the collection's data; earlier server versions do not report it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) began: Option<i64>,
    #[serde(with = "shared")]
    pub(crate) schema: Arc<Schema>,
    pub(crate) settings: Settings,
    pub(crate) stats: CollectionStats,
    pub(crate) position: Positions,
    pub(crate) oldest: Positions,
    /// Whether there is memory for a write.
    pub(crate) room: bool,
    /// Whether writes exceed the throughput of its log, so that they are refused at once.
    #[serde(default)]
    pub(crate) late: bool,
    /// How long a write waits for room, in microseconds.
    pub(crate) room_wait_us: u64,
    /// Restored data that is divided among its partitions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) imported: Option<ImportOrigin>,
}

impl Description {
    /// Describes a collection, or a partition of it.
    pub(crate) fn of(tenant: &str, partition: Option<u16>, collection: &dyn Collection) -> Description {
        // The position is read first, so the description is never older than it.
        let position = collection.position();
        let room = collection.has_room();
        Description {
            place: CollectionRef { partition, ..CollectionRef::of(tenant, collection.name(), collection.created()) },
            began: Some(collection.began()),
            schema: collection.schema(),
            settings: collection.settings(),
            stats: collection.stats(),
            position,
            oldest: collection.oldest().map(|seq| seq.0),
            room,
            late: !room && matches!(collection.request_room(), Err(WriteError::Late(_))),
            // All partitions agree. One that does not respond contributes nothing now.
            imported: collection.part(partition.unwrap_or(0).into()).ok().flatten().and_then(|part| part.imported()),
            room_wait_us: u64::try_from(collection.room_wait().as_micros()).unwrap_or(u64::MAX),
        }
    }

    /// Returns why the collection takes no writes, if so.
    pub(crate) fn refusal(&self) -> Option<WriteError> {
        self.stats.refuses.clone().map(WriteError::Refused)
    }
}

/// [`Head`] on the wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireHead {
    seq: Positions,
    #[serde(with = "shared")]
    schema: Arc<Schema>,
    taken_at: i64,
    missing: Vec<WireProblem>,
    rows: u64,
}

/// [`Problem`] on the wire.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct WireProblem {
    path: String,
    detail: String,
}

impl From<&Problem> for WireProblem {
    fn from(problem: &Problem) -> WireProblem {
        WireProblem { path: shown(&problem.path), detail: problem.detail.clone() }
    }
}

impl From<WireProblem> for Problem {
    fn from(problem: WireProblem) -> Problem {
        Problem { path: problem.path.into(), detail: problem.detail }
    }
}

impl From<&Head> for WireHead {
    fn from(head: &Head) -> WireHead {
        WireHead {
            seq: head.seq.map(|seq| seq.0),
            schema: head.schema.clone(),
            taken_at: head.taken_at,
            missing: head.missing.iter().map(WireProblem::from).collect(),
            rows: head.rows,
        }
    }
}

impl WireHead {
    /// Returns the head. Reuses the gateway's schema if they are equal, as readers compare the pointers.
    pub(crate) fn into_head(self, known: &Arc<Schema>) -> Head {
        Head {
            seq: self.seq.map(Seq),
            schema: if *known == self.schema { known.clone() } else { self.schema },
            taken_at: self.taken_at,
            missing: self.missing.into_iter().map(Problem::from).collect(),
            rows: self.rows,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_schema_whose_roles_name_no_field_is_refused() {
        let head = |time: usize| {
            json!({"seq": [7], "taken_at": 1, "missing": [], "rows": 1, "schema": {
                "fields": [{"name": "at", "type": "time", "required": true}], "geometry": null, "geometry_name": "geometry",
                "time": {"instant": time}, "id": "made", "id_name": "id", "object": null, "mode": "history",
                "time_unit_us": 604_800_000_000_u64,
            }})
        };
        serde_json::from_value::<WireHead>(head(0)).unwrap();
        let why = serde_json::from_value::<WireHead>(head(1)).unwrap_err().to_string();
        assert!(why.contains("does not exist"), "{why}");
    }
}
