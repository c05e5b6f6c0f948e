//! Weighted fair queueing in a switch: the upper bound of what hardware could do for streams that share its ports.
//!
//! Each message gets a tag when it comes in: its flow's last tag, or the switch's virtual time where that is later,
//! plus its slots over the flow's weight (start-time fair queueing, Goyal et al. 1996, with the tags of ends). Buffers
//! and ports serve the least tag first; virtual time is the tag that was served last. A flow is a stream, or a core, of
//! a host, in one message class. Buffers stay what they are, one for each class and port, and so do the links' credits:
//! what waits for a credit in its host is out of the switch's reach.

use rustc_hash::FxHashMap;

use fencepost_kernel::message::{Flow, Message, MessageClass};

/// The tags of one switch.
#[derive(Clone, Debug, Default)]
pub struct FairQueueing {
    weights: FxHashMap<Flow, f64>,
    /// The last tag of each flow in each class.
    last: FxHashMap<(Flow, usize), f64>,
    /// Of each class.
    virtual_time: Vec<f64>,
}

impl FairQueueing {
    /// With these weights; flows that are not named have 1.
    pub fn new(weights: FxHashMap<Flow, f64>) -> FairQueueing {
        FairQueueing { weights, last: FxHashMap::default(), virtual_time: vec![0.0; MessageClass::COUNT] }
    }

    /// The tag of a message that comes in.
    pub fn tag(&mut self, message: &Message) -> f64 {
        let class = message.class().index();
        let weight = self.weights.get(&message.flow).copied().unwrap_or(1.0);
        let last = self.last.entry((message.flow, class)).or_insert(0.0);
        *last = last.max(self.virtual_time[class]) + message.class().slots() as f64 / weight;
        *last
    }

    /// A message with that tag is served.
    pub fn served(&mut self, message: &Message, tag: f64) {
        let time = &mut self.virtual_time[message.class().index()];
        *time = time.max(tag);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fencepost_kernel::line::LineAddress;
    use fencepost_kernel::message::{Cause, Tag};
    use fencepost_kernel::time::Time;

    fn message(flow: u32) -> Message {
        let read = Message::read(LineAddress(0), Tag(0), Cause::DemandRead, Time::ZERO);
        Message { flow: Flow(flow), ..read }
    }

    #[test]
    fn a_flow_that_sends_much_is_behind_one_that_sends_little() {
        let mut queueing = FairQueueing::new(FxHashMap::default());
        let busy: Vec<f64> = (0..3).map(|_| queueing.tag(&message(1))).collect();
        assert_eq!(busy, [1.0, 2.0, 3.0], "a request without data has one slot");
        assert_eq!(queueing.tag(&message(2)), 1.0);
    }

    #[test]
    fn weights_divide_and_time_that_a_flow_did_not_use_is_gone() {
        let mut queueing = FairQueueing::new(FxHashMap::from_iter([(Flow(1), 4.0)]));
        assert_eq!([queueing.tag(&message(1)), queueing.tag(&message(1))], [0.25, 0.5]);
        queueing.served(&message(1), 0.5);
        assert_eq!(queueing.tag(&message(2)), 1.5);
    }
}
