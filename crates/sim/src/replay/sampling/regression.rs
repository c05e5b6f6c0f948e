//! The total of something measured in intervals, helped by what is known of all instructions.
//!
//! Functional warming counts persists, misses and mispredictions of the whole program. Where an interval's time follows
//! from its counts, the time of the whole follows from the whole's counts, whether or not the few bursts of a program
//! fell into intervals as often as they should: the generalised regression estimator (Särndal, Swensson, Wretman: Model
//! Assisted Survey Sampling, chapter 6).
//!
//! Which counts help is chosen from the same intervals, and what was chosen because it narrows the residuals makes them
//! look narrower than they are. So the error is not computed from the residuals but by the jackknife (Efron and
//! Tibshirani: An Introduction to the Bootstrap, chapter 11): the whole estimate, choice included, again without each
//! interval.

use super::estimate::{Estimate, student_t_975};

/// What one interval gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Observation {
    /// What was measured.
    pub value: f64,
    /// What it is helped by; the first is never zero.
    pub known: Vec<f64>,
}

/// An estimate of a total.
#[derive(Clone, Debug, PartialEq)]
pub struct Total {
    /// The total.
    pub value: f64,
    /// What each interval contributes to its error: by how much the estimate changes without it.
    pub errors: Vec<f64>,
    /// How many coefficients the intervals had to determine.
    pub coefficients: usize,
}

/// Intervals needed for each coefficient.
const INTERVALS_PER_COEFFICIENT: usize = 10;

/// By how much a further coefficient has to narrow the confidence interval.
const WORTH_IT: f64 = 0.95;

/// Times that the estimate is made again at most. Of more intervals several are left out at a time.
const JACKKNIFE_GROUPS_MAX: usize = 200;

/// The part of a column that has to be its own, not explained by those before it.
const OWN_PART: f64 = 1e-9;

impl Total {
    /// With its 95 % confidence interval.
    pub fn estimate(&self) -> Estimate {
        Estimate { value: self.value, half_width: half_width(&self.errors, self.coefficients) }
    }
}

/// Half the width of the 95 % confidence interval of a sum with these errors; none if there are not more of them than
/// coefficients.
pub fn half_width(errors: &[f64], coefficients: usize) -> Option<f64> {
    let degrees = errors.len().checked_sub(coefficients).filter(|degrees| *degrees > 0)?;
    let squares: f64 = errors.iter().map(|error| error * error).sum();
    Some(student_t_975(degrees) * (squares * errors.len() as f64 / degrees as f64).sqrt())
}

/// Estimates the total of the values where everything known adds up to `totals`; none without intervals.
pub fn total(observations: &[Observation], totals: &[f64]) -> Option<Total> {
    let chosen = fit_of_choice(observations, totals)?;
    Some(Total { errors: jackknife(observations, totals).unwrap_or(chosen.errors), ..chosen })
}

/// The same without its error.
pub fn value(observations: &[Observation], totals: &[f64]) -> Option<f64> {
    fit_of_choice(observations, totals).map(|total| total.value)
}

/// What each interval contributes to the error of the whole estimate; none if there is but one.
fn jackknife(observations: &[Observation], totals: &[f64]) -> Option<Vec<f64>> {
    let (all, groups) = (observations.len(), observations.len().min(JACKKNIFE_GROUPS_MAX));
    let without = |group: usize| {
        let rest = observations.iter().enumerate().filter(|(index, _)| index % groups != group);
        value(&rest.map(|(_, observation)| observation.clone()).collect::<Vec<_>>(), totals)
    };
    let values: Vec<f64> = (0..groups).map(without).collect::<Option<_>>()?;
    let mean = values.iter().sum::<f64>() / groups as f64;
    // So that `half_width` of them with one coefficient is that of the jackknife.
    let scale = ((groups - 1) as f64 / groups as f64 * (all - 1) as f64 / all as f64).sqrt();
    let members = |group: usize| (all - group).div_ceil(groups) as f64;
    let error = |index: usize| (mean - values[index % groups]) * scale / members(index % groups).sqrt();
    Some((0..all).map(error).collect())
}

/// The first column always helps; of the others those, one after the other, that make the residuals' confidence
/// interval narrowest, as long as they do: a count that the sample has met too rarely, or another proportion of, widens
/// it.
fn fit_of_choice(observations: &[Observation], totals: &[f64]) -> Option<Total> {
    let most = observations.len() / INTERVALS_PER_COEFFICIENT;
    let mut columns = vec![0];
    let mut best = fit(observations, totals, &columns)?;
    while columns.len() < most {
        let others = (1..totals.len()).filter(|column| !columns.contains(column));
        let tried = others.filter_map(|column| {
            let columns: Vec<usize> = columns.iter().copied().chain([column]).collect();
            let total = fit(observations, totals, &columns)?;
            Some((half_width(&total.errors, columns.len())?, column, total))
        });
        let narrowest = tried.min_by(|one, other| one.0.total_cmp(&other.0));
        match (narrowest, half_width(&best.errors, columns.len())) {
            (Some((half, column, total)), Some(before)) if half < WORTH_IT * before => {
                columns.push(column);
                best = total;
            }
            _ => break,
        }
    }
    Some(best)
}

