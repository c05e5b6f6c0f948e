//! The writes of memory that are under way, line by line, and what is answered when each is complete.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use super::directory::AgentId;
use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::Message;

/// Requests that a write completes, besides the one that it carries.
type Waiting = Vec<(AgentId, Message)>;

/// A write of memory that is under way.
#[derive(Clone, Debug)]
struct LineWrite {
    /// Whose request it carries; none if the home agent itself writes what a snoop has brought.
    by: Option<AgentId>,
    waiting: Waiting,
}

/// All of them. The host bridge completes those of a line in the order in which it got them.
#[derive(Clone, Debug, Default)]
pub struct LineWrites(FxHashMap<LineAddress, VecDeque<LineWrite>>);

impl LineWrites {
    /// A write of `line` begins.
    pub fn begin(&mut self, line: LineAddress, by: Option<AgentId>) {
        self.0.entry(line).or_default().push_back(LineWrite { by, waiting: Waiting::new() });
    }

    /// Keeps `request` until everything that is under way to its line is complete; gives it back if nothing is.
    pub fn wait(&mut self, agent: AgentId, request: Message) -> Option<Message> {
        match self.0.get_mut(&request.line).and_then(VecDeque::back_mut) {
            Some(write) => {
                write.waiting.push((agent, request));
                None
            }
            None => Some(request),
        }
    }

    /// The oldest write of `line` is complete: gives whose request it carried, and what waited for it.
    ///
    /// # Panics
    /// If none is under way.
    pub fn complete(&mut self, line: LineAddress) -> (Option<AgentId>, Waiting) {
        let writes = self.0.get_mut(&line).expect("only a write that is under way completes");
        let LineWrite { by, waiting } = writes.pop_front().expect("a line is listed while writes are under way");
        if writes.is_empty() {
            self.0.remove(&line);
        }
        (by, waiting)
    }

    /// Whether a write of `line` is under way.
    pub fn has(&self, line: LineAddress) -> bool {
        self.0.contains_key(&line)
    }

    /// Whether none is under way.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Forgets everything: power is gone.
    pub fn clear(&mut self) {
        self.0.clear();
    }
}
