//! Where a record's bytes come from. The simulator knows no paths: whoever opens a file hands it over as a [`Source`].

use std::io;

/// Random access to the bytes of one record.
///
/// A source does not change while it is read; if it does all the same, the checksums find out.
pub trait Source: Send + Sync {
    /// The name that stands before every message about this record.
    fn name(&self) -> &str;

    /// The length in bytes.
    fn len(&self) -> u64;

    /// Whether there are no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Fills `into` with the bytes from `offset` on.
    ///
    /// # Errors
    /// Any failure of the medium; [`io::ErrorKind::UnexpectedEof`] if the source is shorter than that.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()>;
}

/// A record held in memory.
#[derive(Clone, Debug)]
pub struct Bytes {
    name: String,
    bytes: Vec<u8>,
}

impl Bytes {
    /// Names these bytes.
    pub fn new(name: impl Into<String>, bytes: Vec<u8>) -> Self {
        Self { name: name.into(), bytes }
    }
}

impl Source for Bytes {
    fn name(&self) -> &str {
        &self.name
    }

    fn len(&self) -> u64 {
        self.bytes.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> io::Result<()> {
        let start = usize::try_from(offset).map_err(|_| io::ErrorKind::UnexpectedEof)?;
        let end = start.checked_add(into.len()).ok_or(io::ErrorKind::UnexpectedEof)?;
        let bytes = self.bytes.get(start..end).ok_or(io::ErrorKind::UnexpectedEof)?;
        into.copy_from_slice(bytes);
        Ok(())
    }
}
