//! The frames that a record's file consists of: header, checksum, compression, and the footer that ends a sealed
//! record.

use xxhash_rust::xxh64::{Xxh64, xxh64};

use super::error::Problem;

/// The format version that is written.
pub const VERSION: u16 = 5;

/// The oldest one that is read, and the first in which the turns of all threads are one order.
pub const VERSION_OLDEST: u16 = 5;

/// What every frame begins with.
pub const MAGIC: [u8; 4] = *b"FPFR";

/// Length of a frame header, in bytes.
pub const HEADER_BYTES: usize = 48;

/// Longest payload after decompression, in bytes.
pub const RAW_BYTES_MAX: u32 = 64 << 20;

/// Longest payload in the file, in bytes: zstd's bound for a payload of [`RAW_BYTES_MAX`] that does not compress.
pub const STORED_BYTES_MAX: u32 = RAW_BYTES_MAX + (RAW_BYTES_MAX >> 8) + 64;

/// Most architectural instructions in one TRACE frame: where a recorder ends one, and a block that it had begun. It
/// bounds a reader's memory.
pub const FRAME_INSTRUCTIONS_MAX: u64 = (1 << 22) + (1 << 16);

/// Longest payload of the INFO frame, in bytes: several times what a kernel takes as arguments.
pub const INFO_BYTES_MAX: u32 = 16 << 20;

/// Largest number of threads in a record.
pub const THREADS_MAX: u32 = 1 << 20;

/// Offset of the checksum in the header: it covers what stands before it, and the payload.
const CHECKED_HEADER_BYTES: usize = 40;

/// What a frame holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FrameKind {
    /// What was recorded, by what.
    Info = 1,
    /// Static blocks.
    Code = 2,
    /// What one thread did for a while.
    Trace = 3,
    /// How the program ended, and the index.
    Seal = 4,
    /// What a replay leaves out of a TRACE frame and puts in, where threads took turns.
    Order = 5,
    /// The same of a TRACE frame of a tree, in the record of its first process.
    TreeOrder = 6,
}

/// How a payload is stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Codec {
    /// As it is.
    Stored = 0,
    /// As one zstd frame that says its content's size.
    Zstd = 1,
}

/// The header of a frame; the fields are those of the format page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameHeader {
    /// The format version, from [`VERSION_OLDEST`] to [`VERSION`].
    pub version: u16,
    /// What the payload holds.
    pub kind: FrameKind,
    /// How the payload is stored.
    pub codec: Codec,
    /// TRACE and ORDER: the dense thread id; of a tree's order, that in the tree.
    pub thread: u32,
    /// All but INFO and SEAL: number of the frame among its like.
    pub sequence: u32,
    /// TRACE: instructions; CODE: blocks.
    pub instructions: u64,
    /// TRACE: instructions of the thread before; CODE: id of the first block; of a tree's order: the hash of the
    /// children's records.
    pub position: u64,
    /// Length of the payload in the file.
    pub stored_bytes: u32,
    /// Length of the payload after decompression.
    pub raw_bytes: u32,
    /// XXH64 of the header before the checksum, and of the stored payload.
    pub checksum: u64,
}

impl FrameHeader {
    /// Reads a header and checks every field that has a limit of its own. Whether its bytes are what was written only
    /// the checksum tells.
    ///
    /// # Errors
    /// What does not fit the format, in the order of the fields.
    pub fn parse(bytes: &[u8; HEADER_BYTES]) -> Result<Self, Problem> {
        if bytes[..4] != MAGIC {
            return Err(Problem::Damaged("its magic is not `FPFR`"));
        }
        let version = u16::from_le_bytes([bytes[4], bytes[5]]);
        if version < VERSION_OLDEST {
            return Err(Problem::OldVersion { found: version });
        }
        if version > VERSION {
            return Err(Problem::LaterVersion { found: version });
        }
        let kind = match bytes[6] {
            1 => FrameKind::Info,
            2 => FrameKind::Code,
            3 => FrameKind::Trace,
            4 => FrameKind::Seal,
            5 => FrameKind::Order,
            6 => FrameKind::TreeOrder,
            _ => return Err(Problem::Damaged("there is no such kind of frame")),
        };
        let codec = match bytes[7] {
            0 => Codec::Stored,
            1 => Codec::Zstd,
            _ => return Err(Problem::Damaged("there is no such codec")),
        };
        let header = Self {
            version,
            kind,
            codec,
            thread: u32_at(bytes, 8),
            sequence: u32_at(bytes, 12),
            instructions: u64_at(bytes, 16),
            position: u64_at(bytes, 24),
            stored_bytes: u32_at(bytes, 32),
            raw_bytes: u32_at(bytes, 36),
            checksum: u64_at(bytes, CHECKED_HEADER_BYTES),
        };
        header.check_limits()?;
        Ok(header)
    }

    fn check_limits(&self) -> Result<(), Problem> {
        Problem::check_limit("the length of its payload", self.raw_bytes.into(), RAW_BYTES_MAX.into())?;
        Problem::check_limit("the stored length of its payload", self.stored_bytes.into(), STORED_BYTES_MAX.into())?;
        if self.codec == Codec::Stored && self.stored_bytes != self.raw_bytes {
            return Err(Problem::Damaged("a stored payload has two lengths"));
        }
        if self.kind == FrameKind::Info {
            Problem::check_limit("the length of its payload", self.raw_bytes.into(), INFO_BYTES_MAX.into())?;
        }
        if self.kind == FrameKind::Trace {
            Problem::check_limit("the thread", self.thread.into(), u64::from(THREADS_MAX) - 1)?;
            Problem::check_limit("the number of instructions", self.instructions, FRAME_INSTRUCTIONS_MAX)?;
        }
        Ok(())
    }

