//! Walks a whole record once, from its first frame to its last, and believes nothing that a checksum does not cover.

use std::sync::Arc;

use xxhash_rust::xxh64::Xxh64;

use super::code::{Program, code_bytes_max};
use super::error::{FramePlace, Problem, RecordError};
use super::frame::{Decompressor, FOOTER_BYTES, Footer, FrameHeader, FrameKind, HEADER_BYTES, MAGIC, STORED_BYTES_MAX};
use super::info::Info;
use super::seal::{IndexEntry, Seal};
use super::source::Source;

/// What a walk found, up to where it ended.
pub(super) struct Scan {
    pub(super) info: Option<Info>,
    pub(super) program: Program,
    /// The TRACE frames of each thread, in order.
    pub(super) threads: Vec<Vec<TraceFrame>>,
    /// The ORDER frames of each thread, likewise.
    pub(super) orders: Vec<Vec<TraceFrame>>,
    pub(super) tree_order: TreeOrder,
    pub(super) seal: Option<Seal>,
    seal_offset: u64,
    /// Over the checksums of all whole frames.
    pub(super) hash: Xxh64,
    /// All frames but the seal.
    index: Vec<IndexEntry>,
    code_frames: u32,
    /// Of all CODE payloads so far, decompressed and as stored.
    code_bytes: u64,
    stored_code_bytes: u64,
    decompressor: Decompressor,
    raw: Vec<u8>,
}

/// A TRACE or an ORDER frame whose checksum fitted when the record was opened.
#[derive(Clone, Copy, Debug)]
pub(super) struct TraceFrame {
    pub(super) header: FrameHeader,
    pub(super) place: FramePlace,
}

/// The order of the tree of which the record is the first process's, found when it was recorded.
#[derive(Default)]
pub(super) struct TreeOrder {
    /// The hash of the children's records.
    pub(super) children: u64,
    /// The frames of each thread of the tree, in order.
    pub(super) threads: Vec<Vec<TraceFrame>>,
}

/// Where and why a walk ended.
pub(super) enum ScanEnd {
    /// At the footer.
    Sealed,
    /// Where the file ends; what stands there is the beginning of a frame, or of the footer.
    Cut { whole_frames: u64, incomplete: Option<FramePlace> },
    /// At something that no recorder wrote.
    Refused(RecordError),
}

/// Walks `source`.
pub(super) fn scan(source: &Arc<dyn Source>) -> (Scan, ScanEnd) {
    let mut scan = Scan {
        info: None,
        program: Program::default(),
        threads: Vec::new(),
        orders: Vec::new(),
        tree_order: TreeOrder::default(),
        seal: None,
        seal_offset: 0,
        hash: Xxh64::new(0),
        index: Vec::new(),
        code_frames: 0,
        code_bytes: 0,
        stored_code_bytes: 0,
        decompressor: Decompressor::default(),
        raw: Vec::new(),
    };
    let walker = Walker { source: source.as_ref(), length: source.len() };
    let end = walker.walk(&mut scan).unwrap_or_else(ScanEnd::Refused);
    (scan, end)
}

struct Walker<'a> {
    source: &'a dyn Source,
    length: u64,
}

