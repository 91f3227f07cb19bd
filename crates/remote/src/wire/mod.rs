//! The wire format, for both sides.

pub(crate) mod answer;
pub(crate) mod call;
pub(crate) mod decode;
pub(crate) mod described;
pub(crate) mod encode;
pub(crate) mod fault;
#[cfg(test)]
mod golden;
pub(crate) mod rows;

/// Target size of a message: small enough that a slow reader holds little, large enough that its header costs nothing.
pub(crate) const PIECE_BYTES: usize = 256 << 10;
/// Max size of a message: that of the largest event, with room to spare.
pub(crate) const MESSAGE_BYTES_MAX: usize = 256 << 20;
/// Header of each response: epoch and instance of the owner that responds. Of a call: the process that the caller takes
/// for the owner.
pub(crate) const OWNER_HEADER: &str = "meridian-owner";
/// Header of a call: the group of partitions whose owner is called; absent: the first.
pub(crate) const GROUP_HEADER: &str = "meridian-group";
/// Value of a scan server in that header, in place of an epoch.
pub(crate) const SCAN_SERVER: &str = "scan";
/// Header in the status of a call of which nothing was done.
pub(crate) const REFUSED_HEADER: &str = "meridian-refused";
