//! Which images of one instant are made: of the versions that each line in doubt may have, all combinations, or a
//! bounded choice of them.
//!
//! Where all combinations are more than the bound, these come first, in this order: only what was promised; everything
//! visible; all combinations of whole versions, if they are at most half of the bound; what was visible at each moment
//! before (as if lines were evicted in the order of their stores); one line alone newer than promised; one line alone
//! older than visible. What is left of the bound is drawn at random from a seed.

/// For each line in doubt the number of its content: 0 is what was promised, the last is what is visible.
pub type Choice = Vec<u32>;

/// The lines in doubt at an instant.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Doubt {
    /// By line: how many different contents it may have, at least 2.
    pub contents: Vec<u32>,
    /// By line: which of them are a number of whole versions; the first and the last are.
    pub wholes: Vec<Vec<u32>>,
    /// Whether a line may have more contents than these.
    pub is_cut: bool,
    /// The order in which contents became visible: line, content number.
    pub order: Vec<(u32, u32)>,
}

impl Doubt {
    /// How many combinations there are; as a float, since there may be very many.
    pub fn combinations(&self) -> f64 {
        self.contents.iter().map(|&contents| f64::from(contents)).product()
    }

    /// At most `bound` choices (at least two), and whether these are all.
    pub fn choices(&self, bound: usize, seed: u64) -> (Vec<Choice>, bool) {
        if self.combinations() <= bound as f64 {
            return (all(&self.every_content()), !self.is_cut);
        }
        let mut chosen = Chosen { choices: Vec::new(), seen: std::collections::HashSet::new(), bound };
        let (oldest, newest) = (vec![0; self.contents.len()], self.newest());
        chosen.add(oldest.clone());
        chosen.add(newest.clone());
        self.add_wholes(&mut chosen, bound / 2);
        self.add_cuts(&mut chosen, bound / 3);
        self.add_single(&mut chosen, &oldest, &newest, bound * 5 / 6);
        let mut state = seed;
        for _ in 0..4 * bound {
            // A store that is torn somewhere is rarely what decides.
            let is_whole = random(&mut state).is_multiple_of(2);
            let mut draw = |&contents: &u32| (random(&mut state) % u64::from(contents)) as u32;
            let choice: Choice = if is_whole {
                self.wholes.iter().map(|wholes| wholes[draw(&(wholes.len() as u32)) as usize]).collect()
            } else {
                self.contents.iter().map(draw).collect()
            };
            chosen.add(choice);
        }
        (chosen.choices, false)
    }

    /// The same of these lines alone.
    #[must_use]
    pub fn only(&self, lines: &[usize]) -> Doubt {
        let contents = lines.iter().map(|&line| self.contents[line]).collect();
        let wholes = lines.iter().map(|&line| self.wholes[line].clone()).collect();
        let place = |line: u32| lines.binary_search(&(line as usize)).ok();
        let order = self.order.iter().filter_map(|&(line, content)| Some((place(line)? as u32, content))).collect();
        Doubt { contents, wholes, is_cut: self.is_cut, order }
    }

    fn newest(&self) -> Choice {
        self.contents.iter().map(|contents| contents - 1).collect()
    }

    fn every_content(&self) -> Vec<Vec<u32>> {
        self.contents.iter().map(|&contents| (0..contents).collect()).collect()
    }

    /// All combinations of whole versions, if they are at most `most`, and other contents make them more.
    fn add_wholes(&self, chosen: &mut Chosen, most: usize) {
        let combinations: f64 = self.wholes.iter().map(|wholes| wholes.len() as f64).product();
        if combinations <= most as f64 {
            all(&self.wholes).into_iter().for_each(|choice| chosen.add(choice));
        }
    }

    /// What was visible at moments before, at most `most` of them, evenly spread.
    fn add_cuts(&self, chosen: &mut Chosen, most: usize) {
        let stride = self.order.len().div_ceil(most.max(1)).max(1);
        let mut choice = vec![0; self.contents.len()];
        for (number, &(line, content)) in self.order.iter().enumerate() {
            choice[line as usize] = content;
            if number % stride == 0 {
                chosen.add(choice.clone());
            }
        }
    }

    /// One line alone newer or older than all others, as long as there are fewer than `most` choices.
    fn add_single(&self, chosen: &mut Chosen, oldest: &Choice, newest: &Choice, most: usize) {
        let lines = self.contents.len();
        for line in (0..lines).rev() {
            let wholes = &self.wholes[line];
            for (from, content) in
                [(oldest, newest[line]), (newest, 0), (newest, wholes[wholes.len() - 2]), (oldest, wholes[1])]
            {
                if chosen.choices.len() >= most {
                    return;
                }
                let mut choice = from.clone();
                choice[line] = content;
                chosen.add(choice);
            }
        }
    }
}

/// All combinations of these contents of the lines.
fn all(contents: &[Vec<u32>]) -> Vec<Choice> {
    let mut choices = vec![Choice::new()];
    for contents in contents {
        let longer = |choice: Choice| {
            contents.iter().map(move |&content| choice.iter().copied().chain([content]).collect::<Choice>())
        };
        choices = choices.into_iter().flat_map(longer).collect();
    }
    choices
}

struct Chosen {
    choices: Vec<Choice>,
    seen: std::collections::HashSet<Choice>,
    bound: usize,
}

impl Chosen {
    fn add(&mut self, choice: Choice) {
        if self.choices.len() < self.bound && self.seen.insert(choice.clone()) {
            self.choices.push(choice);
        }
    }
}

/// SplitMix64 (Steele, Lea, Flood: Fast Splittable Pseudorandom Number Generators, 2014).
fn random(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let value = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    value ^ (value >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines of whole versions.
    fn doubt(contents: Vec<u32>, order: Vec<(u32, u32)>) -> Doubt {
        let wholes = contents.iter().map(|&contents| (0..contents).collect()).collect();
        Doubt { contents, wholes, is_cut: false, order }
    }

    #[test]
    fn few_combinations_are_all_made() {
        let doubt = doubt(vec![2, 3], Vec::new());
        let (choices, is_all) = doubt.choices(6, 0);
        assert!(is_all);
        assert_eq!(choices, [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]].map(Vec::from));
        assert_eq!(Doubt::default().choices(6, 0), (vec![Vec::new()], true), "nothing in doubt is one image");
    }

    #[test]
    fn of_many_the_outermost_come_first_and_the_same_seed_draws_the_same() {
        let order = (0..20).map(|line| (line, 1)).collect();
        let doubt = doubt(vec![2; 20], order);
        let (choices, is_all) = doubt.choices(100, 7);
        assert!(!is_all && choices.len() == 100);
        assert_eq!(choices[..2], [vec![0; 20], vec![1; 20]]);
        for line in 0..20 {
            let mut alone = vec![0; 20];
            alone[line] = 1;
            assert!(choices.contains(&alone), "line {line} alone");
            let lost = alone.iter().map(|content| 1 - content).collect();
            assert!(choices.contains(&lost), "all but line {line}");
        }
        assert_eq!(doubt.choices(100, 7).0, choices);
        assert_ne!(doubt.choices(100, 8).0, choices);
    }
}
