//! What a switch counts besides its ports and its persist buffer.

use fencepost_kernel::stats::StatsNode;

/// Counters of the allocation of a switch.
#[derive(Clone, Debug, Default)]
pub struct SwitchStats {
    /// Messages that were allocated to a port.
    pub allocated: u64,
    /// Time that messages waited for the switch allocator, for whatever reason, summed over messages, in ps. It begins
    /// when the message has passed routing, or leaves the persist buffer, and ends with the allocation to a port. What
    /// is for the persist buffer needs no allocation: of it, only the time behind other messages of its ingress buffer
    /// is in here. Waiting at the head for room in the persist buffer's input is counted there.
    pub arbitration_wait_ps: u64,
    /// Messages that waited behind a message of the same port and class for another destination, counted for each they
    /// waited behind.
    pub head_of_line_messages: u64,
    /// The part of `arbitration_wait_ps` that they waited for nothing else, in ps.
    pub head_of_line_ps: u64,
}

impl SwitchStats {
    /// The counters with their names.
    pub fn to_nodes(&self) -> Vec<(String, StatsNode)> {
        [
            ("allocated", self.allocated),
            ("arbitration_wait_ps", self.arbitration_wait_ps),
            ("head_of_line_messages", self.head_of_line_messages),
            ("head_of_line_ps", self.head_of_line_ps),
        ]
        .map(|(name, value)| (name.to_owned(), StatsNode::Counter(value)))
        .to_vec()
    }
}
