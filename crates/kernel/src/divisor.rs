//! Division by a number that is known long before: the period of a clock, the banks of a device.
//!
//! A processor takes tens of cycles to divide 64 bits and a few to multiply them, and every event divides its time by a
//! clock.

/// A number to divide by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Divisor {
    divisor: u64,
    /// 2^64 / divisor, rounded down (and never 2^64): a quotient that is estimated with it is right or one too low.
    reciprocal: u64,
}

impl Divisor {
    /// To divide by `divisor`.
    ///
    /// # Panics
    /// If that is 0.
    pub fn new(divisor: u64) -> Divisor {
        Divisor { divisor, reciprocal: u64::MAX / divisor }
    }

    /// `number` divided by it: the quotient, rounded down, and the remainder.
    #[inline]
    pub fn divide(self, number: u64) -> (u64, u64) {
        let quotient = ((u128::from(number) * u128::from(self.reciprocal)) >> 64) as u64;
        let remainder = number - quotient * self.divisor;
        if remainder < self.divisor { (quotient, remainder) } else { (quotient + 1, remainder - self.divisor) }
    }

    /// The quotient, rounded up.
    #[inline]
    pub fn divide_up(self, number: u64) -> u64 {
        let (quotient, remainder) = self.divide(number);
        quotient + u64::from(remainder > 0)
    }

    /// The first multiple of it that is not less than `number`.
    #[inline]
    pub fn next_multiple(self, number: u64) -> u64 {
        let (_, remainder) = self.divide(number);
        if remainder == 0 { number } else { number + (self.divisor - remainder) }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn the_largest_numbers_are_divided_right() {
        for divisor in [1, 2, 3, 250, 833, u64::MAX / 2, u64::MAX - 1, u64::MAX] {
            for number in [0, 1, divisor - 1, divisor, u64::MAX - 1, u64::MAX] {
                let expected = (number / divisor, number % divisor);
                assert_eq!(Divisor::new(divisor).divide(number), expected, "{number} / {divisor}");
            }
        }
    }

    proptest! {
        #[test]
        fn quotients_are_those_of_a_division(number in any::<u64>(), divisor in 1..=u64::MAX, shift in 0u32..64) {
            let shifted = (divisor >> shift).max(1);
            for (number, divisor) in [(number, divisor), (number, shifted), (number >> shift, divisor)] {
                let exact = Divisor::new(divisor);
                prop_assert_eq!(exact.divide(number), (number / divisor, number % divisor));
                prop_assert_eq!(exact.divide_up(number), number.div_ceil(divisor));
                let next = number.checked_next_multiple_of(divisor);
                prop_assert!(next.is_none_or(|next| exact.next_multiple(number) == next));
            }
        }
    }
}
