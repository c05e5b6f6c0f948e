//! The memory map over time, and what selectors pick from it.

use fencepost_record::{
    AddressRange, Clock, CutPolicy, Event, Info, Mapping, MappingKind, Protection, Record, ThreadId, Writer,
    WriterOptions,
};

use super::generate::open;

fn map(clock: u64, kind: MappingKind, start: u64, length: u64, name: &str) -> Event {
    let (clock, protection) = (Clock(clock), Protection(3));
    Event::Map { clock, start, length, protection, kind, offset: 0, name: name.into() }
}

fn unmap(clock: u64, start: u64, length: u64) -> Event {
    Event::Unmap { clock: Clock(clock), start, length }
}

fn record(events: &[(u32, Event)]) -> Record {
    let mut writer = Writer::new(Vec::new(), &Info::default(), WriterOptions::default()).unwrap();
    for (thread, event) in events {
        writer.event(ThreadId(*thread), event).unwrap();
    }
    open(writer.seal("exit 0").unwrap(), CutPolicy::Refuse).unwrap()
}

fn selected(events: &[(u32, Event)], selector: &str) -> Vec<(u64, u64)> {
    let record = record(events);
    let ranges = record.memory_map().unwrap().select(&selector.parse().unwrap());
    ranges.as_slice().iter().map(|range| (range.start, range.end)).collect()
}

/// Start, end, when mapped, when unmapped.
fn lives(events: &[(u32, Event)]) -> Vec<(u64, u64, u64, Option<u64>)> {
    let life = |mapping: &Mapping| {
        let AddressRange { start, end } = mapping.range;
        (start, end, mapping.mapped.0, mapping.unmapped.map(|clock| clock.0))
    };
    record(events).memory_map().unwrap().mappings().iter().map(life).collect()
}

use MappingKind::{Anonymous, Break, File, Special, Stack};

#[test]
fn the_heap_is_the_break_and_anonymous_mappings_without_stacks() {
    let start =
        |clock, low, high| Event::ThreadStart { clock: Clock(clock), kernel_tid: 1, stack_low: low, stack_high: high };
    let events = [
        (0, start(1, 0, 0)),
        (0, map(2, File, 0x1000, 0x1000, "/bin/program")),
        (0, map(3, Break, 0x2000, 0x1000, "[heap]")),
        (0, map(4, Anonymous, 0x8000, 0x4000, "")),
        (0, map(5, Stack, 0xf000, 0x1000, "[stack]")),
        (0, map(6, Special, 0x1_0000, 0x1000, "[vdso]")),
        // The second thread's stack is the middle of the anonymous mapping.
        (1, start(7, 0x9000, 0xa000)),
        (0, unmap(8, 0x2800, 0x800)),
    ];
    assert_eq!(selected(&events, "heap"), [(0x2000, 0x3000), (0x8000, 0x9000), (0xa000, 0xc000)]);
    let record = record(&events);
    let stacks = record.memory_map().unwrap().stacks();
    assert!(stacks.contains(0x9000) && stacks.contains(0xffff) && !stacks.contains(0xa000));
}

#[test]
fn a_file_is_picked_by_its_path_or_name_and_a_range_as_it_stands() {
    let events = [
        (0, map(1, File, 0x1000, 0x1000, "/tmp/a.pool")),
        (0, map(2, File, 0x4000, 0x1000, "/tmp/b.pool")),
        (0, map(3, Anonymous, 0x6000, 0x1000, "/tmp/c.pool")),
    ];
    assert_eq!(selected(&events, "file:?.pool"), [(0x1000, 0x2000), (0x4000, 0x5000)]);
    assert_eq!(selected(&events, "file:/tmp/b*"), [(0x4000, 0x5000)]);
    assert_eq!(selected(&events, "file:*.img"), []);
    assert_eq!(selected(&events, "range:0x10-0x20"), [(0x10, 0x20)]);
}

#[test]
fn mappings_of_all_threads_follow_the_process_clock() {
    // The second thread unmaps what the first one mapped before it, and maps something else there.
    let events = [
        (0, map(1, File, 0x1000, 0x3000, "a")),
        (0, map(9, File, 0x8000, 0x1000, "c")),
        (1, unmap(2, 0x2000, 0x1000)),
        (1, map(3, File, 0x2000, 0x1000, "b")),
    ];
    assert_eq!(
        lives(&events),
        [
            (0x1000, 0x2000, 1, None),
            (0x2000, 0x3000, 1, Some(2)),
            (0x3000, 0x4000, 1, None),
            (0x2000, 0x3000, 3, None),
            (0x8000, 0x9000, 9, None),
        ]
    );
    let record = record(&events);
    let offsets: Vec<u64> = record.memory_map().unwrap().mappings().iter().map(|mapping| mapping.offset).collect();
    assert_eq!(offsets, [0, 0x1000, 0x2000, 0, 0]);
}

#[test]
fn a_new_mapping_ends_what_it_covers() {
    let events = [
        (0, map(1, File, 0x1000, 0x4000, "a")),
        (0, map(2, Anonymous, 0x2000, 0x1000, "")),
        (0, map(3, Anonymous, 0x0, 0x10000, "everything")),
    ];
    assert_eq!(
        lives(&events),
        [
            (0x0, 0x10000, 3, None),
            (0x1000, 0x2000, 1, Some(3)),
            (0x2000, 0x3000, 1, Some(2)),
            (0x3000, 0x5000, 1, Some(3)),
            (0x2000, 0x3000, 2, Some(3)),
        ]
        .into_iter()
        .fold(Vec::new(), |mut sorted: Vec<(u64, u64, u64, Option<u64>)>, life| {
            sorted.push(life);
            sorted.sort_by_key(|life| (life.2, life.0));
            sorted
        })
    );
}

#[test]
fn a_heap_that_grows_and_shrinks_is_one_mapping() {
    let events = [
        (0, map(1, Break, 0x1000, 0x1000, "[heap]")),
        (0, map(2, Break, 0x1000, 0x3000, "[heap]")),
        (0, map(3, Break, 0x4000, 0x1000, "[heap]")),
        (0, unmap(4, 0x3000, 0x2000)),
    ];
    assert_eq!(lives(&events), [(0x1000, 0x3000, 1, None), (0x3000, 0x5000, 1, Some(4))]);
    // Two parts of a file that lie in each other's places are not one mapping.
    let files = [(0, map(1, File, 0x1000, 0x1000, "a")), (0, map(2, File, 0x2000, 0x1000, "a"))];
    assert_eq!(lives(&files).len(), 2);
}

#[test]
fn exec_ends_all_mappings() {
    let exec = Event::Exec { clock: Clock(2), path: "/bin/other".into() };
    let events = [(0, map(1, Anonymous, 0x1000, 0x1000, "")), (0, exec), (0, map(3, Anonymous, 0x1000, 0x1000, ""))];
    assert_eq!(lives(&events), [(0x1000, 0x2000, 1, Some(2)), (0x1000, 0x2000, 3, None)]);
}

#[test]
fn a_mapping_beyond_the_address_space_names_its_frame() {
    let record = record(&[(0, map(1, Anonymous, u64::MAX, 2, ""))]);
    let error = record.memory_map().unwrap_err().to_string();
    assert!(error.contains("frame 1 at offset") && error.contains("beyond 64-bit addresses"), "{error}");
}
