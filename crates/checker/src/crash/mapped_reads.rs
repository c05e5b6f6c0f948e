//! Which lines of a file a recorded program read through its mapping: what a check looks at in an image. Reads of the
//! file itself are not in a record.

use std::collections::BTreeSet;

use fencepost_sim::core::events::{Access, Meaning, meaning};
use fencepost_sim::record::{Ended, Event, Frame, MappingKind, Record, RecordError, SlotKind, ThreadId};

use super::recorded_stores::lines_of;

/// No synchronisation object of the C library is larger (`pthread_rwlock_t` has 56 bytes).
const OBJECT_BYTES: u64 = 64;

/// A part of the file in the address space.
struct Window {
    start: u64,
    end: u64,
    offset: u64,
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
            .map(|mapping| Window { start: mapping.range.start, end: mapping.range.end, offset: mapping.offset })
            .collect();
        let mut lines = BTreeSet::new();
        let mut children = 0;
        for thread in 0..record.threads() {
            let mut reader = record.reader(ThreadId(thread as u32));
            let mut frame = Frame::default();
            while reader.next_frame(&mut frame)? {
                visit_reads(record, &frame, |address, size| note(&windows, address, size, &mut lines));
                for event in &frame.events {
                    children += u64::from(matches!(event, Event::Fork { .. }));
                    // What a synchronisation function does inside is not in a record; it reads its object.
                    if let Meaning::Synchronisation { access: Access::Atomic(object) | Access::Read(object), .. } =
                        meaning(event)
                    {
                        note(&windows, object, OBJECT_BYTES, &mut lines);
                    }
                }
            }
        }
        let lines = (!windows.is_empty()).then(|| lines.into_iter().collect());
        let is_whole = matches!(record.ended(), Ended::Sealed { lost: 0, .. });
        Ok(MappedReads { lines, children, is_whole })
    }
}

fn note(windows: &[Window], address: u64, size: u64, lines: &mut BTreeSet<u64>) {
    let end = address.saturating_add(size);
    for window in windows.iter().filter(|window| address < window.end && end > window.start) {
        let (first, last) = (address.max(window.start), end.min(window.end));
        lines.extend(lines_of(first - window.start + window.offset, last - first));
    }
}

/// Hands every read of a frame to `visit`: address and bytes.
fn visit_reads(record: &Record, frame: &Frame, mut visit: impl FnMut(u64, u64)) {
    let mut first = 0;
    for &step in frame.steps.iter().filter(|step| **step != 0) {
        let slots = &record.program().block(step).slots;
        let values = &frame.slots[first..first + slots.len()];
        let mut is_second = false;
        for (index, slot) in slots.iter().enumerate() {
            let is_first_of_pair = slot.kind.is_string() && !is_second;
            is_second = is_first_of_pair;
            match slot.kind {
                SlotKind::Load | SlotKind::Update | SlotKind::Gather => visit(values[index], slot.size.into()),
                SlotKind::StringSource | SlotKind::StringDestination if is_first_of_pair => {
                    let (before, after) = (values[index], values[index + 1]);
                    visit(before.min(after), before.abs_diff(after) + u64::from(slot.size) - 1);
                }
                _ => {}
            }
        }
        first += slots.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_are_lines_of_the_file_wherever_it_is_mapped() {
        let windows = [Window { start: 0x10000, end: 0x12000, offset: 0x4000 }];
        let mut lines = BTreeSet::new();
        note(&windows, 0x1_0038, 16, &mut lines);
        note(&windows, 0xfff8, 16, &mut lines);
        note(&windows, 0x1_1ff8, 64, &mut lines);
        note(&windows, 0x1_2000, 64, &mut lines);
        let expected: Vec<u64> = vec![0x4000 / 64, 0x4040 / 64, 0x5fc0 / 64];
        assert_eq!(lines.into_iter().collect::<Vec<_>>(), expected);
    }
}
