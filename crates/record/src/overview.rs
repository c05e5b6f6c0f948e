//! What all events of a record say together; reading them all finds it.

use super::code::Program;
use super::error::{Problem, RecordError};
use super::event::{Event, ThreadId};
use super::memory_map::{MappingEvents, MemoryMap};
use super::order::{self, Changes};
use super::reader::Record;
use super::trace::Frame;
use super::tree::Tree;

/// What is known when all events have been read.
pub(super) struct Overview {
    pub memory_map: MemoryMap,
    /// What replays change in the frames of a record that has no ORDER frames.
    pub changes: Option<Changes>,
    pub has_turns: bool,
}

impl Overview {
    pub(super) fn read(record: &Record) -> Result<Self, RecordError> {
        let mut mappings = MappingEvents::default();
        let (mut frame, mut has_turns) = (Frame::default(), false);
        record.visit_trace(|_, decoder, _| {
            decoder.events(&mut frame)?;
            has_turns |= frame.events.iter().any(|event| matches!(event, Event::Turn { .. }));
            mappings.take_in(&frame.events)
        })?;
        let memory_map = record.tree().map_or_else(|| Ok(mappings.into_map()), Tree::memory_map)?;
        let changes = if record.has_its_order() { None } else { order::changes_of(record)? };
        Ok(Overview { memory_map, changes, has_turns })
    }

    /// Leaves out of a frame what only waited, and puts in what a replay waits for.
    pub(super) fn complete(
        &self,
        program: &Program,
        thread: ThreadId,
        number: usize,
        frame: &mut Frame,
    ) -> Result<(), Problem> {
        match &self.changes {
            Some(changes) => changes.apply(program, thread.0 as usize, number, frame),
            None => Ok(()),
        }
    }
}
