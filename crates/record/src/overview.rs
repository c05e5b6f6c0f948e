//! What all events of a record say together; reading them all finds it.

use rustc_hash::FxHashSet;

use super::code::Program;
use super::error::{Problem, RecordError};
use super::event::{Clock, Event, ThreadId};
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
    /// Wakes by processes whose records are not read with this one.
    foreign: FxHashSet<Clock>,
}

impl Overview {
    pub(super) fn read(record: &Record) -> Result<Self, RecordError> {
        let mut mappings = MappingEvents::default();
        let (mut frame, mut has_turns) = (Frame::default(), false);
        let mut is_of_tree = record.info().process.is_some() || record.tree().is_some();
        record.visit_trace(|_, decoder, _| {
            decoder.events(&mut frame)?;
            has_turns |= frame.events.iter().any(|event| matches!(event, Event::Turn { .. }));
            is_of_tree |= frame.events.iter().any(|event| matches!(event, Event::Fork { child } if *child > 0));
            mappings.take_in(&frame.events)
        })?;
        let memory_map = record.tree().map_or_else(|| Ok(mappings.into_map()), Tree::memory_map)?;
        let changes = if record.has_its_order() { None } else { order::changes_of(record)? };
        let foreign = if is_of_tree { foreign_wakes(record)? } else { FxHashSet::default() };
        Ok(Overview { memory_map, changes, has_turns, foreign })
    }

    /// Nothing waits for what no thread of the record does.
    pub(super) fn drop_foreign(&self, frame: &mut Frame) {
        if self.foreign.is_empty() {
            return;
        }
        for wake in frame.events.iter_mut().filter_map(Event::wake_mut) {
            *wake = wake.filter(|clock| !self.foreign.contains(clock));
        }
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

fn foreign_wakes(record: &Record) -> Result<FxHashSet<Clock>, RecordError> {
    let (mut named, mut own) = (FxHashSet::default(), FxHashSet::default());
    record.visit_events(|_, event| {
        own.extend(event.clock());
        named.extend(event.clone().wake_mut().and_then(|wake| *wake));
    })?;
    named.retain(|clock| !own.contains(clock));
    Ok(named)
}
