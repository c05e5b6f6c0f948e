//! How many lines each region of a record touches: what work on a page leaves in caches.

use fencepost_isa::InstructionSet;
use fencepost_record::{Frame, Marker, Record, RecordError, SlotKind, ThreadId};
use rustc_hash::FxHashSet;

/// Distinct lines that the first thread touches in each of its regions.
///
/// # Errors
/// If the record cannot be read.
pub fn lines_of_regions(record: &Record) -> Result<Vec<u32>, RecordError> {
    let set = InstructionSet::from_name(&record.info().isa);
    let mut regions = Vec::new();
    let mut open: Option<FxHashSet<u64>> = None;
    let mut reader = record.reader(ThreadId(0));
    let mut frame = Frame::default();
    while reader.next_frame(&mut frame)? {
        let mut first = 0;
        for &step in frame.steps.iter().filter(|&&step| step != 0) {
            let block = record.program().block(step);
            let mut slots = block.slots.iter().zip(&frame.slots[first..]).peekable();
            for (index, (_, bytes)) in block.instructions().enumerate() {
                match set.and_then(|set| set.marker_of(bytes)) {
                    Some(Marker::ROI_BEGIN) => open = Some(FxHashSet::default()),
                    Some(Marker::ROI_END) => regions.extend(open.take().map(|lines| lines.len() as u32)),
                    _ => {}
                }
                while let Some((slot, &value)) = slots.next_if(|(slot, _)| usize::from(slot.instruction) == index) {
                    let last = if slot.kind.is_string() {
                        let end = slots.next().map_or(value, |(_, &end)| end);
                        value.max(end).saturating_sub(1)
                    } else {
                        value + u64::from(slot.size.max(1)) - 1
                    };
                    if let Some(lines) = open.as_mut()
                        && !matches!(slot.kind, SlotKind::Prefetch | SlotKind::Flush)
                    {
                        lines.extend(value / 64..=last / 64);
                    }
                }
            }
            first += block.slots.len();
        }
    }
    Ok(regions)
}
