//! What was counted, as a tree of names.
//!
//! Components count in plain structs of their own; this room gives them a common shape to be read in:
//! `host0.core1.l1d.hits`. A region of interest is the tree at its end minus the tree at its start.

mod series;

use hdrhistogram::Histogram as HdrHistogram;
use serde_json::{Map, Value, json};

use crate::message::{LatencyStack, Stage};
use crate::time::Duration;

pub use series::{LevelOverTime, Series};

/// A distribution of durations, in picoseconds; quantiles are exact to 1 %, the mean is exact.
#[derive(Clone, Debug)]
pub struct Histogram {
    buckets: HdrHistogram<u64>,
    sum_ps: u128,
}

impl Default for Histogram {
    fn default() -> Self {
        let buckets = HdrHistogram::new(2).expect("two significant digits are supported");
        Histogram { buckets, sum_ps: 0 }
    }
}

impl Histogram {
    /// Counts one duration.
    #[inline]
    pub fn record(&mut self, duration: Duration) {
        self.buckets.record(duration.as_ps()).expect("the histogram grows as needed");
        self.sum_ps += u128::from(duration.as_ps());
    }

    /// How many were counted.
    #[inline]
    pub fn count(&self) -> u64 {
        self.buckets.len()
    }

    /// Their sum.
    pub fn sum(&self) -> Duration {
        Duration::from_ps(self.sum_ps as u64)
    }

    /// Adds everything that `other` counted.
    pub fn add(&mut self, other: &Histogram) {
        self.buckets.add(&other.buckets).expect("the histogram grows as needed");
        self.sum_ps += other.sum_ps;
    }

    /// What was counted since `earlier`, a copy of this histogram made at that time.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut difference = self.clone();
        difference.buckets.subtract(&earlier.buckets).expect("counts only grow");
        difference.sum_ps -= earlier.sum_ps;
        difference
    }

    /// `{count, mean, p50, p90, p99, max}` in nanoseconds and a cumulative distribution; the figures are null if
    /// nothing was counted.
    pub fn to_json(&self) -> Value {
        if self.count() == 0 {
            return json!({"count": 0, "mean": null, "p50": null, "p90": null, "p99": null, "max": null, "cdf": []});
        }
        let quantile = |q| self.buckets.value_at_quantile(q) as f64 / 1000.0;
        let total = self.count() as f64;
        let mut seen = 0;
        let cdf: Vec<Value> = self
            .buckets
            .iter_recorded()
            .map(|step| {
                seen += step.count_since_last_iteration();
                json!([step.value_iterated_to() as f64 / 1000.0, seen as f64 / total])
            })
            .collect();
        json!({
            "count": self.count(),
            "mean": self.sum_ps as f64 / total / 1000.0,
            "p50": quantile(0.50),
            "p90": quantile(0.90),
            "p99": quantile(0.99),
            "max": self.buckets.max() as f64 / 1000.0,
            "cdf": cdf,
        })
    }
}

/// The latencies of one class of requests, and the sum of their latency stacks.
#[derive(Clone, Debug, Default)]
pub struct LatencySum {
    latency: Histogram,
    parts_ps: [u64; Stage::COUNT],
}

impl LatencySum {
    /// Adds the stack of a request that is complete. The stages `before` lie before the time that is measured as this
    /// class's latency.
    pub fn add(&mut self, stack: &LatencyStack, before: &[Stage]) {
        self.latency.record(stack.total_without(before));
        for (sum, part) in self.parts_ps.iter_mut().zip(stack.parts_ps()) {
            *sum += part;
        }
    }

    /// Adds everything that `other` counted.
    pub fn add_all(&mut self, other: &LatencySum) {
        self.latency.add(&other.latency);
        for (sum, part) in self.parts_ps.iter_mut().zip(other.parts_ps) {
            *sum += part;
        }
    }

    /// How many requests were added.
    #[inline]
    pub fn count(&self) -> u64 {
        self.latency.count()
    }

    /// The latencies.
    pub fn latency(&self) -> &Histogram {
        &self.latency
    }

    /// The time charged to each stage, in picoseconds, in the order of [`Stage::NAMES`].
    pub fn parts_ps(&self) -> [u64; Stage::COUNT] {
        self.parts_ps
    }

    /// As a tree.
    pub fn stats(&self) -> StatsNode {
        let parts = Stage::NAMES.iter().zip(self.parts_ps).map(|(name, part)| (*name, StatsNode::Counter(part)));
        StatsNode::group([("latency", StatsNode::histogram(&self.latency)), ("parts_ps", StatsNode::group(parts))])
    }
}

/// One node of the tree of statistics.
#[derive(Clone, Debug)]
pub enum StatsNode {
    /// A number of things, or a sum of times; the name says the unit.
    Counter(u64),
    /// A highest or latest value: it is not subtracted.
    Level(u64),
    /// A distribution.
    Histogram(Box<Histogram>),
    /// A level over time.
    Series(Box<Series>),
    /// Named children, in a fixed order.
    Group(Vec<(String, StatsNode)>),
}

impl StatsNode {
    /// A node with named children.
    pub fn group<N: Into<String>>(children: impl IntoIterator<Item = (N, StatsNode)>) -> StatsNode {
        StatsNode::Group(children.into_iter().map(|(name, node)| (name.into(), node)).collect())
    }

