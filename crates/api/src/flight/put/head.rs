//! The part repeated by each write of a call: its schema and its dictionaries.

use bytes::Bytes;
use tonic::Status;

/// Max bytes of the schema and the dictionaries, which are repeated in each write.
const HEAD_BYTES_MAX: usize = 1 << 20;

/// The messages that every write begins with.
#[derive(Default)]
pub(super) struct Head {
    pub(super) schema: Option<[Bytes; 2]>,
    /// Each with its number, in order of arrival.
    pub(super) dictionaries: Vec<(i64, [Bytes; 2])>,
}

impl Head {
    pub(super) fn bytes(&self) -> usize {
        self.frames().map(Bytes::len).sum()
    }

    pub(super) fn frames(&self) -> impl Iterator<Item = &Bytes> {
        self.schema.iter().chain(self.dictionaries.iter().map(|(_, frames)| frames)).flatten()
    }

    /// Copies frames for the head if there is room. A slice of a message would keep all of it in memory, uncounted once
    /// the message is released.
    pub(super) fn keep(&self, [header, body]: [Bytes; 2]) -> Result<[Bytes; 2], Status> {
        if self.bytes() + header.len() + body.len() > HEAD_BYTES_MAX {
            return Err(Status::invalid_argument(format!(
                "the schema and the dictionaries are over the limit of {HEAD_BYTES_MAX} bytes: send columns without dictionaries"
            )));
        }
        Ok([header, Bytes::copy_from_slice(&body)])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_call_that_writes_keeps_only_the_head_of_what_it_received() {
        let message = Bytes::from(vec![7; 100]);
        let kept = Head::default().keep([Bytes::new(), message.slice(..10)]).unwrap();
        assert_eq!(kept[1].to_vec(), [7; 10]);
        assert!(message.is_unique(), "the whole message is kept for ten bytes of it");
        let body = Bytes::from(vec![7; HEAD_BYTES_MAX / 2 + 1]);
        let mut head = Head::default();
        let kept = head.keep([Bytes::new(), body.clone()]).unwrap();
        head.dictionaries.push((0, kept));
        assert!(head.keep([Bytes::new(), body]).is_err());
    }
}
