//! What all events of a record say together; reading them all finds it.

use super::error::RecordError;
use super::event::Event;
use super::memory_map::{MappingEvents, MemoryMap};
use super::reader::Record;
use super::trace::Frame;
use super::word_uses::WordUses;

/// What is known when all events have been read.
pub(super) struct Overview {
    pub memory_map: MemoryMap,
    word_uses: WordUses,
}

impl Overview {
    pub(super) fn read(record: &Record) -> Result<Self, RecordError> {
        let mut mappings = MappingEvents::default();
        let mut word_uses = WordUses::default();
        let mut frame = Frame::default();
        record.visit_trace(|_, decoder, _| {
            decoder.events(&mut frame)?;
            word_uses.learn(&frame.events);
            mappings.take_in(&frame.events)
        })?;
        if word_uses.has_locks() {
            let mut finder = word_uses.lock_use_finder();
            record.visit_trace(|thread, decoder, _| {
                decoder.events(&mut frame)?;
                finder.follow(thread, &frame.events);
                Ok(())
            })?;
        }
        Ok(Overview { memory_map: mappings.into_map(), word_uses })
    }

    /// Gives events what the recorder found out only after it had recorded them.
    pub(super) fn complete(&self, events: &mut [Event]) {
        self.word_uses.complete(events);
    }
}
