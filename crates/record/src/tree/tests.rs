use std::path::Path;
use std::sync::Arc;

use super::{path_of_child, path_of_first};
use crate::event::{MappingKind, Protection};
use crate::{
    BlockBuilder, Bytes, Clock, CutPolicy, Event, Frame, Info, Record, RecordError, SlotKind, ThreadId, Writer,
    WriterOptions,
};

const PAGE: u64 = 4096;
const OBJECT: u64 = 5;
const FIRST: ThreadId = ThreadId(0);
const CHILD: ThreadId = ThreadId(1);

/// One process that is written, whose events say when they were.
struct Process {
    writer: Writer<Vec<u8>>,
}

impl Process {
    fn new(process: Option<u64>) -> Self {
        let info = Info { process, parent: process.map(|_| 0), ..Info::default() };
        Self { writer: Writer::new(Vec::new(), &info, WriterOptions::default()).expect("a writer") }
    }

    fn clock(&mut self, at: u64) -> Clock {
        while self.writer.tick() < Clock(at) {}
        Clock(at)
    }

    fn block(&mut self, address: u64, bytes: &[&[u8]], slots: &[(SlotKind, u16)]) -> u32 {
        let block = BlockBuilder::at(address).instruction(bytes[0], slots);
        let block = bytes[1..].iter().fold(block, |block, bytes| block.instruction(bytes, &[]));
        self.writer.add_block(block.build()).expect("a block")
    }

    fn event(&mut self, event: &Event) {
        self.writer.event(FIRST, event).expect("an event");
    }

    fn start(&mut self, at: u64) {
        let clock = self.clock(at);
        self.event(&Event::ThreadStart { clock, kernel_tid: 0, stack_low: 0, stack_high: 0 });
    }

    fn turn(&mut self, at: u64) {
        let clock = self.clock(at);
        self.event(&Event::Turn { clock, estimate: 0 });
    }

    /// A page of an object that processes share.
    fn share(&mut self, at: u64, start: u64, offset: u64) {
        let (clock, kind, name) = (self.clock(at), MappingKind::Anonymous, b""[..].into());
        self.event(&Event::Map { clock, start, length: PAGE, protection: Protection(3), kind, offset, name });
        let clock = self.clock(at + 1);
        self.event(&Event::SharedMapping { clock, start, length: PAGE, object: OBJECT, offset });
    }

    fn execute(&mut self, block: u32, slots: &[u64], times: u32) {
        for _ in 0..times {
            self.writer.execute(FIRST, block, slots).expect("an execution");
        }
    }

    fn record(self) -> Record {
        self.ended("exit 0")
    }

    fn ended(self, how: &str) -> Record {
        let bytes = self.writer.seal(how).expect("a record");
        Record::open(Arc::new(Bytes::new("process", bytes)), CutPolicy::Refuse).expect("a record")
    }
}

fn tree(root: Process, child: Option<Process>) -> Result<Record, RecordError> {
    tree_of(root.record(), child.map(Process::record))
}

fn tree_of(root: Record, mut child: Option<Record>) -> Result<Record, RecordError> {
    Record::of_tree(root, 2, |number| {
        assert_eq!(number, 1);
        Ok(child.take())
    })
}

fn frame(record: &Record, thread: ThreadId) -> Frame {
    let mut frame = Frame::default();
    assert!(record.reader(thread).next_frame(&mut frame).expect("a frame"));
    frame
}

/// One that stores, and its child, which polls until it has.
fn storing_and_polling() -> (Process, Process) {
    let mut root = Process::new(None);
    root.start(1);
    root.share(2, 0x10000, PAGE);
    root.event(&Event::Fork { child: 1 });
    let store = root.block(0x2000, &[&[0x89, 0x07]], &[(SlotKind::Store, 4)]);
    root.turn(20);
    root.execute(store, &[0x10040], 1);

    let mut child = Process::new(Some(1));
    child.start(10);
    child.share(11, 0x70000, 0);
    child.share(13, 0x90000, PAGE);
    // cmp [rdi], eax; jne back.
    let polls = child.block(0x1000, &[&[0x39, 0x07], &[0x75, 0xfc]], &[(SlotKind::Load, 4)]);
    let works = child.block(0x1004, &[&[0x90]], &[]);
    child.execute(polls, &[0x90040], 5);
    child.turn(30);
    child.execute(polls, &[0x90040], 1);
    child.execute(works, &[], 1);
    (root, child)
}

