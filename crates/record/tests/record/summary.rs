//! The description of a record that `info` prints.

use std::sync::Arc;

use fencepost_record::{
    BlockBuilder, Bytes, Clock, Event, ISA_X86_64, Info, MappingKind, Noted, Protection, SlotKind, Summary, ThreadId,
    Writer, WriterOptions,
};

use super::damage::{frame_places, small_plan};

const CLFLUSH: &[u8] = &[0x0f, 0xae, 0x3f];
const CLWB: &[u8] = &[0x66, 0x0f, 0xae, 0x37];
const MOVNTI: &[u8] = &[0x48, 0x0f, 0xc3, 0x07];
const SFENCE: &[u8] = &[0x0f, 0xae, 0xf8];
const ROI_BEGIN: &[u8] = &[0x0f, 0x1f, 0x84, 0x00, 0x01, 0x00, 0x43, 0x50];
const ROI_END: &[u8] = &[0x0f, 0x1f, 0x84, 0x00, 0x02, 0x00, 0x43, 0x50];

/// What an instruction set says of the instructions above.
pub fn noted(isa: &str, bytes: &[u8]) -> Option<Noted> {
    let persists = [(CLFLUSH, "clflush"), (CLWB, "clwb"), (MOVNTI, "non_temporal_store"), (SFENCE, "sfence")];
    match bytes {
        _ if isa != ISA_X86_64 => None,
        ROI_BEGIN => Some(Noted::BeginsRegion),
        _ => persists.into_iter().find(|(own, _)| *own == bytes).map(|(_, name)| Noted::Persists(name)),
    }
}

fn record() -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default()).unwrap();
    let persist = BlockBuilder::at(0x1000)
        .instruction(CLFLUSH, &[(SlotKind::Flush, 64)])
        .instruction(MOVNTI, &[(SlotKind::Store, 8)])
        .instruction(SFENCE, &[]);
    let persist = writer.add_block(persist.build()).unwrap();
    let region = BlockBuilder::at(0x2000).instruction(ROI_BEGIN, &[]).instruction(CLWB, &[(SlotKind::Flush, 64)]);
    let region = writer.add_block(region.instruction(ROI_END, &[]).build()).unwrap();
    let (one, two) = (ThreadId(0), ThreadId(1));
    let start = |clock, kernel_tid| Event::ThreadStart { clock, kernel_tid, stack_low: 0, stack_high: 0 };
    writer.event(one, &start(Clock(1), 100)).unwrap();
    let map = Event::Map {
        clock: Clock(2),
        start: 0x1000,
        length: 0x1000,
        protection: Protection(5),
        kind: MappingKind::File,
        offset: 0,
        name: "/bin/program".into(),
    };
    writer.event(one, &map).unwrap();
    let module = Event::Module {
        clock: Clock(3),
        base: 0x1000,
        length: 0x1000,
        build_id: Box::new([0xab, 0x01]),
        path: "/bin/program".into(),
    };
    writer.event(one, &module).unwrap();
    for turn in 0..10 {
        writer.execute(one, persist, &[0x8000 + 64 * turn, 0x9000]).unwrap();
    }
    // Interrupted after the flush: the store and the fence did not execute.
    writer.execute(one, persist, &[0x8000, 0]).unwrap();
    writer.event(one, &Event::Interrupted { instructions: 1 }).unwrap();
    writer.event(two, &start(Clock(4), 101)).unwrap();
    writer.execute(two, region, &[0x8000]).unwrap();
    writer.event(two, &Event::MutexLock { clock: Clock(5), object: 64 }).unwrap();
    writer.event(two, &Event::MutexLock { clock: Clock(6), object: 64 }).unwrap();
    writer.event(two, &Event::Roi { begin: true }).unwrap();
    writer.event(two, &Event::SystemCall { number: 1, result: -2 }).unwrap();
    writer.seal("exit 3").unwrap()
}

fn inspect(bytes: Vec<u8>) -> Summary {
    Summary::inspect(Arc::new(Bytes::new("name", bytes)), noted).unwrap()
}

