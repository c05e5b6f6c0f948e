//! Which lines of a file a recorded program read through its mapping: what a check looks at in an image. Reads of the
//! file itself are not in a record.

use std::collections::BTreeSet;

use fencepost_record::{Clock, Ended, Event, Frame, MappingKind, Record, RecordError, SlotKind, ThreadId};
use fencepost_sim::core::events::{Access, Meaning, meaning};

use super::recorded_stores::lines_of;

/// No synchronisation object of the C library is larger (`pthread_rwlock_t` has 56 bytes).
const OBJECT_BYTES: u64 = 64;

/// A part of the file in the address space, while it is mapped.
struct Window {
    start: u64,
    end: u64,
    offset: u64,
    mapped: Clock,
    unmapped: Option<Clock>,
}

/// The clocks of a thread's events before and after a read.
type Between = (Clock, Clock);

impl Window {
    /// Whether the file may have been mapped here at some time between these events.
    fn is_open(&self, (before, after): Between) -> bool {
        self.mapped < after && self.unmapped.is_none_or(|unmapped| before < unmapped)
    }
}

/// What a recorded process read of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MappedReads {
    /// The lines (offset / 64) that it read through its mappings of the file; none if it mapped no such file.
    pub lines: Option<Vec<u64>>,
    /// How many processes it began, each of which has a record of its own or none.
    pub children: u64,
    /// Whether its record has all that it did.
    pub is_whole: bool,
}

impl MappedReads {
    /// Looks for what `record` read of the file at `path`.
    ///
    /// # Errors
    /// If the record cannot be read.
    pub fn of_record(record: &Record, path: &str) -> Result<MappedReads, RecordError> {
        let mappings = record.memory_map()?.mappings().iter();
        let of_file = mappings.filter(|mapping| mapping.kind == MappingKind::File && &*mapping.name == path);
        let windows: Vec<Window> = of_file
            .map(|mapping| Window {
                start: mapping.range.start,
                end: mapping.range.end,
                offset: mapping.offset,
                mapped: mapping.mapped,
                unmapped: mapping.unmapped,
            })
            .collect();
        let mut lines = BTreeSet::new();
        let mut children = 0;
        for thread in 0..record.threads() {
            let mut reader = record.reader(ThreadId(thread as u32));
            let mut frame = Frame::default();
            while reader.next_frame(&mut frame)? {
                visit_reads(record, &frame, |when, address, size| note(&windows, when, address, size, &mut lines));
                for event in &frame.events {
                    children += u64::from(matches!(event, Event::Fork { .. }));
                    // What a synchronisation function does inside is not in a record; it reads its object. All such
                    // events have a place in the process clock.
                    if let Meaning::Synchronisation { access: Access::Atomic(object) | Access::Read(object), .. } =
                        meaning(event)
                        && let Some(at) = event.clock()
                    {
                        note(&windows, (at, after(at)), object, OBJECT_BYTES, &mut lines);
                    }
                }
            }
        }
        let lines = (!windows.is_empty()).then(|| lines.into_iter().collect());
        let is_whole = matches!(record.ended(), Ended::Sealed { lost: 0, .. });
        Ok(MappedReads { lines, children, is_whole })
    }
}

fn note(windows: &[Window], when: Between, address: u64, size: u64, lines: &mut BTreeSet<u64>) {
    let end = address.saturating_add(size);
    let is_read = |window: &&Window| address < window.end && end > window.start && window.is_open(when);
    for window in windows.iter().filter(is_read) {
        let (first, last) = (address.max(window.start), end.min(window.end));
        lines.extend(lines_of(first - window.start + window.offset, last - first));
    }
}

/// Hands every read of a frame to `visit`: between which events it was, address and bytes.
fn visit_reads(record: &Record, frame: &Frame, mut visit: impl FnMut(Between, u64, u64)) {
    let mut slots_before = 0;
    let mut events = frame.events.iter();
    let mut when = (frame.clocks.0, next_clock(events.as_slice(), frame));
    for &step in &frame.steps {
        if step == 0 {
            if let Some(clock) = events.next().and_then(Event::clock) {
                when = (clock, next_clock(events.as_slice(), frame));
            }
            continue;
        }
        let slots = &record.program().block(step).slots;
        let values = &frame.slots[slots_before..slots_before + slots.len()];
        let mut is_second = false;
        for (index, slot) in slots.iter().enumerate() {
            let is_first_of_pair = slot.kind.is_string() && !is_second;
            is_second = is_first_of_pair;
            match slot.kind {
                SlotKind::Load | SlotKind::Update | SlotKind::Gather => visit(when, values[index], slot.size.into()),
                SlotKind::StringSource | SlotKind::StringDestination if is_first_of_pair => {
                    let (before, after) = (values[index], values[index + 1]);
                    visit(when, before.min(after), before.abs_diff(after) + u64::from(slot.size) - 1);
                }
                _ => {}
            }
        }
        slots_before += slots.len();
    }
}

/// The clock of the first of these events that has one; behind the frame's end if none has.
fn next_clock(events: &[Event], frame: &Frame) -> Clock {
    events.iter().find_map(Event::clock).unwrap_or(after(frame.clocks.1))
}

fn after(clock: Clock) -> Clock {
    Clock(clock.0.saturating_add(1))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MAPPED: Between = (Clock(5), Clock(6));

    fn read(when: Between, address: u64, size: u64) -> Vec<u64> {
        let (mapped, unmapped) = (Clock(5), Some(Clock(9)));
        let windows = [Window { start: 0x10000, end: 0x12000, offset: 0x4000, mapped, unmapped }];
        let mut lines = BTreeSet::new();
        note(&windows, when, address, size, &mut lines);
        lines.into_iter().collect()
    }

    #[test]
    fn reads_are_lines_of_the_file_wherever_it_is_mapped() {
        assert_eq!(read(MAPPED, 0x1_0038, 16), [0x4000 / 64, 0x4040 / 64]);
        assert_eq!(read(MAPPED, 0xfff8, 16), [0x4000 / 64]);
        assert_eq!(read(MAPPED, 0x1_1ff8, 64), [0x5fc0 / 64]);
        assert!(read(MAPPED, 0x1_2000, 64).is_empty());
    }

    #[test]
    fn what_was_mapped_there_before_and_after_is_another_file() {
        let is_noted = |before, after| !read((Clock(before), Clock(after)), 0x1_0000, 8).is_empty();
        assert!(!is_noted(3, 5), "its own thread maps the file next");
        assert!(!is_noted(9, 12), "its own thread has unmapped it");
        assert!(is_noted(3, 8), "another thread may have mapped it before the read");
        assert!(is_noted(8, 12), "another thread may have unmapped it after the read");
    }
}