    /// A node for a distribution.
    pub fn histogram(histogram: &Histogram) -> StatsNode {
        StatsNode::Histogram(Box::new(histogram.clone()))
    }

    /// The node at the end of `path`, names with dots between them.
    pub fn get(&self, path: &str) -> Option<&StatsNode> {
        path.split('.').try_fold(self, |node, name| node.get_child(name))
    }

    fn get_child(&self, name: &str) -> Option<&StatsNode> {
        self.children().iter().find(|(child, _)| child == name).map(|(_, node)| node)
    }

    /// The counter or level at `path`; zero if there is none.
    pub fn counter(&self, path: &str) -> u64 {
        match self.get(path) {
            Some(StatsNode::Counter(value) | StatsNode::Level(value)) => *value,
            _ => 0,
        }
    }

    /// The sum of this and `other`, the same tree counted over another interval. Levels keep the higher value.
    pub fn plus(&self, other: &StatsNode) -> StatsNode {
        match (self, other) {
            (StatsNode::Counter(one), StatsNode::Counter(two)) => StatsNode::Counter(one + two),
            (StatsNode::Level(one), StatsNode::Level(two)) => StatsNode::Level(*one.max(two)),
            (StatsNode::Histogram(one), StatsNode::Histogram(two)) => {
                let mut sum = one.clone();
                sum.add(two);
                StatsNode::Histogram(sum)
            }
            (StatsNode::Series(one), StatsNode::Series(two)) => StatsNode::Series(Box::new(one.plus(two))),
            (StatsNode::Group(children), StatsNode::Group(_)) => {
                StatsNode::group(children.iter().map(|(name, node)| {
                    let node = other.get_child(name).map_or_else(|| node.clone(), |other| node.plus(other));
                    (name.clone(), node)
                }))
            }
            _ => self.clone(),
        }
    }

    /// The children of a group, in their order; nothing if this is a leaf.
    pub fn children(&self) -> &[(String, StatsNode)] {
        match self {
            StatsNode::Group(children) => children,
            _ => &[],
        }
    }

    /// The sum of all counters below this node.
    pub fn total(&self) -> u64 {
        match self {
            StatsNode::Counter(value) => *value,
            StatsNode::Level(_) | StatsNode::Histogram(_) | StatsNode::Series(_) => 0,
            StatsNode::Group(children) => children.iter().map(|(_, node)| node.total()).sum(),
        }
    }

    /// What was counted since `earlier`, the same tree at an earlier time. Names that did not exist then count from
    /// zero.
    pub fn since(&self, earlier: &StatsNode) -> StatsNode {
        match (self, earlier) {
            (StatsNode::Counter(now), StatsNode::Counter(then)) => StatsNode::Counter(now - then),
            (StatsNode::Histogram(now), StatsNode::Histogram(then)) => StatsNode::Histogram(Box::new(now.since(then))),
            (StatsNode::Series(now), StatsNode::Series(then)) => StatsNode::Series(Box::new(now.since(then))),
            (StatsNode::Group(now), StatsNode::Group(_)) => StatsNode::group(now.iter().map(|(name, node)| {
                let node = earlier.get_child(name).map_or_else(|| node.clone(), |then| node.since(then));
                (name.clone(), node)
            })),
            _ => self.clone(),
        }
    }

    /// As a JSON value; distributions in nanoseconds.
    pub fn to_json(&self) -> Value {
        match self {
            StatsNode::Counter(value) | StatsNode::Level(value) => json!(value),
            StatsNode::Histogram(histogram) => histogram.to_json(),
            StatsNode::Series(series) => series.to_json(),
            StatsNode::Group(children) => {
                Value::Object(children.iter().map(|(name, node)| (name.clone(), node.to_json())).collect::<Map<_, _>>())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_region_is_its_end_minus_its_start() {
        let mut histogram = Histogram::default();
        histogram.record(Duration::from_ps(100));
        let tree = |count, histogram: &Histogram| {
            StatsNode::group([
                ("hits", StatsNode::Counter(count)),
                ("peak", StatsNode::Level(count)),
                ("latency", StatsNode::histogram(histogram)),
            ])
        };
        let start = tree(3, &histogram);
        histogram.record(Duration::from_ps(300));
        let region = tree(10, &histogram).since(&start);
        assert_eq!(region.counter("hits"), 7);
        assert_eq!(region.counter("peak"), 10);
        let Some(StatsNode::Histogram(latency)) = region.get("latency") else { panic!("a histogram stays one") };
        assert_eq!((latency.count(), latency.sum()), (1, Duration::from_ps(300)));
    }

    #[test]
    fn quantiles_are_within_one_percent() {
        let mut histogram = Histogram::default();
        for ns in 1..=1000 {
            histogram.record(Duration::from_ps(ns * 1000));
        }
        let json = histogram.to_json();
        for (name, expected) in [("p50", 500.0), ("p99", 990.0), ("mean", 500.5), ("max", 1000.0)] {
            let value = json[name].as_f64().unwrap();
            assert!((value - expected).abs() <= expected * 0.01, "{name}: {value} is not {expected}");
        }
    }
}
