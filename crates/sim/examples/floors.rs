//! What a replay cannot be faster than: nanoseconds of the host for each instruction of a record, for decoding it, for
//! looking up its lines in a first-level cache besides, and for computing when each of its micro-operations could start
//! at the earliest (dataflow) besides that.
//!
//! `cargo run --release -p fencepost-sim --example floors -- RECORD...`

use std::fs;
use std::sync::Arc;
use std::time::Instant;

use fencepost_isa::InstructionSet;
use fencepost_isa::micro_op::{DecodedBlock, Operation, Register};
use fencepost_kernel::line::LineAddress;
use fencepost_record::{Bytes, CutPolicy, Frame, Record, RecordError, ThreadId};
use fencepost_sim::cache::array::{CacheArray, Line};

/// How often each measurement is made; the fastest counts.
const PASSES: usize = 5;

/// A first-level cache of 32 KiB and 8 ways, like those of the machines that ship.
fn first_level() -> CacheArray {
    CacheArray::new(32 << 10, 8)
}

fn look_up(cache: &mut CacheArray, address: u64) -> bool {
    let line = LineAddress::containing(address);
    if cache.find_and_touch(line).is_some() {
        return true;
    }
    let place = cache.place_for(line);
    if place.victim.is_some() {
        cache.remove_at(place.index);
    }
    cache.insert_at(place.index, line, Line::default());
    false
}

/// Calls `work` with every frame of every thread; gives the seconds that all of it takes.
fn over_frames(record: &Record, mut work: impl FnMut(&Frame)) -> Result<f64, RecordError> {
    let begin = Instant::now();
    for thread in (0..record.threads() as u32).map(ThreadId) {
        let (mut reader, mut frame) = (record.reader(thread), Frame::default());
        while reader.next_frame(&mut frame)? {
            work(&frame);
        }
    }
    Ok(begin.elapsed().as_secs_f64())
}

/// Calls `work` with every block of a frame and its slots.
fn over_blocks<'a>(frame: &'a Frame, blocks: &'a [DecodedBlock], mut work: impl FnMut(&'a DecodedBlock, &'a [u64])) {
    let mut first = 0;
    for &step in frame.steps.iter().filter(|step| **step != 0) {
        let block = &blocks[step as usize];
        let slots = &frame.slots[first..first + block.slots as usize];
        first += block.slots as usize;
        work(block, slots);
    }
}

fn lookups(record: &Record, blocks: &[DecodedBlock]) -> Result<(f64, u64), RecordError> {
    let (mut cache, mut hits) = (first_level(), 0);
    let seconds = over_frames(record, |frame| {
        over_blocks(frame, blocks, |block, slots| {
            for access in block.warm.accesses.iter().filter(|access| access.size != 0) {
                hits += u64::from(look_up(&mut cache, slots[usize::from(access.slot)]));
            }
        });
    })?;
    Ok((seconds, hits))
}

fn dataflow(record: &Record, blocks: &[DecodedBlock]) -> Result<(f64, u64), RecordError> {
    let (mut cache, mut ready, mut micro_ops, mut last) = (first_level(), [0u64; Register::COUNT], 0, 0);
    let seconds = over_frames(record, |frame| {
        over_blocks(frame, blocks, |block, slots| {
            for micro_op in &block.micro_ops {
                let start = micro_op.sources.iter().map(|source| ready[source.index()]).fold(0, u64::max);
                let is_access = micro_op.size != 0 && micro_op.operation != Operation::String;
                let hit = !is_access || look_up(&mut cache, slots[usize::from(micro_op.slot)]);
                let done = start + if hit { 1 } else { 20 };
                for destination in micro_op.destinations {
                    ready[destination.index()] = done;
                }
                ready[Register::NONE.index()] = 0;
                last = done.max(last);
            }
            micro_ops += block.micro_ops.len() as u64;
        });
    })?;
    assert!(last > 0, "a program takes time");
    Ok((seconds, micro_ops))
}

fn fastest(mut measure: impl FnMut() -> Result<(f64, u64), RecordError>) -> Result<(f64, u64), RecordError> {
    let mut best = measure()?;
    for _ in 1..PASSES {
        let next = measure()?;
        best = if next.0 < best.0 { next } else { best };
    }
    Ok(best)
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("ns per instruction:   decode  + L1 lookups  + dataflow   (million micro-operations a second)");
    for path in std::env::args().skip(1) {
        let record = Record::open(Arc::new(Bytes::new(&path, fs::read(&path)?)), CutPolicy::Refuse)?;
        let blocks = InstructionSet::X86_64.decode(record.program());
        let nanoseconds = |seconds: f64| 1e9 * seconds / record.instructions() as f64;
        let (decoded, _) = fastest(|| Ok((over_frames(&record, |frame| assert!(!frame.steps.is_empty()))?, 0)))?;
        let (looked_up, _) = fastest(|| lookups(&record, &blocks))?;
        let (flowed, micro_ops) = fastest(|| dataflow(&record, &blocks))?;
        println!(
            "{path:<20} {:>8.2} {:>13.2} {:>11.2} {:>12.0}",
            nanoseconds(decoded),
            nanoseconds(looked_up),
            nanoseconds(flowed),
            micro_ops as f64 / flowed / 1e6
        );
    }
    Ok(())
}
