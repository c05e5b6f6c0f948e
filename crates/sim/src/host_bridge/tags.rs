//! The requests that have left through one port and have no answer yet, by the tag they left with.

use fencepost_kernel::line::LineAddress;
use fencepost_kernel::message::{Message, MessageClass, Opcode, Tag};

/// What has to be remembered of a request, because its answer does not bring it (an NDR carries nothing but the tag).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outstanding {
    /// The host's name for it.
    pub tag: Tag,
    /// Its line.
    pub line: LineAddress,
    /// The class that its answer has.
    pub answer: MessageClass,
    /// Whether requests for its line wait until it is answered.
    pub is_watched: bool,
}

/// The tags of one port. A freed tag is used again, the latest first.
#[derive(Clone, Debug, Default)]
pub struct TagTable {
    slots: Vec<Option<Outstanding>>,
    free: Vec<u32>,
}

impl TagTable {
    /// Gives `request` a tag of this port, which is free again when [`Self::answered`] takes it.
    pub fn rename(&mut self, request: &mut Message, is_watched: bool) {
        let has_no_data = request.is_write() || request.opcode == Opcode::MemInv;
        let answer = if has_no_data { MessageClass::S2mNdr } else { MessageClass::S2mDrs };
        let outstanding = Some(Outstanding { tag: request.tag, line: request.line, answer, is_watched });
        request.tag = match self.free.pop() {
            Some(slot) => {
                self.slots[slot as usize] = outstanding;
                Tag(slot)
            }
            None => {
                self.slots.push(outstanding);
                Tag((self.slots.len() - 1) as u32)
            }
        };
    }

    /// Restores in `answer` what the host knows its request by.
    ///
    /// # Panics
    /// If no request waits under the answer's tag, or not for that kind of answer.
    pub fn answered(&mut self, answer: &mut Message) -> Outstanding {
        let tag = answer.tag;
        let outstanding = self.slots.get_mut(tag.0 as usize).and_then(Option::take);
        let outstanding = outstanding.unwrap_or_else(|| panic!("an answer to {tag:?}, under which nothing is asked"));
        assert_eq!(outstanding.answer, answer.class(), "{:?} is no answer to {tag:?}", answer.opcode);
        self.free.push(tag.0);
        answer.tag = outstanding.tag;
        answer.line = outstanding.line;
        outstanding
    }

    /// The requests without an answer, by tag.
    pub fn outstanding(&self) -> impl Iterator<Item = &Outstanding> {
        self.slots.iter().flatten()
    }

    /// Whether every request has its answer.
    pub fn is_empty(&self) -> bool {
        self.free.len() == self.slots.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_kernel::line::Version;
    use fencepost_kernel::message::Cause;
    use fencepost_kernel::time::Time;

    fn read(line: u64, tag: u32) -> Message {
        Message::read(LineAddress(line), Tag(tag), Cause::DemandRead, Time::ZERO)
    }

    #[test]
    fn equal_tags_of_the_host_leave_under_different_ones() {
        let mut tags = TagTable::default();
        let (mut first, mut second) = (read(1, 9), read(2, 9));
        tags.rename(&mut first, true);
        tags.rename(&mut second, true);
        assert_ne!(first.tag, second.tag);
        let mut answer = second.answer(Version(0));
        answer.line = LineAddress(0);
        assert_eq!(tags.answered(&mut answer).line, LineAddress(2));
        assert_eq!((answer.tag, answer.line), (Tag(9), LineAddress(2)));
        assert!(!tags.is_empty());
        assert_eq!(tags.outstanding().count(), 1);
    }

    #[test]
    #[should_panic(expected = "under which nothing is asked")]
    fn a_second_answer_is_a_fault() {
        let mut tags = TagTable::default();
        let mut request = read(1, 9);
        tags.rename(&mut request, true);
        let mut answer = request.answer(Version(0));
        tags.answered(&mut answer.clone());
        tags.answered(&mut answer);
    }

    #[test]
    #[should_panic(expected = "is no answer to")]
    fn data_does_not_answer_a_write() {
        let mut tags = TagTable::default();
        let mut request = read(1, 9);
        tags.rename(&mut request, true);
        request.opcode = fencepost_kernel::message::Opcode::Cmp;
        tags.answered(&mut request);
    }
}
