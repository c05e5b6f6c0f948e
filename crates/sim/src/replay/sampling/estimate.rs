//! From measured intervals to the whole program: means and ratios with 95 % confidence intervals.
//!
//! A mean latency of the whole program is a ratio of two sums over intervals, latency to requests; a rate is one of two
//! counts. Its variance is that of the linearised ratio (Cochran, Sampling Techniques, 3rd edition, chapter 6), its
//! confidence interval uses Student's t with one degree of freedom less than there are intervals that have anything to
//! say. Intervals of systematic sampling are taken as if they were independent, which overstates the error of a program
//! whose phases are longer than a period.

use super::regression::{Total, half_width};

/// What one interval gives to a ratio.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Pair {
    /// What is summed above the line.
    pub numerator: f64,
    /// What is summed below it.
    pub denominator: f64,
}

/// An estimate with its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// The ratio of the sums.
    pub value: f64,
    /// Half the width of the 95 % confidence interval, in the unit of `value`; none if fewer than two intervals have
    /// anything to say.
    pub half_width: Option<f64>,
}

impl Estimate {
    /// The same in another unit.
    pub fn times(self, factor: f64) -> Estimate {
        Estimate { value: self.value * factor, half_width: self.half_width.map(|half| half * factor.abs()) }
    }
}

/// The ratio of the sums; none if there is nothing below the line.
pub fn ratio(pairs: &[Pair]) -> Option<Estimate> {
    let (value, errors) = relative_errors(pairs)?;
    Some(Estimate { value, half_width: half_width(&errors, 1).map(|half| half * value.abs()) })
}

/// The ratio of two totals that were measured in the same intervals, each with what every interval contributes to its
/// error: what goes wrong in both alike (a phase that is slow under every scheme) cancels out.
pub fn matched_ratio(above: &Total, below: &Total) -> Option<Estimate> {
    if above.value == 0.0 || below.value == 0.0 {
        return None;
    }
    let value = above.value / below.value;
    let errors = above.errors.iter().zip(&below.errors);
    let errors: Vec<f64> = errors.map(|(one, other)| one / above.value - other / below.value).collect();
    let half = half_width(&errors, above.coefficients.max(below.coefficients));
    Some(Estimate { value, half_width: half.map(|half| half * value.abs()) })
}

/// The ratio of sums of which one counts a part of what the other counts. Where all were of that part, or none, nothing
/// is known of how rare the others are, and so of the error.
pub fn share(pairs: &[Pair]) -> Option<Estimate> {
    let Estimate { value, half_width } = ratio(pairs)?;
    Some(Estimate { value, half_width: half_width.filter(|_| value > 0.0 && value < 1.0) })
}

/// The ratio, and by which part of it each interval that has something to say lies off.
fn relative_errors(pairs: &[Pair]) -> Option<(f64, Vec<f64>)> {
    let numerator: f64 = pairs.iter().map(|pair| pair.numerator).sum();
    let denominator: f64 = pairs.iter().map(|pair| pair.denominator).sum();
    if denominator <= 0.0 {
        return None;
    }
    let value = numerator / denominator;
    let off = |pair: &Pair| {
        if numerator == 0.0 { 0.0 } else { (pair.numerator - value * pair.denominator) / numerator }
    };
    Some((value, pairs.iter().filter(|pair| pair.denominator > 0.0).map(off).collect()))
}

