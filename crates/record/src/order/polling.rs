//! Rounds that look like waiting and are kept: what a thread reads in them again and again, others store to. A replay
//! makes as many of them as the recording did, whatever the machine.

/// The rounds of one run that read what the one before did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Polled {
    pub from: u64,
    pub to: u64,
    /// Their instructions where nobody knows what ended the run.
    pub instructions: u64,
    /// Where a count or a clock did: at its end there was nothing new to see.
    pub by_count: u64,
}

/// Adds a run to those of its thread that were over before. What loops inside of it have polled counts once.
pub(super) fn add(runs: &mut Vec<Polled>, mut run: Polled) {
    let first = runs.iter().rposition(|of| of.from < run.from).map_or(0, |last| last + 1);
    let (inside, behind): (Vec<Polled>, Vec<Polled>) = runs.drain(first..).partition(|of| of.from < run.to);
    let open: u64 = inside.iter().map(|of| of.instructions).sum();
    let all = (run.instructions + run.by_count).max(inside.iter().map(|of| of.instructions + of.by_count).sum());
    run.instructions = if run.instructions > 0 { all } else { open };
    run.by_count = all - run.instructions;
    runs.push(run);
    runs.extend(behind);
}

#[cfg(test)]
mod tests {
    use super::{Polled, add};

    fn run(from: u64, to: u64, instructions: u64, by_count: u64) -> Polled {
        Polled { from, to, instructions, by_count }
    }

    #[test]
    fn what_loops_inside_have_polled_counts_once() {
        let mut runs = vec![run(0, 5, 7, 0), run(10, 14, 3, 0), run(14, 18, 0, 2), run(30, 35, 1, 0)];
        add(&mut runs, run(10, 20, 0, 40));
        assert_eq!(runs, [run(0, 5, 7, 0), run(10, 20, 3, 37), run(30, 35, 1, 0)]);
    }

    #[test]
    fn a_run_whose_end_nobody_knows_says_nothing_of_counts_inside() {
        let mut runs = vec![run(10, 14, 0, 9)];
        add(&mut runs, run(10, 20, 4, 0));
        assert_eq!(runs, [run(10, 20, 9, 0)]);
    }
}
