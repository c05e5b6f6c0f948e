//! What all events of a record say together; reading them all finds it.

use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::code::Program;
use super::error::{Problem, RecordError};
use super::event::ThreadId;
use super::memory_map::{MappingEvents, MemoryMap};
use super::order::{self, Changes};
use super::reader::Record;
use super::trace::Frame;
use super::word_uses::{StoreMakers, WordUses};

/// What is known when all events have been read.
pub(super) struct Overview {
    pub memory_map: MemoryMap,
    pub store_makers: StoreMakers,
    word_uses: WordUses,
    changes: Option<Changes>,
}

impl Overview {
    pub(super) fn read(record: &Record) -> Result<Self, RecordError> {
        let mut mappings = MappingEvents::default();
        let mut word_uses = WordUses::default();
        let mut store_makers = StoreMakers::default();
        let mut frame = Frame::default();
        record.visit_trace(|thread, decoder, _| {
            decoder.events(&mut frame)?;
            word_uses.learn(thread, &frame.events);
            mappings.take_in(&frame.events)
        })?;
        if word_uses.needs_second_look() {
            let mut makers = FxHashMap::default();
            let mut finder = word_uses.lock_use_finder(&mut makers);
            record.visit_trace(|thread, decoder, _| {
                decoder.events(&mut frame)?;
                finder.follow(thread, &frame.events);
                Ok(())
            })?;
            store_makers = Arc::new(makers);
        }
        let changes = if record.has_its_order() { None } else { order::changes_of(record)? };
        Ok(Overview { memory_map: mappings.into_map(), store_makers, word_uses, changes })
    }

    /// Gives events what the recorder found out only after it had recorded them.
    pub(super) fn complete(
        &self,
        program: &Program,
        thread: ThreadId,
        number: usize,
        frame: &mut Frame,
    ) -> Result<(), Problem> {
        self.word_uses.complete(&mut frame.events);
        match &self.changes {
            Some(changes) => changes.apply(program, thread.0 as usize, number, frame),
            None => Ok(()),
        }
    }
}
