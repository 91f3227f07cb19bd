//! Messages of FlatGeobuf: tables and vectors of FlatBuffers, written front to back.
//!
//! The libraries build a message back to front in a buffer of their own. Here each object is appended where it stays:
//! offsets lead forward, and an object fills in the offset that leads to it.

/// Bytes of the length before each message.
const PREFIX_BYTES: usize = 4;
/// Max size of a number. Messages are whole multiples of it, so that numbers are aligned in a mapped file too.
const ALIGNMENT: usize = 8;

/// A field of a table; its place in the list is its number in the format.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Slot {
    /// The default of the format.
    Absent,
    /// An 8-bit number.
    Byte(u8),
    /// A 16-bit number.
    Short(u16),
    /// A 32-bit number.
    Int(u32),
    /// A 64-bit number.
    Long(u64),
    /// The offset of an object that is written later.
    Offset,
}

impl Slot {
    /// Bytes in the table. Short fields take four, which keeps all aligned.
    fn width(self) -> u16 {
        match self {
            Slot::Absent => 0,
            Slot::Long(_) => 8,
            Slot::Byte(_) | Slot::Short(_) | Slot::Int(_) | Slot::Offset => 4,
        }
    }
}

/// A message that is being written at the end of a buffer. Positions count from the start of the message.
pub(super) struct Message<'a> {
    out: &'a mut Vec<u8>,
    start: usize,
}

impl<'a> Message<'a> {
    /// Position of the offset of the root table.
    pub(super) const ROOT: usize = PREFIX_BYTES;

    pub(super) fn begin(out: &'a mut Vec<u8>) -> Message<'a> {
        let start = out.len();
        out.extend_from_slice(&[0; PREFIX_BYTES + 4]);
        Message { out, start }
    }

    /// Completes the message with its length.
    pub(super) fn end(mut self) {
        self.pad(0, ALIGNMENT, 0);
        let length = self.len() - PREFIX_BYTES;
        self.put(0, &(length as u32).to_le_bytes());
    }

    fn len(&self) -> usize {
        self.out.len() - self.start
    }

    fn put(&mut self, at: usize, bytes: &[u8]) {
        let at = self.start + at;
        self.out[at..at + bytes.len()].copy_from_slice(bytes);
    }

    /// Appends zeros until the position after `more` further bytes is `rest` beyond a multiple of `size`.
    fn pad(&mut self, more: usize, size: usize, rest: usize) {
        while (self.len() + more) % size != rest {
            self.out.push(0);
        }
    }

    /// Lets the offset at `from` lead to what is appended next. Events are bounded, and so are their messages: 32 bits
    /// hold every length.
    fn refer(&mut self, from: usize) {
        let distance = self.len() - from;
        self.put(from, &(distance as u32).to_le_bytes());
    }

    /// Appends a table, to which the offset at `from` leads. Returns the position of each field.
    pub(super) fn table<const N: usize>(&mut self, from: usize, slots: [Slot; N]) -> [usize; N] {
        // A table begins with four bytes. Fields of eight follow first, and are aligned if the table begins before a
        // multiple of eight.
        let mut size: u16 = 4;
        let mut places = [0u16; N];
        for is_long in [true, false] {
            for (place, slot) in places.iter_mut().zip(slots) {
                if matches!(slot, Slot::Long(_)) == is_long && slot != Slot::Absent {
                    *place = size;
                    size += slot.width();
                }
            }
        }
        let list_bytes = 4 + 2 * N;
        match slots.iter().any(|slot| matches!(slot, Slot::Long(_))) {
            true => self.pad(list_bytes, 8, 4),
            false => self.pad(list_bytes, 4, 0),
        }
        self.out.extend_from_slice(&(list_bytes as u16).to_le_bytes());
        self.out.extend_from_slice(&size.to_le_bytes());
        places.iter().for_each(|place| self.out.extend_from_slice(&place.to_le_bytes()));
        let table = self.len();
        self.refer(from);
        self.out.extend_from_slice(&(list_bytes as i32).to_le_bytes());
        self.out.resize(self.out.len() + usize::from(size) - 4, 0);
        let places = places.map(|place| table + usize::from(place));
        for (place, slot) in places.into_iter().zip(slots) {
            match slot {
                Slot::Absent | Slot::Offset => {}
                Slot::Byte(n) => self.put(place, &[n]),
                Slot::Short(n) => self.put(place, &n.to_le_bytes()),
                Slot::Int(n) => self.put(place, &n.to_le_bytes()),
                Slot::Long(n) => self.put(place, &n.to_le_bytes()),
            }
        }
        places
    }

    /// Appends a vector of bytes that `write` appends.
    pub(super) fn bytes(&mut self, from: usize, write: impl FnOnce(&mut Vec<u8>)) {
        self.pad(0, 4, 0);
        self.refer(from);
        let at = self.len();
        self.out.extend_from_slice(&[0; 4]);
        write(self.out);
        let length = self.len() - at - 4;
        self.put(at, &(length as u32).to_le_bytes());
    }

    /// Appends a text.
    pub(super) fn text(&mut self, from: usize, text: &str) {
        self.bytes(from, |out| out.extend_from_slice(text.as_bytes()));
        // A zero ends it, which its length leaves out.
        self.out.push(0);
    }

    /// Appends a vector of numbers of 32 bits.
    pub(super) fn counts(&mut self, from: usize, counts: &[u32]) {
        self.pad(0, 4, 0);
        self.refer(from);
        self.out.extend_from_slice(&(counts.len() as u32).to_le_bytes());
        counts.iter().for_each(|n| self.out.extend_from_slice(&n.to_le_bytes()));
    }

    /// Appends a vector of numbers of 64 bits.
    pub(super) fn floats(&mut self, from: usize, floats: impl Iterator<Item = f64>) {
        // The numbers are aligned, after a length of four bytes.
        self.pad(4, 8, 0);
        self.refer(from);
        let at = self.len();
        self.out.extend_from_slice(&[0; 4]);
        floats.for_each(|x| self.out.extend_from_slice(&x.to_le_bytes()));
        let count = (self.len() - at - 4) / 8;
        self.put(at, &(count as u32).to_le_bytes());
    }

    /// Appends a vector of offsets to objects that are written later. Returns their positions.
    pub(super) fn offsets(&mut self, from: usize, count: usize) -> impl Iterator<Item = usize> + use<> {
        self.counts(from, &vec![0; count]);
        let first = self.len() - 4 * count;
        (0..count).map(move |i| first + 4 * i)
    }
}