impl Walker<'_> {
    fn walk(&self, scan: &mut Scan) -> Result<ScanEnd, RecordError> {
        self.check_begin().map_err(|problem| self.refuse(None, problem))?;
        let footer = self.footer().map_err(|problem| self.refuse(None, problem))?;
        let frames_end = if footer.is_some() { self.length - FOOTER_BYTES as u64 } else { self.length };
        let mut place = FramePlace { number: 0, offset: 0 };
        let mut payload = Vec::new();
        while place.offset < frames_end && scan.seal.is_none() {
            let frame = self.read_frame(place.offset, frames_end, &mut payload);
            let of_frame = |problem: &Problem| (place.number > 0 || !problem.is_of_all_frames()).then_some(place);
            let Some(header) = frame.map_err(|problem| self.refuse(of_frame(&problem), problem))? else {
                if footer.is_some() {
                    return Err(self.refuse(Some(place), Problem::Damaged("it runs into the end of the record")));
                }
                self.check_incomplete(place).map_err(|problem| self.refuse(Some(place), problem))?;
                return Ok(ScanEnd::Cut { whole_frames: place.number, incomplete: Some(place) });
            };
            scan.take_in(&header, &payload, place).map_err(|problem| self.refuse(Some(place), problem))?;
            place = FramePlace { number: place.number + 1, offset: place.offset + header.frame_bytes() };
        }
        let is_whole = self.check_end(scan, footer, place.offset).map_err(|problem| self.refuse(None, problem))?;
        Ok(if is_whole { ScanEnd::Sealed } else { ScanEnd::Cut { whole_frames: place.number, incomplete: None } })
    }

    fn refuse(&self, frame: Option<FramePlace>, problem: Problem) -> RecordError {
        RecordError { record: self.source.name().to_string(), frame, problem }
    }

    fn check_begin(&self) -> Result<(), Problem> {
        let mut begin = [0; MAGIC.len()];
        let known = (self.length as usize).min(MAGIC.len());
        self.source.read_at(0, &mut begin[..known])?;
        match known {
            0 => Err(Problem::NotARecord("it is empty")),
            _ if begin[..known] != MAGIC[..known] => Err(Problem::NotARecord("it does not begin with `FPFR`")),
            _ => Ok(()),
        }
    }

    fn footer(&self) -> Result<Option<Footer>, Problem> {
        let Some(offset) = self.length.checked_sub(FOOTER_BYTES as u64) else { return Ok(None) };
        let mut bytes = [0; FOOTER_BYTES];
        self.source.read_at(offset, &mut bytes)?;
        match Footer::parse(&bytes) {
            Some(footer) if footer.file_bytes != self.length => {
                Err(Problem::DamagedEnd("its footer says another length than the file's"))
            }
            footer => Ok(footer),
        }
    }

    /// The frame at `offset`, its stored payload in `payload`; `None` if it is not whole.
    fn read_frame(&self, offset: u64, end: u64, payload: &mut Vec<u8>) -> Result<Option<FrameHeader>, Problem> {
        let remaining = end - offset;
        if remaining < HEADER_BYTES as u64 {
            return Ok(None);
        }
        let mut bytes = [0; HEADER_BYTES];
        self.source.read_at(offset, &mut bytes)?;
        let header = FrameHeader::parse(&bytes)?;
        if header.frame_bytes() > remaining {
            return Ok(None);
        }
        payload.resize(header.stored_bytes as usize, 0);
        self.source.read_at(offset + HEADER_BYTES as u64, payload)?;
        if !header.fits(payload) {
            return Err(Problem::Damaged("its checksum does not fit its bytes"));
        }
        Ok(Some(header))
    }

    /// An unsealed record ends within a frame, or so it says. If its length field is damaged, this finds the rest of
    /// the record where its payload should be.
    fn check_incomplete(&self, place: FramePlace) -> Result<(), Problem> {
        // Longer than any frame cannot be: then the header would have been refused.
        let remaining = (self.length - place.offset).min(HEADER_BYTES as u64 + u64::from(STORED_BYTES_MAX));
        let mut rest = vec![0; remaining as usize];
        self.source.read_at(place.offset, &mut rest)?;
        let Some((header, payload)) = rest.split_first_chunk::<HEADER_BYTES>() else { return Ok(()) };
        let header = FrameHeader { stored_bytes: payload.len() as u32, ..FrameHeader::parse(header)? };
        let is_whole_after_all = header.fits(payload);
        if is_whole_after_all || find_frame(payload) {
            return Err(Problem::Damaged("the length that its header says is not its own"));
        }
        Ok(())
    }

    /// Checks what follows the frames, which end at `end`. Whether the record is sealed.
    fn check_end(&self, scan: &Scan, footer: Option<Footer>, end: u64) -> Result<bool, Problem> {
        let after = self.length - end;
        match (&scan.seal, footer) {
            (None, None) => Ok(false),
            (None, Some(_)) => Err(Problem::DamagedEnd("it has a footer and no SEAL frame")),
            (Some(_), None) if after < FOOTER_BYTES as u64 => Ok(false),
            (Some(_), None) => Err(Problem::DamagedEnd("what follows the SEAL frame is no footer")),
            (Some(_), Some(footer)) => {
                if after != FOOTER_BYTES as u64 || scan.seal_offset != footer.seal_offset {
                    return Err(Problem::DamagedEnd("its footer does not fit the SEAL frame before it"));
                }
                Ok(true)
            }
        }
    }
}

/// Whether a whole frame stands somewhere in `bytes`.
fn find_frame(bytes: &[u8]) -> bool {
    (0..bytes.len()).any(|start| {
        bytes[start..].starts_with(&MAGIC)
            && bytes[start..].split_first_chunk::<HEADER_BYTES>().is_some_and(|(header, rest)| {
                FrameHeader::parse(header).is_ok_and(|header| {
                    rest.get(..header.stored_bytes as usize).is_some_and(|payload| header.fits(payload))
                })
            })
    })
}

