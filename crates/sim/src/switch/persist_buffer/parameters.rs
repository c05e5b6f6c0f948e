//! What is fixed about one persist buffer's logic: its sizes and when it drains.

use super::drain_policy::DrainPolicy;

/// Sizes and policy of a persist buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parameters {
    /// Entries that may be occupied. There is one slot more.
    pub entries: u16,
    /// Places for reads and writes in the controller's input.
    pub input_places: u16,
    /// Places for acknowledgements in the controller's input.
    pub acknowledgement_places: u16,
    /// Whether reads of lines that are not here pass the controller by, or are served by it in turn.
    pub reads_bypass: bool,
    /// When entries are drained.
    pub policy: DrainPolicy,
}

impl Parameters {
    /// How many slots there are: one more than entries, so that a write can always be merged without overwriting.
    pub fn slots(&self) -> usize {
        usize::from(self.entries) + 1
    }

    /// How many packets the input can hold.
    pub fn inputs(&self) -> usize {
        usize::from(self.input_places) + usize::from(self.acknowledgement_places)
    }
}