/// The estimate by some of the columns; none if one of them is made up by the others.
fn fit(observations: &[Observation], totals: &[f64], columns: &[usize]) -> Option<Total> {
    let inverse = inverse_of_products(observations, columns)?;
    let weighed = |weights: &[f64], observation: &Observation| -> f64 {
        weights.iter().zip(columns).map(|(weight, &column)| weight * observation.known[column]).sum()
    };
    let wanted: Vec<f64> = columns.iter().map(|&column| totals[column]).collect();
    let mut products = vec![0.0; columns.len()];
    for observation in observations {
        for (product, &column) in products.iter_mut().zip(columns) {
            *product += observation.known[column] * observation.value;
        }
    }
    let (coefficients, calibration) = (times(&inverse, &products), times(&inverse, &wanted));
    let error = |observation: &Observation| {
        weighed(&calibration, observation) * (observation.value - weighed(&coefficients, observation))
    };
    Some(Total {
        value: dot(&coefficients, &wanted),
        errors: observations.iter().map(error).collect(),
        coefficients: columns.len(),
    })
}

/// The inverse of the matrix of the columns' products with each other; none if a column is made up by those before it.
fn inverse_of_products(observations: &[Observation], columns: &[usize]) -> Option<Vec<Vec<f64>>> {
    let product = |one: usize, other: usize| -> f64 {
        observations.iter().map(|observation| observation.known[one] * observation.known[other]).sum()
    };
    let mut inverse: Vec<Vec<f64>> = Vec::new();
    for (index, &column) in columns.iter().enumerate() {
        let own = product(column, column);
        let shared: Vec<f64> = columns[..index].iter().map(|&other| product(column, other)).collect();
        let explained = times(&inverse, &shared);
        // What is left of the column when those before it are taken out.
        let rest = own - dot(&shared, &explained);
        if own <= 0.0 || rest <= OWN_PART * own {
            return None;
        }
        // The inverse of the matrix bordered by one more row and column.
        for (row, one) in inverse.iter_mut().zip(&explained) {
            for (element, other) in row.iter_mut().zip(&explained) {
                *element += one * other / rest;
            }
            row.push(-one / rest);
        }
        inverse.push(explained.iter().map(|one| -one / rest).chain([1.0 / rest]).collect());
    }
    Some(inverse)
}

fn dot(one: &[f64], other: &[f64]) -> f64 {
    one.iter().zip(other).map(|(one, other)| one * other).sum()
}

