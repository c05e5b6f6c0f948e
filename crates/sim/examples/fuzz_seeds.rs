//! Writes the first inputs of the fuzz target `record`: small records, one for each kind of content, uncompressed so that a changed byte of a payload changes
//! what is read.
//!
//! `cargo run --example fuzz_seeds -- fuzz/corpus/record`

use std::path::Path;

use fencepost_sim::record::{
    BlockBuilder, Clock, Codec, Event, FutexOutcome, Info, MappingKind, Protection, SlotKind, ThreadId, Writer,
    WriterOptions,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = std::env::args().nth(1).ok_or("usage: seeds FOLDER")?;
    let folder = Path::new(&folder);
    for (name, is_sealed) in [("sealed", true), ("cut", false)] {
        std::fs::write(folder.join(name), record(Codec::Stored, is_sealed)?)?;
    }
    std::fs::write(folder.join("compressed"), record(Codec::Zstd, true)?)?;
    Ok(())
}

/// Two threads that load, store and flush, with values, and events of many kinds between.
fn record(codec: Codec, is_sealed: bool) -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let options = WriterOptions { frame_instructions: 8, frame_bytes: 1000, codec };
    let mut writer = Writer::new(Vec::new(), &Info::default(), options)?;
    let (one, two) = (ThreadId(0), ThreadId(1));
    let loads = BlockBuilder::at(0x1000).instruction(&[0x90; 3], &[(SlotKind::Load, 8)]);
    let loads = writer.add_block(loads.instruction(&[0x90; 2], &[]).build())?;
    let stores = BlockBuilder::at(0x2000).instruction(&[0x90; 4], &[(SlotKind::Store, 8)]);
    let stores = writer.add_block(stores.instruction(&[0x90; 4], &[(SlotKind::Flush, 1)]).build())?;
    writer.event(one, &Event::ThreadStart { clock: Clock(1), kernel_tid: 7, stack_low: 0x7000, stack_high: 0x8000 })?;
    writer.event(
        one,
        &Event::Map {
            clock: Clock(1),
            start: 0x10_000,
            length: 0x20_000,
            protection: Protection(3),
            kind: MappingKind::File,
            offset: 0,
            name: "pool".into(),
        },
    )?;
    for turn in 0..9 {
        writer.execute(one, loads, &[0x10_000 + 8 * turn])?;
    }
    writer.event(one, &Event::ThreadCreate { clock: Clock(2), thread: two })?;
    writer.event(two, &Event::ThreadStart { clock: Clock(3), kernel_tid: 8, stack_low: 0, stack_high: 0 })?;
    writer.event(two, &Event::MutexLock { clock: Clock(4), object: 0x40 })?;
    for turn in 0..5u64 {
        let address = 0x20_000 + 64 * turn;
        writer.execute_with_values(two, stores, &[address, address], &[(0, &turn.to_le_bytes())])?;
    }
    writer.event(two, &Event::MutexUnlock { clock: Clock(5), object: 0x40 })?;
    writer
        .event(two, &Event::FutexWait { clock: Clock(6), object: 0x48, wake: None, outcome: FutexOutcome::TimedOut })?;
    writer.event(two, &Event::SystemCall { number: 1, result: -11 })?;
    writer.event(two, &Event::ThreadExit { clock: Clock(7) })?;
    Ok(if is_sealed { writer.seal("exit 0")? } else { writer.abandon()? })
}
