//! What the formal models say of a litmus test.

use std::collections::BTreeSet;

use super::litmus_test::{Isa, LitmusTest, NvmState};
use super::{parmv8, px86};

/// The states that a power cut may leave of `test`, by the model of its instruction set.
pub fn states(test: &LitmusTest) -> BTreeSet<NvmState> {
    match test.isa {
        Isa::X86 => px86::states(test),
        Isa::Arm => parmv8::states(test),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::memory_model::published;

    #[test]
    fn every_published_verdict_comes_out_of_the_models() {
        for test in published::processor_tests() {
            let states = states(&test);
            let is_allowed = states.iter().any(|state| test.query.holds(state));
            assert_eq!(is_allowed, test.is_allowed, "{}: {}, {states:?}", test.id, test.text);
        }
    }

    #[test]
    fn the_numbers_of_states_are_those_published_and_those_pinned_here() {
        let x86 = [4, 3, 3, 4, 3, 3, 3, 4, 5, 5, 5, 5, 8, 3, 4, 3, 5, 5, 3];
        let arm = [3, 4, 4, 3, 4, 5, 6, 15];
        for (test, pinned) in published::processor_tests().iter().zip(x86.into_iter().chain(arm)) {
            let counted = states(test).len();
            assert_eq!(counted, pinned, "{}: {}", test.id, test.text);
            assert_eq!(counted, test.published_states.unwrap_or(counted), "{}: {}", test.id, test.text);
        }
    }

    #[test]
    fn a_crash_may_come_before_anything() {
        for test in published::processor_tests() {
            assert!(states(&test).contains(&vec![0; test.locations.len()]), "{}", test.id);
        }
    }
}
