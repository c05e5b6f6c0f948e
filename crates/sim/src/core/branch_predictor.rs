//! A tournament predictor (McFarling 1993): local and global two-bit counters and a choice between them; a branch
//! target buffer for computed targets and a return address stack.

use super::config::BranchPredictorConfig;
use fencepost_isa::micro_op::{DecodedBlock, Exit};

/// The predictor of one core.
#[derive(Clone, Debug)]
pub struct BranchPredictor {
    local_histories: Box<[u32]>,
    local_counters: Box<[u8]>,
    global_counters: Box<[u8]>,
    choices: Box<[u8]>,
    targets: Box<[(u64, u64)]>,
    returns: Box<[u64]>,
    returns_top: usize,
    global_history: u64,
    local_mask: u64,
    global_mask: u64,
}

impl BranchPredictor {
    /// Knows nothing yet.
    pub fn new(config: &BranchPredictorConfig) -> BranchPredictor {
        let (local, global) = (1usize << config.local_bits, 1usize << config.global_bits);
        BranchPredictor {
            local_histories: vec![0; local].into(),
            local_counters: vec![1; local].into(),
            global_counters: vec![1; global].into(),
            choices: vec![1; global].into(),
            targets: vec![(0, 0); 1 << config.target_bits].into(),
            returns: vec![0; usize::from(config.return_stack_entries)].into(),
            returns_top: 0,
            global_history: 0,
            local_mask: local as u64 - 1,
            global_mask: global as u64 - 1,
        }
    }

    /// Predicts how `block` is left, learns that `next` came, and says whether the prediction was right.
    #[inline]
    pub fn predict(&mut self, block: &DecodedBlock, next: u64) -> bool {
        match block.exit {
            Exit::FallThrough | Exit::Jump => true,
            Exit::Conditional => self.predict_direction(block.last_instruction, next != block.end),
            Exit::Call => {
                self.push_return(block.end);
                true
            }
            Exit::IndirectCall => {
                self.push_return(block.end);
                self.predict_target(block.last_instruction, next)
            }
            Exit::IndirectJump => self.predict_target(block.last_instruction, next),
            Exit::Return => {
                self.returns_top = self.below_top();
                self.returns[self.returns_top] == next
            }
        }
    }

    /// The same for a block that led to a call whose inside is not in the record, and which has returned to `next`:
    /// where a computed target went is not known, and is taken to be what it was before; the return address is
    /// popped, as by the return that is not in the record.
    pub fn predict_around_call(&mut self, block: &DecodedBlock, next: u64) -> bool {
        let is_right = match block.exit {
            Exit::IndirectJump => true,
            Exit::IndirectCall => {
                self.push_return(block.end);
                true
            }
            _ => self.predict(block, next),
        };
        if self.returns[self.below_top()] == next {
            self.returns_top = self.below_top();
        }
        is_right
    }

    #[inline]
    fn predict_direction(&mut self, address: u64, taken: bool) -> bool {
        let history = &mut self.local_histories[(address & self.local_mask) as usize];
        let local = &mut self.local_counters[(u64::from(*history) & self.local_mask) as usize];
        let global = &mut self.global_counters[(self.global_history & self.global_mask) as usize];
        let choice = &mut self.choices[(self.global_history & self.global_mask) as usize];
        let (local_says, global_says) = (*local >= 2, *global >= 2);
        let predicted = if *choice >= 2 { global_says } else { local_says };
        if local_says != global_says {
            count(choice, global_says == taken);
        }
        count(local, taken);
        count(global, taken);
        *history = (*history << 1) | u32::from(taken);
        self.global_history = (self.global_history << 1) | u64::from(taken);
        predicted == taken
    }

    fn predict_target(&mut self, address: u64, next: u64) -> bool {
        let mask = self.targets.len() as u64 - 1;
        let entry = &mut self.targets[((address ^ (address >> 12)) & mask) as usize];
        let right = *entry == (address, next);
        *entry = (address, next);
        right
    }

    /// Where the address pushed last is.
    fn below_top(&self) -> usize {
        (self.returns_top + self.returns.len() - 1) % self.returns.len()
    }

    fn push_return(&mut self, address: u64) {
        self.returns[self.returns_top] = address;
        self.returns_top = (self.returns_top + 1) % self.returns.len();
    }
}

