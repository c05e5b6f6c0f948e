//! Shares within shares: tenants with hosts, hosts with threads.

use crate::{Bandwidth, Claim, Law};

/// An inner node: a group whose channels share what the group gets.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The group that this one belongs to; the device itself where there is none.
    pub parent: Option<usize>,
    /// Its part relative to its siblings', above zero.
    pub weight: f64,
}

/// Why nodes are no hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HierarchyError {
    /// This node's parent does not stand before it.
    ParentNotBefore(usize),
    /// This node's weight is not above zero.
    Weight(usize),
}

/// The groups of a device, and the share of each in the last interval.
#[derive(Clone, Debug)]
pub struct Hierarchy {
    nodes: Vec<Node>,
    /// By node, and last the device's: the share per unit of weight among its children.
    shares: Vec<Option<Bandwidth>>,
}

impl Hierarchy {
    /// Each node's parent has to stand before it.
    ///
    /// # Errors
    /// The first node that has no such parent, or no weight.
    pub fn new(nodes: Vec<Node>) -> Result<Hierarchy, HierarchyError> {
        for (at, node) in nodes.iter().enumerate() {
            if node.parent.is_some_and(|parent| parent >= at) {
                return Err(HierarchyError::ParentNotBefore(at));
            }
            if !(node.weight.is_finite() && node.weight > 0.0) {
                return Err(HierarchyError::Weight(at));
            }
        }
        let shares = vec![None; nodes.len() + 1];
        Ok(Hierarchy { nodes, shares })
    }

    /// Ends an interval. `claims` are the channels', each with the node that it belongs to (none: the device itself).
    /// Returns the share per unit of weight for each of them. A node's rate and demand are the sums of its children's,
    /// and it divides what its parent grants it.
    ///
    /// # Panics
    /// If a claim names a node that there is not.
    pub fn interval(&mut self, law: Law, capacity: Bandwidth, claims: &[(Option<usize>, Claim)]) -> Vec<Bandwidth> {
        let device = self.nodes.len();
        let mut children: Vec<Vec<Claim>> = vec![Vec::new(); device + 1];
        for (node, claim) in claims {
            children[node.unwrap_or(device)].push(*claim);
        }
        // Children stand behind their parents: from the last to the first, each node's own are complete.
        for at in (0..device).rev() {
            let Node { parent, weight } = self.nodes[at];
            let rate = children[at].iter().map(|child| child.rate).sum();
            let demand = children[at].iter().map(|child| child.demand.max(child.rate)).sum();
            if !children[at].is_empty() {
                children[parent.unwrap_or(device)].push(Claim { weight, rate, demand });
            }
        }
        self.divide(device, law, capacity, &children[device]);
        for (at, own) in children[..device].iter().enumerate() {
            let Node { parent, weight } = self.nodes[at];
            let above = self.shares[parent.unwrap_or(device)].unwrap_or_default();
            self.divide(at, law, above.times(weight), own);
        }
        claims.iter().map(|(node, _)| self.shares[node.unwrap_or(device)].unwrap_or_default()).collect()
    }

    fn divide(&mut self, at: usize, law: Law, capacity: Bandwidth, children: &[Claim]) {
        self.shares[at] = Some(law.share(self.shares[at], capacity, children));
    }
}
