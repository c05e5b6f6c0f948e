//! The first two stages of the pipeline: which ingress buffers get a head that may be allocated, and when.
//!
//! A message spends two stages on decoding and routing. Only the head of a buffer is of interest, so only for heads is
//! a wake asked for, and only one for all heads of the same time.

use std::collections::VecDeque;

use fencepost_kernel::time::Time;

/// The heads that are still in the first two stages.
#[derive(Clone, Debug, Default)]
pub struct Pipeline {
    /// Ascending in time.
    heads: VecDeque<(Time, usize)>,
}

impl Pipeline {
    /// The buffer `source` gets a ready head at `ready`. Tells whether a wake at that time has still to be asked for.
    #[must_use]
    pub fn push(&mut self, ready: Time, source: usize) -> bool {
        let following = self.heads.iter().rev().take_while(|(time, _)| *time > ready).count();
        let position = self.heads.len() - following;
        let is_first_of_its_time = position == 0 || self.heads[position - 1].0 != ready;
        self.heads.insert(position, (ready, source));
        is_first_of_its_time
    }

    /// A buffer whose head is ready at `now`.
    pub fn pop(&mut self, now: Time) -> Option<usize> {
        let (ready, source) = *self.heads.front()?;
        (ready <= now).then(|| {
            self.heads.pop_front();
            source
        })
    }

    /// Drops everything.
    pub fn clear(&mut self) {
        self.heads.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn heads_come_out_in_the_order_of_their_times_and_one_wake_serves_equal_ones() {
        let mut pipeline = Pipeline::default();
        let asked: Vec<bool> = [(30, 1), (10, 2), (30, 3), (20, 4), (10, 5)]
            .map(|(time, source)| pipeline.push(Time::from_ps(time), source))
            .to_vec();
        assert_eq!(asked, [true, true, false, true, false]);
        assert_eq!(pipeline.pop(Time::from_ps(9)), None);
        let ready: Vec<usize> = std::iter::from_fn(|| pipeline.pop(Time::from_ps(29))).collect();
        assert_eq!(ready, [2, 5, 4]);
        assert_eq!(pipeline.pop(Time::from_ps(30)), Some(1));
    }
}