    /// The header as it stands in the file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[..4].copy_from_slice(&MAGIC);
        bytes[4..6].copy_from_slice(&self.version.to_le_bytes());
        bytes[6] = self.kind as u8;
        bytes[7] = self.codec as u8;
        bytes[8..12].copy_from_slice(&self.thread.to_le_bytes());
        bytes[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.instructions.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.position.to_le_bytes());
        bytes[32..36].copy_from_slice(&self.stored_bytes.to_le_bytes());
        bytes[36..40].copy_from_slice(&self.raw_bytes.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.checksum.to_le_bytes());
        bytes
    }

    /// A hash that has taken in the checked part of the header; the stored payload comes next.
    #[must_use]
    pub fn begin_checksum(&self) -> Xxh64 {
        let mut hash = Xxh64::new(0);
        hash.update(&self.to_bytes()[..CHECKED_HEADER_BYTES]);
        hash
    }

    /// Whether the checksum fits this header and `payload`, as stored.
    #[must_use]
    pub fn fits(&self, payload: &[u8]) -> bool {
        let mut hash = self.begin_checksum();
        hash.update(payload);
        hash.digest() == self.checksum
    }

    /// Length of header and payload in the file, in bytes.
    #[must_use]
    pub fn frame_bytes(&self) -> u64 {
        HEADER_BYTES as u64 + u64::from(self.stored_bytes)
    }
}

/// Decompresses payloads; keeps zstd's working memory between frames.
#[derive(Default)]
pub(super) struct Decompressor {
    zstd: Option<zstd::bulk::Decompressor<'static>>,
}

impl Decompressor {
    /// Puts the payload that `stored` holds into `raw`, whose length is `header.raw_bytes` afterwards.
    pub(super) fn unpack(&mut self, header: &FrameHeader, stored: &[u8], raw: &mut Vec<u8>) -> Result<(), Problem> {
        raw.clear();
        if header.codec == Codec::Stored {
            raw.extend_from_slice(stored);
            return Ok(());
        }
        let expected = header.raw_bytes as usize;
        match zstd::zstd_safe::get_frame_content_size(stored) {
            Ok(Some(size)) if size == u64::from(header.raw_bytes) => {}
            _ => return Err(Problem::Malformed("its compressed payload says another length than its header")),
        }
        let zstd = match &mut self.zstd {
            Some(zstd) => zstd,
            None => self.zstd.insert(zstd::bulk::Decompressor::new()?),
        };
        raw.reserve(expected + super::varint::PADDING);
        match zstd.decompress_to_buffer(stored, raw) {
            Ok(length) if length == expected => Ok(()),
            _ => Err(Problem::Malformed("its payload does not decompress")),
        }
    }
}

/// Compresses a payload and puts its frame, checksum included, behind what `file` holds.
pub(super) fn pack(mut header: FrameHeader, raw: &[u8], file: &mut Vec<u8>) -> Result<FrameHeader, Problem> {
    let raw_bytes = u32::try_from(raw.len()).unwrap_or(u32::MAX);
    Problem::check_limit("the length of its payload", raw_bytes.into(), RAW_BYTES_MAX.into())?;
    let compressed;
    let stored = match header.codec {
        Codec::Stored => raw,
        Codec::Zstd => {
            compressed = zstd::bulk::compress(raw, zstd::DEFAULT_COMPRESSION_LEVEL)?;
            &compressed
        }
    };
    header.raw_bytes = raw_bytes;
    header.stored_bytes = stored.len() as u32;
    let mut hash = header.begin_checksum();
    hash.update(stored);
    header.checksum = hash.digest();
    file.extend_from_slice(&header.to_bytes());
    file.extend_from_slice(stored);
    Ok(header)
}

/// Length of the footer, in bytes.
pub const FOOTER_BYTES: usize = 32;

const FOOTER_MAGIC: [u8; 8] = *b"FPRECEND";

/// The last bytes of a sealed record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Footer {
    /// Offset of the SEAL frame.
    pub seal_offset: u64,
    /// Length of the file, footer included.
    pub file_bytes: u64,
}

impl Footer {
    /// The footer in these bytes; `None` if they are none, or a damaged one.
    #[must_use]
    pub fn parse(bytes: &[u8; FOOTER_BYTES]) -> Option<Self> {
        let is_whole = bytes[..8] == FOOTER_MAGIC && u64_at(bytes, 24) == xxh64(&bytes[..24], 0);
        is_whole.then(|| Self { seal_offset: u64_at(bytes, 8), file_bytes: u64_at(bytes, 16) })
    }

    /// The footer as it stands in the file.
    #[must_use]
    pub fn to_bytes(self) -> [u8; FOOTER_BYTES] {
        let mut bytes = [0; FOOTER_BYTES];
        bytes[..8].copy_from_slice(&FOOTER_MAGIC);
        bytes[8..16].copy_from_slice(&self.seal_offset.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.file_bytes.to_le_bytes());
        let checksum = xxh64(&bytes[..24], 0);
        bytes[24..].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }
}

fn u32_at(bytes: &[u8], offset: usize) -> u32 {
    let mut field = [0; 4];
    field.copy_from_slice(&bytes[offset..offset + 4]);
    u32::from_le_bytes(field)
}

fn u64_at(bytes: &[u8], offset: usize) -> u64 {
    let mut field = [0; 8];
    field.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(field)
}