#[test]
fn a_process_that_polls_waits_for_the_other_ones_store() {
    let (root, child) = storing_and_polling();
    let record = tree(root, Some(child)).expect("a tree");
    assert_eq!((record.threads(), record.processes()), (2, 2));
    let (stored, polled) = (frame(&record, FIRST), frame(&record, CHILD));
    let release = stored.events.iter().find_map(|event| match *event {
        Event::SpinRelease { clock, object, .. } => Some((object, clock)),
        _ => None,
    });
    let wait = polled.events.iter().find_map(|event| match *event {
        Event::SpinWait { object, wake, maker, .. } => Some((object, wake, maker)),
        _ => None,
    });
    let (object, clock) = release.expect("a release");
    assert_eq!(wait, Some((object, clock, FIRST)));
    assert_eq!((&stored.slots[..], &polled.slots[..]), (&[object][..], &[object][..]), "one place, and one round");
    let created = |event: &Event| matches!(event, Event::ThreadCreate { thread: CHILD, .. });
    assert!(stored.events.iter().any(created), "{:?}", stored.events);
    let blocks: Vec<u64> = polled.steps.iter().map(|&id| record.program().block(id).address).collect();
    let own = |address: u64| address + (1 << 48);
    assert_eq!(blocks.into_iter().filter(|&address| address > 0).collect::<Vec<_>>(), [own(0x1000), own(0x1004)]);
    let mapped: Vec<u64> = record.memory_map().expect("a map").mappings().iter().map(|of| of.range.start).collect();
    assert_eq!(mapped, [object - 0x40, object - 0x40 - PAGE, object - 0x40]);
}

fn opened(bytes: Vec<u8>) -> Record {
    Record::open(Arc::new(Bytes::new("process", bytes)), CutPolicy::Allow).expect("a record")
}

/// The record of a first process that its launcher has not sealed, with what of its tree's order a replay keeps.
fn with_order(root: Process, child: &Record) -> Vec<u8> {
    let mut bytes = root.writer.abandon().expect("a record");
    let found = tree_of(opened(bytes.clone()), Some(child.clone())).expect("a tree");
    let order = found.order_frames().expect("an order");
    assert!(!order.is_empty() && !found.has_its_order());
    bytes.extend(order);
    bytes
}

#[test]
fn the_order_of_a_tree_is_kept_in_the_record_of_its_first_process() {
    let (root, child) = storing_and_polling();
    let child = child.record();
    let kept = tree_of(opened(with_order(root, &child)), Some(child)).expect("a tree");
    assert!(kept.has_its_order());
    assert!(kept.order_frames().expect("no order to find").is_empty());

    let (root, child) = storing_and_polling();
    let found = tree(root, Some(child)).expect("a tree");
    for thread in [FIRST, CHILD] {
        assert_eq!(frame(&kept, thread), frame(&found, thread));
    }
    let waits = |event: &Event| matches!(event, Event::SpinWait { .. });
    assert!(frame(&kept, CHILD).events.iter().any(waits));
}

#[test]
fn a_kept_order_is_found_anew_where_it_is_not_that_of_the_records() {
    let (root, child) = storing_and_polling();
    let child = child.record();
    let bytes = with_order(root, &child);
    let (_, mut another) = storing_and_polling();
    let works = another.block(0x3000, &[&[0x90]], &[]);
    another.execute(works, &[], 1);
    let replaced = tree_of(opened(bytes.clone()), Some(another.record())).expect("a tree");
    let without = tree_of(opened(bytes.clone()), None).expect("a tree");
    let part = tree_of(opened(bytes[..bytes.len() - 1].to_vec()), Some(child)).expect("a tree");
    for record in [replaced, without, part] {
        assert!(!record.has_its_order());
        frame(&record, FIRST);
    }
}

