//! Memory accounting for columns.

use arrow_array::{Array, ArrayRef};
use arrow_buffer::Buffer;
use arrow_data::ArrayData;

/// Bytes of memory held by a set of columns, with each shared allocation counted once. Columns decoded from one
/// message are slices of it, and Arrow's own `get_array_memory_size` counts the whole message for each.
pub fn memory_of<'a>(columns: impl IntoIterator<Item = &'a ArrayRef>) -> usize {
    let mut held = Vec::new();
    columns.into_iter().for_each(|column| note(&column.to_data(), &mut held));
    held.sort_unstable();
    held.dedup_by_key(|(at, _)| *at);
    held.iter().map(|(_, bytes)| bytes).sum()
}

fn note(data: &ArrayData, held: &mut Vec<(usize, usize)>) {
    let allocation = |buffer: &Buffer| (buffer.data_ptr().as_ptr() as usize, buffer.capacity());
    held.extend(data.buffers().iter().chain(data.nulls().map(|nulls| nulls.buffer())).map(allocation));
    data.child_data().iter().for_each(|child| note(child, held));
}

#[cfg(test)]
mod tests {
    use super::*;
    use arrow_array::{Float64Array, StringArray};
    use arrow_buffer::{OffsetBuffer, ScalarBuffer};
    use std::sync::Arc;

    #[test]
    fn what_is_shared_counts_once() {
        let number: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 1000]));
        let one = memory_of([&number]);
        assert!((8000..9000).contains(&one), "{one}");
        assert_eq!(memory_of([&number, &number.slice(10, 20)]), one);
        let other: ArrayRef = Arc::new(Float64Array::from(vec![1.0; 1000]));
        assert_eq!(memory_of([&number, &other]), 2 * one);
        // Offsets and values of a text in one allocation, as in a decoded message.
        let message = Buffer::from([&0i32.to_le_bytes()[..], &4i32.to_le_bytes(), b"text"].concat());
        let offsets = OffsetBuffer::new(ScalarBuffer::new(message.clone(), 0, 2));
        let text: ArrayRef = Arc::new(StringArray::new(offsets, message.slice(8), None));
        assert_eq!(text.len(), 1);
        assert_eq!(memory_of([&text]), message.capacity());
    }
}
