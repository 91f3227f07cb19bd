//! Events as an Arrow IPC stream.

use super::columns::{ColumnEncoder, Extras};
use super::{EventWriter, WriteError};
use arrow_ipc::writer::StreamWriter;
use meridian_model::{Batch, Invalid, Schema, Seq};
use std::sync::Arc;

/// An IPC stream, with a record batch for each batch.
pub(crate) struct ArrowEvents {
    outgoing: ColumnEncoder,
    writer: Option<StreamWriter<Vec<u8>>>,
}

impl ArrowEvents {
    pub(crate) fn new(schema: &Arc<Schema>, properties: Option<&[String]>) -> Result<ArrowEvents, Invalid> {
        Ok(ArrowEvents { outgoing: ColumnEncoder::new(schema, properties, Extras::default())?, writer: None })
    }

    /// Returns the stream's writer, created with the schema at the first use.
    fn writer(&mut self) -> Result<&mut StreamWriter<Vec<u8>>, WriteError> {
        if self.writer.is_none() {
            let writer = StreamWriter::try_new(Vec::new(), self.outgoing.arrow()).map_err(WriteError::of)?;
            self.writer = Some(writer);
        }
        self.writer.as_mut().ok_or_else(|| WriteError::of("the stream is not open"))
    }
}

impl EventWriter for ArrowEvents {
    fn start(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        out.append(self.writer()?.get_mut());
        Ok(())
    }

    fn write(&mut self, batch: &Batch, seqs: &[Seq], out: &mut Vec<u8>) -> Result<(), WriteError> {
        let record = self.outgoing.record_batch(batch, seqs)?;
        let writer = self.writer()?;
        writer.write(&record).map_err(WriteError::of)?;
        out.append(writer.get_mut());
        Ok(())
    }

    fn finish(&mut self, out: &mut Vec<u8>) -> Result<(), WriteError> {
        let writer = self.writer()?;
        writer.finish().map_err(WriteError::of)?;
        out.append(writer.get_mut());
        Ok(())
    }
}
