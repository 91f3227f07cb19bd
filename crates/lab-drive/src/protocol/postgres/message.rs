//! Messages of PostgreSQL's protocol 3 (postgresql.org/docs/current/protocol-message-formats.html), as far as a
//! querying client needs them.

use crate::protocol::scan::BODY_MAX;

/// A message from a server: its kind and its body.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Message<'a> {
    pub kind: u8,
    pub body: &'a [u8],
    /// Bytes of the whole message.
    pub length: usize,
}

/// Returns the first message of the received bytes, if it is complete.
pub(crate) fn next(bytes: &[u8]) -> Result<Option<Message<'_>>, &'static str> {
    let Some((kind, rest)) = bytes.split_first() else { return Ok(None) };
    if !kind.is_ascii_alphanumeric() {
        return Err("the answer is not PostgreSQL's");
    }
    let Some(length) = rest.first_chunk() else { return Ok(None) };
    let length = u32::from_be_bytes(*length) as usize;
    // The length includes itself, so 4 is the min. A length above that of any response means that the other side
    // speaks another protocol.
    if !(4..=BODY_MAX).contains(&length) {
        return Err("the answer is not PostgreSQL's");
    }
    Ok(rest.get(4..length).map(|body| Message { kind: *kind, body, length: length + 1 }))
}

/// Appends a message of a client. A kind of 0 is the start of a session, which has none.
pub(crate) fn put(out: &mut Vec<u8>, kind: u8, body: &[&[u8]]) {
    if kind != 0 {
        out.push(kind);
    }
    let length = 4 + body.iter().map(|part| part.len()).sum::<usize>();
    out.extend_from_slice(&u32::try_from(length).unwrap_or(u32::MAX).to_be_bytes());
    body.iter().for_each(|part| out.extend_from_slice(part));
}

/// Returns the columns of a row (body of a DataRow), as text; `None` is null. Ends early if the row is malformed.
pub(crate) fn columns(body: &[u8]) -> impl Iterator<Item = Option<&[u8]>> {
    let mut rest = body.get(2..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (length, after) = rest.split_first_chunk()?;
        let Ok(length) = usize::try_from(i32::from_be_bytes(*length)) else {
            rest = after;
            return Some(None);
        };
        let (column, after) = after.split_at_checked(length)?;
        rest = after;
        Some(Some(column))
    })
}

/// An error that a server reports.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct ServerError {
    /// SQLSTATE, five characters.
    pub code: String,
    /// Its text.
    pub text: String,
}

/// Max characters of a server's message that a record keeps.
const TEXT: usize = 160;

impl ServerError {
    /// Reads the body of an ErrorResponse.
    pub(crate) fn read(body: &[u8]) -> ServerError {
        let mut complaint = ServerError { code: "unknown".to_owned(), text: "an error without a message".to_owned() };
        for field in body.split(|byte| *byte == 0) {
            match field.split_first() {
                Some((b'C', code)) => complaint.code = String::from_utf8_lossy(code).into_owned(),
                Some((b'M', text)) => complaint.text = String::from_utf8_lossy(text).chars().take(TEXT).collect(),
                _ => {}
            }
        }
        complaint
    }

    /// Returns whether the server refused the request for lack of resources (class 53, and "cannot connect now").
    pub(crate) fn is_refusal(&self) -> bool {
        self.code.starts_with("53") || self.code == "57P03"
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn a_message_is_found_once_it_is_whole(body in prop::collection::vec(any::<u8>(), 0..80), cut in 0..90_usize) {
            let mut client = Vec::new();
            put(&mut client, b'D', &[&body]);
            let whole = client.len();
            client.extend_from_slice(b"Z\0\0");
            prop_assert_eq!(next(&client), Ok(Some(Message { kind: b'D', body: &body, length: whole })));
            prop_assert_eq!(next(&client[..cut.min(whole - 1)]), Ok(None));
        }

        #[test]
        fn columns_come_back_as_they_went(row in prop::collection::vec(prop::option::of(prop::collection::vec(any::<u8>(), 0..9)), 0..6)) {
            let mut body = (row.len() as u16).to_be_bytes().to_vec();
            for column in &row {
                let length = column.as_ref().map_or(-1, |column| column.len() as i32);
                body.extend_from_slice(&length.to_be_bytes());
                body.extend_from_slice(column.as_deref().unwrap_or_default());
            }
            let read: Vec<_> = columns(&body).map(|column| column.map(<[u8]>::to_vec)).collect();
            prop_assert_eq!(read, row);
        }

        #[test]
        fn any_bytes_are_a_message_or_a_mistake_or_too_few(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = next(&bytes);
            let _ = columns(&bytes).count();
            let _ = ServerError::read(&bytes);
        }
    }
}
