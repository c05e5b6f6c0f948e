//! Writes the first inputs of the fuzz targets `record` and `crash`: small records, one for each kind of content,
//! uncompressed so that a changed byte of a payload changes what is read.
//!
//! `cargo run --example fuzz_seeds -- fuzz/corpus/record fuzz/corpus/crash`

use std::path::Path;

use fencepost_record::{
    BlockBuilder, Clock, Codec, Event, FutexOutcome, Info, MappingKind, PersistCall, Protection, SlotKind, ThreadId,
    Writer, WriterOptions,
};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut folders = std::env::args().skip(1);
    let (Some(folder), Some(of_crash)) = (folders.next(), folders.next()) else {
        return Err("usage: fuzz_seeds FOLDER FOLDER-OF-CRASH".into());
    };
    std::fs::write(Path::new(&of_crash).join("persists"), persists()?)?;
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

/// A thread that stores to a pool, flushes and fences, with what the pool held and what the kernel wrote.
fn persists() -> Result<Vec<u8>, Box<dyn std::error::Error>> {
    let options = WriterOptions { frame_instructions: 64, frame_bytes: 4000, codec: Codec::Stored };
    let mut writer = Writer::new(Vec::new(), &Info::default(), options)?;
    let one = ThreadId(0);
    // mov [rax], rcx; clwb [rax]; sfence
    let store = BlockBuilder::at(0x1000).instruction(&[0x48, 0x89, 0x08], &[(SlotKind::Store, 8)]);
    let store = writer.add_block(store.build())?;
    let flush = BlockBuilder::at(0x2000).instruction(&[0x66, 0x0f, 0xae, 0x30], &[(SlotKind::Flush, 1)]);
    let flush = writer.add_block(flush.instruction(&[0x0f, 0xae, 0xf8], &[]).build())?;
    let (clock, pool) = (Clock(1), 0x10_000);
    writer.event(one, &Event::ThreadStart { clock, kernel_tid: 7, stack_low: 0x7000, stack_high: 0x8000 })?;
    let (protection, kind, name) = (Protection(3), MappingKind::File, "pool".into());
    writer
        .event(one, &Event::Map { clock: Clock(2), start: pool, length: 0x2000, protection, kind, offset: 0, name })?;
    writer.event(one, &Event::InitialBytes { address: pool, bytes: Box::new([9; 32]) })?;
    for turn in 0..6u64 {
        let address = pool + 56 * turn;
        writer.execute_with_values(one, store, &[address], &[(0, &(turn + 1).to_le_bytes())])?;
        if turn % 2 == 1 {
            writer.execute(one, flush, &[address])?;
        }
    }
    writer.event(one, &Event::KernelWrite { address: pool + 8, bytes: Box::new([7; 8]) })?;
    let call = PersistCall::Msync;
    writer.event(one, &Event::PersistCall { clock: Clock(3), call, start: pool, length: 0x1000 })?;
    writer.execute_with_values(one, store, &[pool], &[(0, &[5; 8])])?;
    writer.event(one, &Event::ThreadExit { clock: Clock(4) })?;
    Ok(writer.seal("exit 0")?)
}
