//! How fast records decode: nanoseconds per instruction, and per decoded item (a block, an event or a slot value), on
//! generated records of three shapes, or on the records that are named.
//!
//! `cargo run --release -p fencepost-record --example decode_rate [-- MILLIONS_OF_INSTRUCTIONS | RECORD...]`

use std::sync::Arc;
use std::time::Instant;

use fencepost_record::{
    BlockBuilder, Bytes, CutPolicy, Frame, Info, Problem, Record, RecordError, SlotKind, ThreadId, Writer,
    WriterOptions,
};

const THREAD: ThreadId = ThreadId(0);

/// A small generator of numbers without a pattern (splitmix64).
struct Numbers(u64);

impl Numbers {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// How a generated program picks its next block and its addresses.
#[derive(Clone, Copy, Debug)]
enum Shape {
    /// Loops over arrays: nearly everything is predicted.
    Stream,
    /// Branches and strides that change now and then, with some addresses that nothing predicts.
    Mixed,
    /// Every block and every address is a surprise.
    Random,
}

fn generate(shape: Shape, instructions: u64) -> Result<Vec<u8>, Problem> {
    let mut numbers = Numbers(1);
    let mut writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default())?;
    let mut slot_counts = vec![0];
    for block in 0..2000u64 {
        let length = 2 + numbers.below(7);
        let mut builder = BlockBuilder::at(0x40_0000 + 64 * block);
        let mut slots = 0;
        for instruction in 0..length {
            let has_slot = instruction + 1 < length && numbers.below(5) < 2;
            slots += usize::from(has_slot);
            builder = builder.instruction(&[0x48, 0x8b, 0x07], if has_slot { &[(SlotKind::Load, 8)] } else { &[] });
        }
        slot_counts.push(slots);
        writer.add_block(builder.build())?;
    }
    let bases: Vec<u64> = (0..2001).map(|block| 0x7f00_0000_0000 + (block << 24)).collect();
    let (mut executed, mut block, mut turn) = (0, 1u32, 0u64);
    let mut slots = Vec::new();
    while executed < instructions {
        turn += 1;
        block = match shape {
            Shape::Stream => (turn / 40_000 * 5 + turn % 5) as u32 % 2000 + 1,
            Shape::Mixed if numbers.below(10) < 9 => block % 100 + 1,
            Shape::Mixed => numbers.below(100) as u32 + 1,
            Shape::Random => numbers.below(2000) as u32 + 1,
        };
        slots.clear();
        for slot in 0..slot_counts[block as usize] as u64 {
            let is_random = match shape {
                Shape::Stream => false,
                Shape::Mixed => slot == 1 && numbers.below(2) == 0,
                Shape::Random => true,
            };
            let step = if is_random { numbers.below(1 << 22) * 8 } else { 64 * turn };
            slots.push(bases[block as usize] + (slot << 20) + step);
        }
        writer.execute(THREAD, block, &slots)?;
        executed += writer.program().block(block).instruction_count() as u64;
    }
    writer.seal("exit 0")
}

/// The nanoseconds that decoding takes, and the blocks, events and slot values that it gives. Each frame counts with
/// the shortest of its times in several passes: in the others something else ran on the core.
fn decode(record: &Record) -> Result<(f64, usize), RecordError> {
    let (mut shortest, mut items) = (Vec::new(), 0);
    for pass in 0..8 {
        let mut index = 0;
        for thread in (0..record.threads() as u32).map(ThreadId) {
            let (mut reader, mut frame) = (record.reader(thread), Frame::default());
            loop {
                let begin = Instant::now();
                if !reader.next_frame(&mut frame)? {
                    break;
                }
                let time = begin.elapsed().as_nanos() as f64;
                if pass == 0 {
                    items += frame.steps.len() + frame.slots.len();
                    shortest.push(time);
                } else {
                    shortest[index] = time.min(shortest[index]);
                }
                index += 1;
            }
        }
    }
    Ok((shortest.iter().sum(), items))
}

fn measure(name: &str, bytes: Vec<u8>) -> Result<(), RecordError> {
    let length = bytes.len() as f64;
    let begin = Instant::now();
    let record = Record::open(Arc::new(Bytes::new(name, bytes)), CutPolicy::Allow)?;
    let opened = begin.elapsed().as_nanos() as f64;
    let (decoded, items) = decode(&record)?;
    let (instructions, items) = (record.instructions() as f64, items as f64);
    println!(
        "{name:<7} {instructions:>12} {:>12.3} {:>14.3} {:>16.3} {:>8.3} {:>10.0}",
        length / instructions,
        opened / instructions,
        decoded / instructions,
        decoded / items,
        1e3 * items / decoded,
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    println!("record  instructions  bytes/instr  open ns/instr  decode ns/instr  ns/item  M items/s");
    let millions: u64 = match arguments.first().map(|argument| argument.parse()) {
        None => 50,
        Some(Ok(millions)) => millions,
        Some(Err(_)) => {
            for path in &arguments {
                measure(path, std::fs::read(path)?)?;
            }
            return Ok(());
        }
    };
    for shape in [Shape::Stream, Shape::Mixed, Shape::Random] {
        measure(&format!("{shape:?}"), generate(shape, millions * 1_000_000)?)?;
    }
    Ok(())
}
