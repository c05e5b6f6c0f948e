use std::sync::Arc;

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
        let info = Info { process, ..Info::default() };
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
        let bytes = self.writer.seal("exit 0").expect("a record");
        Record::open(Arc::new(Bytes::new("process", bytes)), CutPolicy::Refuse).expect("a record")
    }
}

fn tree(root: Process, child: Option<Process>) -> Result<Record, RecordError> {
    let mut child = child.map(Process::record);
    Record::of_tree(root.record(), |number| {
        assert_eq!(number, 1);
        Ok(child.take())
    })
}

fn frame(record: &Record, thread: ThreadId) -> Frame {
    let mut frame = Frame::default();
    assert!(record.reader(thread).next_frame(&mut frame).expect("a frame"));
    frame
}

#[test]
fn a_process_that_polls_waits_for_the_other_ones_store() {
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
