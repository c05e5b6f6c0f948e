//! How much a channel or a group counts beside others.

/// A weight. Its range keeps sums and quotients of weights finite.
#[derive(Clone, Copy, Debug, PartialEq, PartialOrd)]
pub struct Weight(f64);

/// A weight that is no number from [`Weight::LEAST`] to [`Weight::MOST`].
#[derive(Clone, Copy, Debug)]
pub struct WeightError {
    /// The refused value.
    pub weight: f64,
}

impl Weight {
    /// 1.
    pub const ONE: Weight = Weight(1.0);
    /// The least weight that there is.
    pub const LEAST: f64 = 1e-6;
    /// The greatest weight that there is.
    pub const MOST: f64 = 1e6;

    /// # Errors
    /// If `weight` is not from [`Weight::LEAST`] to [`Weight::MOST`].
    pub fn new(weight: f64) -> Result<Weight, WeightError> {
        if (Weight::LEAST..=Weight::MOST).contains(&weight) { Ok(Weight(weight)) } else { Err(WeightError { weight }) }
    }

    /// Its value.
    pub fn get(self) -> f64 {
        self.0
    }
}

impl std::fmt::Display for WeightError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(to, "weight {}: must be from {} to {}", self.weight, Weight::LEAST, Weight::MOST)
    }
}

impl std::error::Error for WeightError {}
