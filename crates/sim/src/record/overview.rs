//! What all events of a record say together; reading them all once finds it.

use std::collections::BTreeSet;

use super::error::RecordError;
use super::event::{Event, SpinReleaseKind};
use super::memory_map::{MappingEvents, MemoryMap};
use super::reader::Record;
use super::trace::Frame;

/// What is known when all events have been read.
pub(super) struct Overview {
    pub memory_map: MemoryMap,
    counting_words: BTreeSet<u64>,
}

impl Overview {
    pub(super) fn read(record: &Record) -> Result<Self, RecordError> {
        let mut mappings = MappingEvents::default();
        let mut counting_words = BTreeSet::new();
        let mut frame = Frame::default();
        record.visit_trace(|_, decoder, _| {
            decoder.events(&mut frame)?;
            counting_words.extend(frame.events.iter().filter_map(counting_word));
            mappings.take_in(&frame.events)
        })?;
        Ok(Overview { memory_map: mappings.into_map(), counting_words })
    }

    /// The recorder finds out in time that a word counts arrivals: the updates that it did not know it of count as
    /// well.
    pub(super) fn complete(&self, events: &mut [Event]) {
        if self.counting_words.is_empty() {
            return;
        }
        for event in events {
            if let Event::SpinRelease { object, kind, .. } = event
                && *kind == SpinReleaseKind::Update
                && self.counting_words.contains(object)
            {
                *kind = SpinReleaseKind::Count;
            }
        }
    }
}

fn counting_word(event: &Event) -> Option<u64> {
    match *event {
        Event::SpinRelease { object, kind: SpinReleaseKind::Count, .. } => Some(object),
        _ => None,
    }
}
