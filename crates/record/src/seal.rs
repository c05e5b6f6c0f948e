//! The SEAL frame: how the program ended, and the index of all frames before.

use super::error::Problem;
use super::frame::FrameHeader;
use super::varint::{Fields, encode, encode_bytes};
use super::wait_limits::{LimitMet, WaitLimit};

/// What the launcher adds when the program has ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seal {
    /// How the program ended, such as `exit 0`.
    pub(super) ended: String,
    /// Threads whose last buffer was lost because the process was killed.
    pub(super) lost: u64,
    /// All frames before the seal.
    pub(super) frames: Vec<IndexEntry>,
    /// The limits that the recorder has met, in the order of their numbers.
    pub(super) limits: Vec<LimitMet>,
}

/// A frame as the index names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct IndexEntry {
    pub(super) kind: u8,
    pub(super) thread: u32,
    pub(super) offset: u64,
    pub(super) instructions: u64,
}

impl IndexEntry {
    pub(super) fn new(header: &FrameHeader, offset: u64) -> Self {
        Self { kind: header.kind as u8, thread: header.thread, offset, instructions: header.instructions }
    }
}

impl Seal {
    /// The seal behind the frames that `index` names.
    pub(super) fn decode(payload: &[u8], index: &[IndexEntry]) -> Result<Self, Problem> {
        const OTHER_FRAMES: Problem = Problem::Malformed("its index is not that of the frames before it");
        let mut fields = Fields::new(payload);
        let ended = super::text::escaped(fields.bytes()?);
        let lost = fields.varint()?;
        if fields.varint()? != index.len() as u64 {
            return Err(OTHER_FRAMES);
        }
        let mut frames = Vec::with_capacity(index.len());
        let mut offset = 0u64;
        for _ in index {
            let kind = fields.u8()?;
            let thread = fields.varint_up_to(u32::MAX.into(), "the thread of a frame")? as u32;
            offset = offset
                .checked_add(fields.varint()?)
                .ok_or(Problem::Malformed("the offset of a frame is beyond 64 bits"))?;
            let instructions = fields.varint()?;
            frames.push(IndexEntry { kind, thread, offset, instructions });
        }
        if frames != index {
            return Err(OTHER_FRAMES);
        }
        let limits = decode_limits(&mut fields)?;
        Ok(Self { ended, lost, frames, limits })
    }

    pub(super) fn encode(&self) -> Vec<u8> {
        let mut payload = Vec::new();
        encode_bytes(&mut payload, self.ended.as_bytes());
        encode(&mut payload, self.lost);
        encode(&mut payload, self.frames.len() as u64);
        let mut previous = 0;
        for frame in &self.frames {
            payload.push(frame.kind);
            encode(&mut payload, frame.thread.into());
            encode(&mut payload, frame.offset - previous);
            encode(&mut payload, frame.instructions);
            previous = frame.offset;
        }
        for met in &self.limits {
            encode(&mut payload, met.limit.number());
            encode(&mut payload, met.times);
        }
        payload
    }
}

/// Each limit once, up to the end of the seal.
fn decode_limits(fields: &mut Fields<'_>) -> Result<Vec<LimitMet>, Problem> {
    let mut limits: Vec<LimitMet> = Vec::new();
    while !fields.is_at_end() {
        let met = LimitMet { limit: WaitLimit::numbered(fields.varint()?), times: fields.varint()? };
        let before = limits.last().map_or(WaitLimit::numbered(0), |before| before.limit);
        if met.limit <= before || met.times == 0 {
            return Err(Problem::Malformed("what follows its last entry is no limit that was met"));
        }
        limits.push(met);
    }
    Ok(limits)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WORDS: LimitMet = LimitMet { limit: WaitLimit::numbered(1), times: 1 };
    const ROUNDS: LimitMet = LimitMet { limit: WaitLimit::numbered(5), times: 300 };

    fn seal(limits: &[LimitMet]) -> Seal {
        Seal { ended: "exit 0".into(), lost: 0, frames: vec![], limits: limits.to_vec() }
    }

    #[test]
    fn limits_that_were_met_are_read_as_they_were_written() {
        let unknown = LimitMet { limit: WaitLimit::numbered(90), times: 2 };
        for limits in [&[][..], &[WORDS], &[WORDS, ROUNDS], &[WORDS, unknown]] {
            assert_eq!(Seal::decode(&seal(limits).encode(), &[]), Ok(seal(limits)));
        }
    }

    #[test]
    fn what_is_no_limit_is_refused() {
        let never = LimitMet { times: 0, ..WORDS };
        for limits in [&[ROUNDS, WORDS][..], &[WORDS, WORDS], &[never]] {
            assert!(Seal::decode(&seal(limits).encode(), &[]).is_err(), "{limits:?}");
        }
        let zero = LimitMet { limit: WaitLimit::numbered(0), times: 1 };
        assert!(Seal::decode(&seal(&[zero]).encode(), &[]).is_err());
    }
}
