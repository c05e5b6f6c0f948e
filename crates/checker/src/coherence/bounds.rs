//! How much of the fabric is explored.

use fencepost_sim::device::type2::device_memory::Kind;
use fencepost_sim::device::type2::messages::Request;
use fencepost_sim::nearest::there_is_no;
use serde::{Deserialize, Serialize};

/// Devices at most.
pub const DEVICES_MAX: usize = 3;
/// Cores at most.
pub const CORES_MAX: usize = 3;
/// Lines at most.
pub const LINES_MAX: usize = 2;

/// How a device gets at a line of its own memory that the host may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum DeviceMemoryKind {
    /// By a request of CXL.cache: bias.
    Bias,
    /// By a back-invalidate snoop.
    BackInvalidate,
}

impl From<DeviceMemoryKind> for Kind {
    fn from(kind: DeviceMemoryKind) -> Kind {
        match kind {
            DeviceMemoryKind::Bias => Kind::Bias,
            DeviceMemoryKind::BackInvalidate => Kind::BackInvalidate,
        }
    }
}

/// Bounds of an exploration. How often anything is done has none: devices and cores go on for ever.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Bounds {
    /// Devices.
    pub devices: u8,
    /// Cores of the host.
    pub cores: u8,
    /// Lines of the host's memory.
    pub lines: u8,
    /// Transactions that a device may have under way; one for a line at most in any case.
    pub transactions: u8,
    /// The requests that devices make, by name; none stands for all.
    pub requests: Vec<String>,
    /// Whether devices, cores and lines may change places.
    pub symmetry: bool,
    /// Instead of host memory: a line of a device's own memory, which its host caches too.
    pub device_memory: Option<DeviceMemoryKind>,
}

impl Default for Bounds {
    fn default() -> Self {
        Bounds {
            devices: 2,
            cores: 1,
            lines: 1,
            transactions: 2,
            requests: Vec::new(),
            symmetry: true,
            device_memory: None,
        }
    }
}

impl Bounds {
    /// Says what cannot be explored.
    pub fn check(&self) -> Result<(), String> {
        let limits = [
            ("devices", self.devices, 1, DEVICES_MAX),
            ("cores", self.cores, 0, CORES_MAX),
            ("lines", self.lines, 1, LINES_MAX),
            ("transactions", self.transactions, 1, LINES_MAX),
        ];
        for (what, given, least, most) in limits {
            if usize::from(given) < least || usize::from(given) > most {
                return Err(format!("{what}: {given} cannot be explored; it can be {least} to {most}"));
            }
        }
        if self.device_memory.is_some() && *self != (Bounds { device_memory: self.device_memory, ..Bounds::default() })
        {
            return Err("device memory is explored with one device and one line: leave the other bounds out".to_owned());
        }
        self.requests.iter().try_for_each(|name| request_named(name).map(drop))
    }

    /// Of each request, whether devices make it.
    pub fn makes(&self) -> [bool; Request::ALL.len()] {
        Request::ALL.map(|request| self.requests.is_empty() || self.requests.contains(&format!("{request:?}")))
    }
}

fn request_named(name: &str) -> Result<Request, String> {
    let names = Request::ALL.map(|request| format!("{request:?}"));
    Request::ALL
        .into_iter()
        .zip(&names)
        .find(|(_, known)| *known == name)
        .map(|(request, _)| request)
        .ok_or_else(|| there_is_no("request", name, &names))
}
