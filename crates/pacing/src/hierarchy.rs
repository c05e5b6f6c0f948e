//! Shares within shares: tenants with hosts, hosts with threads.

use crate::{Bandwidth, Claim, Law, Weight};

/// A group whose channels and groups share what it gets.
#[derive(Clone, Copy, Debug)]
pub struct Node {
    /// The group that this one belongs to; the device itself where there is none.
    pub parent: Option<usize>,
    /// Its part relative to its siblings'.
    pub weight: Weight,
}

/// Why nodes are no hierarchy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HierarchyError {
    /// This node's parent does not stand before it.
    ParentNotBefore(usize),
}

impl std::fmt::Display for HierarchyError {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let HierarchyError::ParentNotBefore(at) = self;
        write!(to, "group {at}: its parent must stand before it")
    }
}

impl std::error::Error for HierarchyError {}

/// The groups of a device.
///
/// Whatever has groups among its children is divided by water-filling under either law: a group's capacity is a share
/// of its parent's, and if both were `α ← α C / F`, each would correct the same excess of measured rates. The product
/// of the two corrections overshoots, and the shares oscillate. The law that was chosen divides among the channels of
/// the groups that have no groups in them.
#[derive(Clone, Debug, Default)]
pub struct Hierarchy {
    nodes: Vec<Node>,
}

/// What an interval makes of a group, or of the device.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Division {
    pub(crate) share: Bandwidth,
    /// What it can divide whatever its siblings demand.
    pub(crate) sure: Bandwidth,
    /// Of its children that claim something.
    pub(crate) weight: f64,
}

impl Hierarchy {
    /// Each node's parent has to stand before it.
    ///
    /// # Errors
    /// The first node that has no such parent.
    pub fn new(nodes: Vec<Node>) -> Result<Hierarchy, HierarchyError> {
        let is_misplaced = |(at, node): (usize, &Node)| node.parent.is_some_and(|parent| parent >= at);
        match nodes.iter().enumerate().position(is_misplaced) {
            Some(at) => Err(HierarchyError::ParentNotBefore(at)),
            None => Ok(Hierarchy { nodes }),
        }
    }

    /// Its number of groups.
    pub fn count(&self) -> usize {
        self.nodes.len()
    }

    /// Divides `capacity` among `claims`, each with the group that it belongs to (none: the device itself). By group,
    /// and last for the device; `before` are the shares of the last interval. A group's rate and demand are the sums of
    /// its children's, and it divides what its parent grants it.
    pub(crate) fn divide(
        &self,
        law: Law,
        capacity: Bandwidth,
        claims: impl IntoIterator<Item = (Option<usize>, Claim)>,
        before: &[Option<Bandwidth>],
    ) -> Vec<Division> {
        let device = self.count();
        let mut children: Vec<Vec<Claim>> = vec![Vec::new(); device + 1];
        for (group, claim) in claims {
            children[group.unwrap_or(device)].push(claim);
        }
        let mut law_of = vec![law; device + 1];
        // Children stand behind their parents: from the last to the first, each node's own are complete.
        for at in (0..device).rev() {
            let Node { parent, weight } = self.nodes[at];
            let above = parent.unwrap_or(device);
            law_of[above] = Law::WaterFilling;
            if !children[at].is_empty() {
                let rate = children[at].iter().map(|child| child.rate).sum();
                let demand = children[at].iter().map(Claim::wanted).sum();
                children[above].push(Claim { weight, rate, demand });
            }
        }
        let whole = |at: usize, capacity: Bandwidth, sure: Bandwidth| Division {
            share: law_of[at].share(before[at], capacity, &children[at]),
            sure,
            weight: children[at].iter().map(|child| child.weight.get()).sum(),
        };
        let of_device = whole(device, capacity, capacity);
        let mut divided: Vec<Division> = Vec::with_capacity(device + 1);
        for (at, node) in self.nodes.iter().enumerate() {
            let above = node.parent.map_or(of_device, |parent| divided[parent]);
            let weight = node.weight.get();
            // The first to come to an empty group brings the group's weight to its parent.
            let beside = if children[at].is_empty() { above.weight + weight } else { above.weight };
            divided.push(whole(at, above.share.times(weight), above.sure.times(weight / beside)));
        }
        divided.push(of_device);
        divided
    }
}
