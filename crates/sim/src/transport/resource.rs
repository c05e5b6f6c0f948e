//! What channels share.

/// Where a resource is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// One direction of a link: towards the devices, which written lines take, or towards the hosts, which lines that
    /// are read take.
    Link {
        /// The link, by its number.
        link: u32,
        /// Whether it leads away from the hosts.
        is_downstream: bool,
    },
    /// A memory device, by its number.
    Device(u32),
}

/// Something that carries so many bytes a second, and no more.
#[derive(Clone, Debug, PartialEq)]
pub struct Resource {
    /// Which.
    pub place: Place,
    /// As people call it: `FROM -> TO`, or the device.
    pub name: String,
    /// Bytes a second.
    pub capacity: f64,
}
