//! Names of components and of their ports.

/// Names one component of a system; an index into its list of components.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ComponentId(pub u32);

/// Names one port of a component; each port is wired to one port of one other component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PortId(pub u16);

impl PortId {
    /// As an index into a component's list of ports.
    #[inline]
    pub fn index(self) -> usize {
        self.0 as usize
    }
}