#[test]
fn the_record_of_a_first_process_alone_has_no_order_of_its_tree() {
    let (root, child) = storing_and_polling();
    let alone = opened(with_order(root, &child.record()));
    assert!(!alone.has_its_order());
    assert_eq!(alone.threads(), 1);
    frame(&alone, FIRST);
}

fn with_a_child() -> Process {
    let mut root = Process::new(None);
    root.start(1);
    root.event(&Event::Fork { child: 1 });
    root.turn(20);
    let clock = root.clock(21);
    root.event(&Event::Consume { clock, object: 3, supply: Some(Clock(12)) });
    let clock = root.clock(22);
    root.event(&Event::ChildWait { clock, process: 1 });
    root
}

/// What its first thread waits for: what it consumes, and whom it joins.
fn awaited(record: &Record) -> (Option<Clock>, Option<ThreadId>) {
    let events = frame(record, FIRST).events;
    let supply = events.iter().find_map(|event| if let Event::Consume { supply, .. } = event { *supply } else { None });
    let joined = |event: &Event| if let Event::ThreadJoin { thread, .. } = event { Some(*thread) } else { None };
    (supply, events.iter().find_map(joined))
}

#[test]
fn what_a_child_supplies_and_its_end_are_waited_for_where_it_is_there() {
    let mut child = Process::new(Some(1));
    child.start(10);
    let clock = child.clock(12);
    child.event(&Event::Supply { clock, object: 3 });
    let both = tree(with_a_child(), Some(child)).expect("a tree");
    let (supply, joined) = awaited(&both);
    assert!(frame(&both, CHILD).events.iter().any(|event| event.clock() == supply), "{supply:?}");
    assert_eq!(joined, Some(CHILD));
    assert!(both.warnings().is_empty());

    assert_eq!(awaited(&with_a_child().record()), (None, None), "its record alone");
    let without = tree(with_a_child(), None).expect("a tree");
    assert_eq!(awaited(&without), (None, None));
    assert_eq!(without.warnings(), ["process 1 has no record: what it did is not replayed"]);
}

#[test]
fn a_child_whose_fork_a_killed_parent_did_not_tell_begins_at_its_end() {
    let untold = |ended: &str| {
        let mut root = Process::new(None);
        root.start(1);
        root.turn(20);
        let mut child = Process::new(Some(1));
        child.start(10);
        let record = tree_of(root.ended(ended), Some(child.record())).expect("a tree");
        let events = frame(&record, FIRST).events;
        (record.processes(), matches!(events.last(), Some(Event::ThreadCreate { thread: CHILD, .. })))
    };
    assert_eq!(untold("signal 9"), (2, true));
    assert_eq!(untold("exit 0"), (2, false));
}

#[test]
fn a_child_s_record_is_named_by_its_first_process_s() {
    for first in ["server.fencepost", "folder.d/server.7.fencepost", "server", "./server.record.gz"] {
        for number in [1, 12] {
            let child = path_of_child(Path::new(first), number);
            assert_eq!(path_of_first(&child, number).as_deref(), Some(Path::new(first)));
            assert_ne!(path_of_first(&child, number + 1).as_deref(), Some(Path::new(first)));
        }
        assert_eq!(path_of_first(Path::new(first), 0).as_deref(), Some(Path::new(first)));
    }
    assert_eq!(path_of_first(Path::new("another.fencepost"), 1), None);
}

#[test]
fn a_child_is_no_first_process() {
    let mut child = Process::new(Some(1));
    child.start(10);
    let refused = tree(child, None).expect_err("it is process 1");
    assert_eq!(
        refused.to_string(),
        "process: it is of a child: with its children the record of the first process is replayed"
    );
}

#[test]
fn a_record_of_another_process_is_refused() {
    let mut stranger = Process::new(Some(2));
    stranger.start(10);
    let refused = tree(with_a_child(), Some(stranger)).expect_err("it is process 2");
    assert!(refused.to_string().contains("of another process"), "{refused}");
}
