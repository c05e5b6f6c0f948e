//! On whose behalf an instruction executes: the call of its function, or, where a library without source lines makes
//! that call, the nearest one of code that has some. As far as a frame of the record shows it.
//!
//! Allocated only when sites are counted. What was found is kept by step of the frame, so nothing is walked through
//! twice for the same function.

use std::sync::Arc;

use super::thread::Thread;
use fencepost_isa::micro_op::DecodedBlock;

/// What was found in the frame that a thread is in.
#[derive(Clone, Debug, Default)]
struct InFrame {
    thread: u32,
    frame: u64,
    /// The caller's block, by how many steps of the frame the thread had begun.
    by_step: Vec<Option<u32>>,
}

/// The callers that the threads of one host have been found to have.
#[derive(Clone, Debug)]
pub struct Callers {
    /// By block; one beyond the end is taken to have source lines.
    has_source: Arc<[bool]>,
    cores: Vec<InFrame>,
}

impl Callers {
    /// None yet, on so many cores; `has_source` says of which blocks source lines are known.
    pub fn new(cores: usize, has_source: Arc<[bool]>) -> Callers {
        Callers { has_source, cores: vec![InFrame::default(); cores] }
    }

    /// Whether source lines of `block` are known.
    pub fn has_source(&self, block: u32) -> bool {
        self.has_source.get(block as usize).copied().unwrap_or(true)
    }

    /// The block with source lines whose call led to where `thread` is on `core`; the one that called the function it
    /// is in where no caller has any; 0 if the frame shows neither.
    pub(super) fn of(&mut self, core: usize, thread: &Thread, blocks: &[DecodedBlock]) -> u32 {
        let own = &self.cores[core];
        if (own.thread, own.frame) != (thread.id.0, thread.frame_number) {
            self.cores[core] = InFrame { thread: thread.id.0, frame: thread.frame_number, by_step: Vec::new() };
        }
        let by_step = &self.cores[core].by_step;
        let found = |step: usize| by_step.get(step).copied().flatten();
        let block = thread.caller(blocks, |block| self.has_source(block), found);
        let by_step = &mut self.cores[core].by_step;
        if by_step.len() <= thread.step() {
            by_step.resize(thread.step() + 1, None);
        }
        by_step[thread.step()] = Some(block);
        block
    }
}