#[test]
fn everything_is_counted_as_often_as_it_executed() {
    let file = record();
    let length = file.len() as u64;
    let summary = inspect(file);
    assert_eq!((summary.problem, summary.ended.how.as_str(), summary.ended.is_sealed), (None, "exit 3", true));
    let persists: Vec<_> = summary.persist_instructions.into_iter().collect();
    assert_eq!(persists, [("clflush", 11), ("clwb", 1), ("non_temporal_store", 10), ("sfence", 10)]);
    assert_eq!(summary.instructions, 10 * 3 + 1 + 3);
    assert_eq!((summary.bytes, summary.bytes_per_instruction), (length, Some(length as f64 / 34.0)));
    let threads: Vec<_> = summary.threads.iter().map(|of| (of.kernel_tid, of.instructions, of.blocks)).collect();
    assert_eq!(threads, [(100, 31, 11), (101, 3, 1)]);
    assert_eq!(summary.regions_of_interest, 2, "one by a marker, one by an event");
    let synchronisation: Vec<_> = summary.synchronisation.into_iter().collect();
    assert_eq!(synchronisation, [("mutex_lock", 2), ("thread_start", 2)]);
    let others: Vec<_> = summary.other_events.into_iter().collect();
    assert_eq!(others, [("interrupted", 1), ("map", 1), ("module", 1), ("roi", 1), ("system_call", 1)]);
    assert_eq!((summary.blocks, summary.frames), (2, 5));
}

/// The path of the thread that executes blocks at these addresses, of which the first of `found` are known before.
fn path(found: &[u64], executed: &[u64]) -> String {
    let mut writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default()).unwrap();
    let ids: Vec<_> = found
        .iter()
        .map(|&address| writer.add_block(BlockBuilder::at(address).instruction(SFENCE, &[]).build()).unwrap())
        .collect();
    for address in executed {
        let id = ids[found.iter().position(|known| known == address).unwrap()];
        writer.execute(ThreadId(0), id, &[]).unwrap();
    }
    inspect(writer.seal("exit 0").unwrap()).threads[0].path.clone()
}

#[test]
fn a_path_is_what_was_executed_in_order_however_it_was_found() {
    let usual = path(&[1, 2, 3], &[1, 2, 1, 3]);
    assert_eq!(usual, path(&[3, 2, 1], &[1, 2, 1, 3]));
    for other in [[1, 1, 2, 3], [1, 2, 1, 2], [1, 3, 1, 2]] {
        assert_ne!(usual, path(&[1, 2, 3], &other));
    }
}

#[test]
fn the_document_names_mappings_and_modules() {
    let json = serde_json::to_value(inspect(record())).unwrap();
    assert_eq!(json["persist_instructions"]["clflush"], 11);
    assert_eq!(json["mappings"][0]["name"], "/bin/program");
    assert_eq!(json["mappings"][0]["kind"], "file");
    assert_eq!(json["mappings"][0]["range"]["end"], 0x2000);
    assert_eq!(json["modules"][0]["build_id"], "ab01");
    assert_eq!(json["info"]["isa"], "x86-64");
    assert_eq!(json["problem"], serde_json::Value::Null);
}

#[test]
fn cut_and_damaged_records_are_described_up_to_there() {
    let plan = small_plan();
    let (file, written) = plan.write(true);
    let places = frame_places(&file);
    let cut = inspect(file[..places[5].offset as usize + 7].to_vec());
    let expected = format!("cut off after 5 whole frames; frame 5 at offset {} is incomplete", places[5].offset);
    assert_eq!((cut.problem, cut.ended.how, cut.ended.is_sealed), (None, expected, false));

    let mut damaged = file.clone();
    damaged[places[5].offset as usize + 50] ^= 4;
    let damaged = inspect(damaged);
    let problem = format!("name: frame 5 at offset {}: the frame is damaged", places[5].offset);
    assert!(damaged.problem.unwrap().starts_with(&problem));
    assert_eq!(damaged.instructions, cut.instructions);
    let whole: u64 = written.iter().map(|thread| thread.instructions).sum();
    assert!(damaged.instructions > 0 && damaged.instructions < whole);
    assert_eq!((damaged.ended.how.as_str(), damaged.ended.is_sealed), ("damaged", false));
    assert!(Summary::inspect(Arc::new(Bytes::new("name", b"FPFRnothing".to_vec())), noted).is_err());
}