/// A two-bit saturating counter.
#[inline]
fn count(counter: &mut u8, up: bool) {
    *counter = if up { (*counter + 1).min(3) } else { counter.saturating_sub(1) };
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predictor() -> BranchPredictor {
        with_local_bits(11)
    }

    fn with_local_bits(local_bits: u8) -> BranchPredictor {
        BranchPredictor::new(&BranchPredictorConfig {
            local_bits,
            global_bits: 12,
            target_bits: 12,
            return_stack_entries: 16,
        })
    }

    fn block(exit: Exit) -> DecodedBlock {
        DecodedBlock { address: 0x1000, end: 0x1010, last_instruction: 0x100e, exit, ..DecodedBlock::default() }
    }

    #[test]
    fn a_loop_branch_is_learnt() {
        let (mut predictor, block) = (predictor(), block(Exit::Conditional));
        let wrong = (0..1000).filter(|_| !predictor.predict(&block, 0x1000)).count();
        assert!(wrong <= 20, "{wrong} mispredictions of a branch that is always taken");
    }

    #[test]
    fn a_short_pattern_is_learnt_by_its_history() {
        let (mut predictor, block) = (predictor(), block(Exit::Conditional));
        let next = |turn| if turn % 4 == 3 { 0x1010 } else { 0x1000 };
        (0..1000).for_each(|turn| _ = predictor.predict(&block, next(turn)));
        let wrong = (1000..2000).filter(|&turn| !predictor.predict(&block, next(turn))).count();
        assert_eq!(wrong, 0);
    }

    #[test]
    fn a_local_history_is_as_long_as_its_counters_are_many() {
        let mut predictor = with_local_bits(20);
        let (branch, other) =
            (block(Exit::Conditional), DecodedBlock { last_instruction: 0x2000, ..block(Exit::Conditional) });
        // The noise of another branch keeps global history out of it.
        let mut wrong = 0;
        let mut noise = 1_u64;
        for turn in 0..40_000 {
            noise ^= noise << 13;
            noise ^= noise >> 7;
            noise ^= noise << 17;
            predictor.predict(&other, if noise & 1 == 0 { 0x1000 } else { 0x1010 });
            let is_right = predictor.predict(&branch, if turn % 19 == 18 { 0x1010 } else { 0x1000 });
            wrong += u64::from(turn >= 38_000 && !is_right);
        }
        assert!(wrong <= 20, "{wrong} of 2000, a hundred of which end a loop");
    }

    #[test]
    fn a_return_goes_behind_its_call() {
        let mut predictor = predictor();
        assert!(predictor.predict(&block(Exit::Call), 0x9000));
        assert!(predictor.predict(&block(Exit::Return), 0x1010));
    }

    #[test]
    fn a_call_whose_inside_is_not_recorded_leaves_the_return_stack_as_it_was() {
        let outer = DecodedBlock { end: 0x5010, ..block(Exit::Call) };
        let stub = DecodedBlock { last_instruction: 0x3000, ..block(Exit::IndirectJump) };
        let tail = block(Exit::Jump);
        // What is executed before the event: directly, through a pointer, through a stub, and as the last thing a
        // function does.
        let direct: &[(&DecodedBlock, u64)] = &[(&block(Exit::Call), 0x1010)];
        let pointer: &[(&DecodedBlock, u64)] = &[(&block(Exit::IndirectCall), 0x1010)];
        let through_stub: &[(&DecodedBlock, u64)] = &[(&block(Exit::Call), 0x3000), (&stub, 0x1010)];
        for way in [direct, pointer, through_stub] {
            let mut predictor = predictor();
            predictor.predict(&outer, 0x1000);
            let (&(last, next), before) = way.split_last().unwrap();
            for (block, next) in before {
                assert!(predictor.predict(block, *next));
            }
            assert!(predictor.predict_around_call(last, next));
            assert!(predictor.predict(&block(Exit::Return), 0x5010), "{:?}", last.exit);
        }
        let mut predictor = predictor();
        predictor.predict(&outer, 0x1000);
        predictor.predict(&block(Exit::Call), 0x1000);
        assert!(predictor.predict_around_call(&tail, 0x1010));
        assert!(predictor.predict(&block(Exit::Return), 0x5010), "a tail call returns for its caller");
    }

    #[test]
    fn a_stub_s_target_is_not_where_its_caller_goes_on() {
        let mut predictor = predictor();
        let stub = block(Exit::IndirectJump);
        predictor.predict(&stub, 0x7000);
        predictor.predict_around_call(&stub, 0x1010);
        assert!(predictor.predict(&stub, 0x7000), "what was learnt before still holds");
    }
}