fn times(matrix: &[Vec<f64>], vector: &[f64]) -> Vec<f64> {
    matrix.iter().map(|row| dot(row, vector)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Forty intervals of 100 instructions; each eighth has `bursts` persists.
    fn observations(bursts: f64, value: impl Fn(usize, f64) -> f64) -> Vec<Observation> {
        let observation = |index: usize| {
            let persists = if index % 8 == 3 { bursts } else { 0.0 };
            Observation { value: value(index, persists), known: vec![100.0, persists] }
        };
        (0..40).map(observation).collect()
    }

    #[test]
    fn what_follows_from_counts_is_exact_however_many_bursts_were_met() {
        let total = total(&observations(7.0, |_, persists| 50.0 + 300.0 * persists), &[1e6, 1e4]).unwrap();
        assert!((total.value - (0.5e6 + 300.0 * 1e4)).abs() < 1e-3, "{}", total.value);
        assert_eq!(total.coefficients, 2);
        assert!(total.estimate().half_width.unwrap() < 1e-3);
    }

    #[test]
    fn without_anything_else_it_is_the_ratio_estimator() {
        let observations = observations(0.0, |index, _| 40.0 + (index % 5) as f64);
        let total = total(&observations, &[4e5, 0.0]).unwrap();
        let pairs: Vec<_> = observations
            .iter()
            .map(|one| super::super::estimate::Pair { numerator: one.value, denominator: one.known[0] })
            .collect();
        let ratio = super::super::estimate::ratio(&pairs).unwrap().times(4e5);
        assert!((total.value - ratio.value).abs() < 1e-6, "{total:?} {ratio:?}");
        assert!((total.estimate().half_width.unwrap() - ratio.half_width.unwrap()).abs() < 1e-6);
    }

    #[test]
    fn columns_that_say_the_same_count_once() {
        let mut observations = observations(7.0, |index, persists| 50.0 + 300.0 * persists + (index % 5) as f64);
        observations.iter_mut().for_each(|one| one.known.push(one.known[0] * 3.0 + one.known[1]));
        assert_eq!(total(&observations, &[1e6, 1e4, 3e6 + 1e4]).unwrap().coefficients, 2);
    }

    #[test]
    fn a_count_that_was_met_too_rarely_does_not_help() {
        // One interval has all the persists that were met, and took about as long as the others.
        let observation = |index: usize| Observation {
            value: 50.0 + (index % 5) as f64,
            known: vec![100.0, if index == 17 { 1.0 } else { 0.0 }],
        };
        let observations: Vec<_> = (0..40).map(observation).collect();
        let total = total(&observations, &[1e6, 1e6]).unwrap();
        assert_eq!(total.coefficients, 1);
        assert!((total.value - 0.52e6).abs() < 1.0, "{}", total.value);
    }

    #[test]
    fn few_intervals_determine_few_coefficients() {
        let all = observations(7.0, |_, persists| 50.0 + 300.0 * persists);
        assert_eq!(total(&all[..19], &[1e6, 1e4]).unwrap().coefficients, 1);
        assert_eq!(total(&all[..20], &[1e6, 1e4]).unwrap().coefficients, 2);
        assert_eq!(total(&[], &[1e6, 1e4]), None);
    }

    #[test]
    fn confidence_covers_the_truth_about_as_often_as_it_says() {
        // Sums of noisy intervals whose true total is known; a generator without a pattern (Knuth's MMIX constants).
        let mut state = 1u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let mut covered = 0;
        for _ in 0..400 {
            let observations: Vec<_> = (0..40)
                .map(|_| {
                    let persists = (uniform() * 4.0).floor();
                    let noise: f64 = (0..6).map(|_| uniform() - 0.5).sum();
                    Observation { value: 50.0 + 30.0 * persists + 20.0 * noise, known: vec![100.0, persists] }
                })
                .collect();
            // 10 000 such intervals.
            let total = total(&observations, &[1e6, 15_000.0]).unwrap();
            let half = total.estimate().half_width.unwrap();
            covered += u32::from((total.value - (0.5e6 + 30.0 * 15_000.0)).abs() <= half);
        }
        assert!((360..=396).contains(&covered), "{covered} of 400 intervals cover the total");
    }

    #[test]
    fn what_is_chosen_because_it_narrows_the_residuals_does_not_narrow_the_confidence() {
        // Twenty to thirty intervals and seven counts that have nothing to do with their time.
        let mut state = 7u64;
        let mut uniform = move || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (state >> 11) as f64 / (1u64 << 53) as f64
        };
        let (mut covered, mut covered_by_residuals, mut chosen) = (0, 0, 0);
        for round in 0..600 {
            let observations: Vec<_> = (0..20 + round % 11)
                .map(|_| {
                    let known = [100.0].into_iter().chain((0..7).map(|_| (uniform() * 6.0).floor())).collect();
                    let noise: f64 = (0..6).map(|_| uniform() - 0.5).sum();
                    Observation { value: 70.0 + 20.0 * noise, known }
                })
                .collect();
            let totals: Vec<f64> = [1e6].into_iter().chain([25_000.0; 7]).collect();
            let covers = |total: &Total| (total.value - 0.7e6).abs() <= total.estimate().half_width.unwrap();
            let residuals = fit_of_choice(&observations, &totals).unwrap();
            let total = total(&observations, &totals).unwrap();
            assert_eq!((total.value, total.coefficients), (residuals.value, residuals.coefficients));
            covered += u32::from(covers(&total));
            covered_by_residuals += u32::from(covers(&residuals));
            chosen += u32::from(total.coefficients > 1);
        }
        println!("{covered} by the jackknife, {covered_by_residuals} by the residuals, {chosen} with a choice");
        assert!(chosen > 200, "only {chosen} have chosen a count");
        assert!(covered_by_residuals < 552, "{covered_by_residuals} of 600 by the residuals: they would do");
        assert!((560..=597).contains(&covered), "{covered} of 600 intervals cover the total");
    }

    #[test]
    fn of_many_intervals_several_are_left_out_at_a_time_and_the_error_stays_the_same() {
        let noisy = |index: usize| 40.0 + (index * 7919 % 1009) as f64 / 100.0;
        let all: Vec<_> = (0..1700).map(|index| Observation { value: noisy(index), known: vec![100.0] }).collect();
        let total = total(&all, &[1e6]).unwrap();
        let plain = half_width(&fit_of_choice(&all, &[1e6]).unwrap().errors, 1).unwrap();
        let half = total.estimate().half_width.unwrap();
        assert!((half / plain - 1.0).abs() < 0.15, "{half} against {plain}");
    }
}
