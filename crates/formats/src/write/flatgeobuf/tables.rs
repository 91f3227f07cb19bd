//! The tables of FlatGeobuf: where each has its fields.
//!
//! The crate `flatgeobuf` has types for them, over another version of `flatbuffers`. They would tie the server's streams
//! to that crate, which some builds leave out (decision 073). So the tables are built by the numbers of their fields.

use flatbuffers::{FlatBufferBuilder, TableFinishedWIPOffset, VOffsetT, WIPOffset};

/// Builds one message at a time, in a buffer that grows to the largest.
pub(crate) type Builder = FlatBufferBuilder<'static>;

/// A table within the message that is being built.
pub(super) type Table = WIPOffset<TableFinishedWIPOffset>;

pub(super) const HEADER_NAME: VOffsetT = 4;
pub(super) const HEADER_ENVELOPE: VOffsetT = 6;
pub(super) const HEADER_TYPE: VOffsetT = 8;
pub(super) const HEADER_COLUMNS: VOffsetT = 18;
pub(super) const HEADER_FEATURES: VOffsetT = 20;
pub(super) const HEADER_NODE_SIZE: VOffsetT = 22;
pub(super) const HEADER_SYSTEM: VOffsetT = 24;

pub(super) const COLUMN_NAME: VOffsetT = 4;
pub(super) const COLUMN_TYPE: VOffsetT = 6;

pub(super) const SYSTEM_ORGANIZATION: VOffsetT = 4;
pub(super) const SYSTEM_CODE: VOffsetT = 6;
pub(super) const SYSTEM_NAME: VOffsetT = 8;

pub(super) const FEATURE_GEOMETRY: VOffsetT = 4;
pub(super) const FEATURE_PROPERTIES: VOffsetT = 6;

pub(super) const GEOMETRY_ENDS: VOffsetT = 4;
pub(super) const GEOMETRY_POSITIONS: VOffsetT = 6;
pub(super) const GEOMETRY_TYPE: VOffsetT = 16;
pub(super) const GEOMETRY_PARTS: VOffsetT = 18;

#[cfg(all(test, feature = "flatgeobuf"))]
mod tests {
    use super::*;
    use flatgeobuf::{Column, Crs, Feature, Geometry, Header};

    #[test]
    fn fields_are_where_the_schema_of_the_format_has_them() {
        for (ours, theirs) in [
            (HEADER_NAME, Header::VT_NAME),
            (HEADER_ENVELOPE, Header::VT_ENVELOPE),
            (HEADER_TYPE, Header::VT_GEOMETRY_TYPE),
            (HEADER_COLUMNS, Header::VT_COLUMNS),
            (HEADER_FEATURES, Header::VT_FEATURES_COUNT),
            (HEADER_NODE_SIZE, Header::VT_INDEX_NODE_SIZE),
            (HEADER_SYSTEM, Header::VT_CRS),
            (COLUMN_NAME, Column::VT_NAME),
            (COLUMN_TYPE, Column::VT_TYPE_),
            (SYSTEM_ORGANIZATION, Crs::VT_ORG),
            (SYSTEM_CODE, Crs::VT_CODE),
            (SYSTEM_NAME, Crs::VT_NAME),
            (FEATURE_GEOMETRY, Feature::VT_GEOMETRY),
            (FEATURE_PROPERTIES, Feature::VT_PROPERTIES),
            (GEOMETRY_ENDS, Geometry::VT_ENDS),
            (GEOMETRY_POSITIONS, Geometry::VT_XY),
            (GEOMETRY_TYPE, Geometry::VT_TYPE_),
            (GEOMETRY_PARTS, Geometry::VT_PARTS),
        ] {
            assert_eq!(ours, theirs);
        }
    }
}
