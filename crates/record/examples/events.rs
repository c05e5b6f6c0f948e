//! Prints what a thread of a record comes to, as a replay sees it.
//!
//! `cargo run -p fencepost-record --example events -- RECORD THREAD [blocks]`

use std::sync::Arc;

use fencepost_record::{Bytes, CutPolicy, Frame, Record, ThreadId};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let source = Arc::new(Bytes::new(arguments[0].clone(), std::fs::read(&arguments[0])?));
    let record = Record::open(source, CutPolicy::Allow)?;
    let mut reader = record.reader(ThreadId(arguments[1].parse()?));
    let shows_blocks = arguments.len() > 2;
    let mut frame = Frame::default();
    let (mut number, mut instructions) = (0u64, 0u64);
    while reader.next_frame(&mut frame)? {
        let mut events = frame.events.iter();
        let mut slot = 0;
        for &id in &frame.steps {
            if id == 0 {
                println!("{number} @{instructions} {:?}", events.next().ok_or("an event is missing")?);
            } else {
                let block = record.program().block(id);
                instructions += block.instruction_count() as u64;
                if shows_blocks {
                    let values: Vec<String> = frame.slots[slot..slot + block.slots.len()]
                        .iter()
                        .zip(&block.slots)
                        .map(|(value, slot)| format!("{:?} {value:x}", slot.kind))
                        .collect();
                    println!("{number} block {id} at {:x}: {}", block.address, values.join(", "));
                }
                slot += block.slots.len();
            }
            number += 1;
        }
    }
    Ok(())
}