/// The 97.5 % quantile of Student's t with `degrees` of freedom (Hill: Algorithm 396, Communications of the ACM 13,
/// 1970), to six digits.
///
/// # Panics
/// If `degrees` is zero.
pub fn student_t_975(degrees: usize) -> f64 {
    use std::f64::consts::FRAC_PI_2;
    /// Probability outside of both quantiles.
    const OUTSIDE: f64 = 0.05;
    /// The 2.5 % quantile of the normal distribution.
    const NORMAL: f64 = -1.959_963_984_540_054;
    assert!(degrees > 0, "one interval has no spread");
    let n = degrees as f64;
    match degrees {
        1 => return 1.0 / (FRAC_PI_2 * OUTSIDE).tan(),
        2 => return (2.0 / (OUTSIDE * (2.0 - OUTSIDE)) - 2.0).sqrt(),
        _ => {}
    }
    let a = 1.0 / (n - 0.5);
    let b = 48.0 / (a * a);
    let mut c = ((20_700.0 * a / b - 98.0) * a - 16.0) * a + 96.36;
    let d = ((94.5 / (b + c) - 3.0) / b + 1.0) * (a * FRAC_PI_2).sqrt() * n;
    let mut y = (d * OUTSIDE).powf(2.0 / n);
    if y > 0.05 + a {
        let x = NORMAL;
        y = x * x;
        if degrees < 5 {
            c += 0.3 * (n - 4.5) * (x + 0.6);
        }
        c += (((0.05 * d * x - 5.0) * x - 7.0) * x - 2.0) * x + b;
        y = (((((0.4 * y + 6.3) * y + 36.0) * y + 94.5) / c - y - 3.0) / b + 1.0) * x;
        y = (a * y * y).exp_m1();
    } else {
        y = ((1.0 / (((n + 6.0) / (n * y) - 0.089 * d - 0.822) * (n + 2.0) * 3.0) + 0.5 / (n + 4.0)) * y - 1.0)
            * (n + 1.0)
            / (n + 2.0)
            + 1.0 / y;
    }
    (n * y).sqrt()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pairs(values: &[(f64, f64)]) -> Vec<Pair> {
        values.iter().map(|&(numerator, denominator)| Pair { numerator, denominator }).collect()
    }

    #[test]
    fn quantiles_are_those_of_the_tables() {
        // Any table of Student's t: two-sided 5 %.
        let table = [
            (1, 12.706),
            (2, 4.303),
            (3, 3.182),
            (4, 2.776),
            (5, 2.571),
            (9, 2.262),
            (10, 2.228),
            (29, 2.045),
            (60, 2.000),
            (120, 1.980),
            (100_000, 1.960),
        ];
        for (degrees, expected) in table {
            let value = student_t_975(degrees);
            assert!((value - expected).abs() < 1e-3, "{degrees} degrees: {value} is not {expected}");
        }
    }

    #[test]
    fn a_mean_has_the_interval_of_the_textbook() {
        // Mean 12, standard deviation 2, four values: 12 ± 3.182 * 2 / 2.
        let estimate = ratio(&pairs(&[(10.0, 1.0), (10.84, 1.0), (13.16, 1.0), (14.0, 1.0)])).unwrap();
        let deviation = ((4.0 + 1.16 * 1.16 + 1.16 * 1.16 + 4.0) / 3.0f64).sqrt();
        assert!((estimate.value - 12.0).abs() < 1e-12);
        assert!((estimate.half_width.unwrap() - 3.18245 * deviation / 2.0).abs() < 1e-4);
    }

    #[test]
    fn intervals_count_by_their_weight_and_exact_proportion_has_no_error() {
        let estimate = ratio(&pairs(&[(2.0, 1.0), (8.0, 4.0), (6.0, 3.0)])).unwrap();
        assert_eq!(estimate, Estimate { value: 2.0, half_width: Some(0.0) });
        assert_eq!(estimate.times(10.0).value, 20.0);
    }

    #[test]
    fn what_matched_intervals_have_in_common_cancels_out() {
        let slow = Total { value: 280.0, errors: vec![-73.0, -33.0, 106.0], coefficients: 1 };
        let fast =
            Total { value: 140.0, errors: slow.errors.iter().map(|error| error / 2.0).collect(), coefficients: 1 };
        let matched = matched_ratio(&slow, &fast).unwrap();
        assert!((matched.value - 2.0).abs() < 1e-12 && matched.half_width.unwrap() < 1e-9);
        assert!(slow.estimate().half_width.unwrap() > 200.0, "each alone varies as its phases do");
    }

    #[test]
    fn a_share_of_all_or_nothing_has_no_confidence() {
        let half_width = |counts: &[(f64, f64)]| share(&pairs(counts)).unwrap().half_width;
        assert_eq!(half_width(&[(0.0, 5.0), (0.0, 7.0)]), None);
        assert_eq!(half_width(&[(5.0, 5.0), (7.0, 7.0)]), None);
        assert!(half_width(&[(4.0, 5.0), (7.0, 7.0)]).unwrap() > 0.0);
    }

    #[test]
    fn one_interval_has_no_confidence_and_none_no_value() {
        assert_eq!(ratio(&pairs(&[(3.0, 1.0)])).unwrap().half_width, None);
        assert_eq!(ratio(&[]), None);
        assert_eq!(ratio(&pairs(&[(0.0, 0.0), (0.0, 0.0)])), None, "no request in any interval");
        let empty = pairs(&[(3.0, 1.0), (0.0, 0.0), (0.0, 0.0)]);
        assert_eq!(ratio(&empty).unwrap().half_width, None, "two of them have nothing to say");
        let nothing = Total { value: 0.0, errors: vec![], coefficients: 1 };
        assert_eq!(matched_ratio(&nothing, &nothing), None);
    }
}