impl Scan {
    /// A whole frame whose checksum fits.
    fn take_in(&mut self, header: &FrameHeader, payload: &[u8], place: FramePlace) -> Result<(), Problem> {
        if (header.kind == FrameKind::Info) != (place.number == 0) {
            return Err(Problem::Malformed("the first frame, and only the first, holds the information"));
        }
        let unused = match header.kind {
            FrameKind::Trace => false,
            FrameKind::Code => header.thread != 0,
            FrameKind::Order => (header.instructions, header.position) != (0, 0),
            FrameKind::TreeOrder => header.instructions != 0,
            FrameKind::Info | FrameKind::Seal => {
                (header.thread, header.sequence, header.instructions, header.position) != (0, 0, 0, 0)
            }
        };
        if unused {
            return Err(Problem::Malformed("a field of its header that has no meaning there is not 0"));
        }
        if self.info.as_ref().is_some_and(|info| info.format_version != u32::from(header.version)) {
            return Err(Problem::Malformed("its format version is not that of the record"));
        }
        match header.kind {
            FrameKind::Trace => self.take_in_trace(header, place)?,
            FrameKind::Order => self.take_in_order(header, place)?,
            FrameKind::TreeOrder => self.tree_order.take_in(header, place)?,
            FrameKind::Info => {
                self.unpack(header, payload)?;
                self.info = Some(Info::decode(&self.raw, header.version)?);
            }
            FrameKind::Code => self.take_in_code(header, payload)?,
            FrameKind::Seal => {
                self.unpack(header, payload)?;
                let seal = Seal::decode(&self.raw, &self.index)?;
                (self.seal, self.seal_offset) = (Some(seal), place.offset);
            }
        }
        if header.kind != FrameKind::Seal {
            self.index.push(IndexEntry::new(header, place.offset));
        }
        self.hash.update(&header.checksum.to_le_bytes());
        Ok(())
    }

    fn unpack(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), Problem> {
        self.decompressor.unpack(header, payload, &mut self.raw)
    }

    fn take_in_trace(&mut self, header: &FrameHeader, place: FramePlace) -> Result<(), Problem> {
        let thread = header.thread as usize;
        if self.threads.len() <= thread {
            self.threads.resize_with(thread + 1, Vec::new);
        }
        let frames = &mut self.threads[thread];
        let before = frames.last().map_or(0, |frame| frame.header.position + frame.header.instructions);
        if header.sequence as usize != frames.len() || header.position != before {
            return Err(Problem::Malformed("it does not continue the frame of its thread before it"));
        }
        frames.push(TraceFrame { header: *header, place });
        Ok(())
    }

    fn take_in_order(&mut self, header: &FrameHeader, place: FramePlace) -> Result<(), Problem> {
        let thread = header.thread as usize;
        let traces = self.threads.get(thread).map_or(0, Vec::len);
        if self.orders.len() <= thread && traces > 0 {
            self.orders.resize_with(thread + 1, Vec::new);
        }
        let Some(orders) = self.orders.get_mut(thread).filter(|orders| orders.len() < traces) else {
            return Err(Problem::Malformed("it is of a TRACE frame that is not there"));
        };
        if header.sequence as usize != orders.len() {
            return Err(Problem::Malformed("it does not continue the ORDER frame of its thread before it"));
        }
        orders.push(TraceFrame { header: *header, place });
        Ok(())
    }

    fn take_in_code(&mut self, header: &FrameHeader, payload: &[u8]) -> Result<(), Problem> {
        self.code_bytes += u64::from(header.raw_bytes);
        self.stored_code_bytes += u64::from(header.stored_bytes);
        let limit = code_bytes_max(self.stored_code_bytes);
        Problem::check_limit("the decompressed length of all code so far", self.code_bytes, limit)?;
        if header.sequence != self.code_frames {
            return Err(Problem::Malformed("it does not continue the CODE frame before it"));
        }
        self.code_frames += 1;
        self.unpack(header, payload)?;
        self.program.decode(&self.raw, header.position, header.instructions)
    }

    /// Number of whole frames, the seal among them.
    pub(super) fn frames(&self) -> u64 {
        self.index.len() as u64 + u64::from(self.seal.is_some())
    }
}

impl TreeOrder {
    fn take_in(&mut self, header: &FrameHeader, place: FramePlace) -> Result<(), Problem> {
        if self.threads.is_empty() {
            self.children = header.position;
        }
        if header.thread as usize == self.threads.len() {
            self.threads.push(Vec::new());
        }
        let is_next = |frames: &&mut Vec<TraceFrame>| frames.len() == header.sequence as usize;
        let frames = self.threads.get_mut(header.thread as usize).filter(is_next);
        let Some(frames) = frames.filter(|_| header.position == self.children) else {
            return Err(Problem::Malformed("it does not continue the frame of the tree's order before it"));
        };
        frames.push(TraceFrame { header: *header, place });
        Ok(())
    }
}
