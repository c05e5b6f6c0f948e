//! The `[fabric]` table of a machine file: which hosts, switches and devices there are, and what is connected to what.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::marker::PhantomData;

use garde::Validate;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::schema::make_optional;
use crate::device::{DramConfig, PmConfig};
use crate::switch::SwitchConfig;
use fencepost_kernel::link::LinkConfig;

/// How an edge is written, for editors.
const EDGE_PATTERN: &str = r"^\s*[A-Za-z]\w*\s*->\s*[A-Za-z]\w*\s*$";

/// Hosts, switches, PM devices, memory expanders and accelerators by name, and the edges between them: a chain, a tree
/// and several hosts are the same kind of file.
///
/// Every host has its own DRAM, which is not listed. A key of `[switch]`, `[link]`, `[pm]`, `[expander]` or
/// `[accelerator]` holds for all of them, unless `[fabric.switch.NAME]`, `[fabric.link."FROM -> TO"]`,
/// `[fabric.pm.NAME]`, `[fabric.expander.NAME]` or `[fabric.accelerator.NAME]` gives it for one.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct FabricConfig {
    /// Names of the hosts, for example `["host0", "host1"]`. All hosts are alike.
    #[garde(skip)]
    pub hosts: Vec<String>,
    /// Names of the CXL switches; may be empty.
    #[garde(skip)]
    pub switches: Vec<String>,
    /// Names of the PM devices. Their order is the order of their physical addresses.
    #[garde(skip)]
    pub devices: Vec<String>,
    /// Names of the memory expanders: devices with DRAM, whose content no power cut survives. Their order is the order
    /// of their physical addresses.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(skip)]
    pub expanders: Vec<String>,
    /// Names of the accelerators: Type-2 devices, which cache the memory of their host and have DRAM of their own that
    /// the host may cache. Their order is the order of its physical addresses, behind those of expanders.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(skip)]
    pub accelerators: Vec<String>,
    /// The initial bias of the memory of accelerators; `host` if not given. `back_invalidate`: no bias; the device
    /// snoops its host.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[garde(skip)]
    pub bias: BTreeMap<String, Bias>,
    /// CXL links, each written `"FROM -> TO"` in the direction from hosts to devices. Their order is the order of
    /// ports. A link between switches that requests cross in both directions is written twice, once for each.
    #[garde(skip)]
    #[schemars(extend("items" = {"type": "string", "pattern": EDGE_PATTERN}))]
    pub edges: Vec<String>,
    /// PM on a host's own memory controller, without a CXL port, written as edges from the host to the device.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[garde(skip)]
    #[schemars(extend("items" = {"type": "string", "pattern": EDGE_PATTERN}))]
    pub local_edges: Vec<String>,
    /// Sets of devices that share one range of addresses, block by block in turn. Devices in no set have a range each.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[garde(dive)]
    pub interleave: BTreeMap<String, InterleaveConfig>,
    /// The switches that accept persists under schemes with persist buffers, for example `["switch0", "switch1"]`. The
    /// first on a host's way to a device acknowledges; each drains into the next, the last into the device. Without
    /// this key: for each device the first switch that the routes of all hosts to it pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[garde(skip)]
    pub persist_points: Option<Vec<String>>,
    /// Whether hosts access each other's PM, which decides which switches may accept persists. In replays each host has
    /// frames of its own in any case.
    #[serde(default, skip_serializing_if = "PmSharing::is_default")]
    #[garde(skip)]
    pub pm_sharing: PmSharing,
    /// What is different at a switch.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[garde(skip)]
    pub switch: BTreeMap<String, Overrides<SwitchConfig>>,
    /// What is different at an edge, which is named as it is written in `edges`.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[garde(skip)]
    pub link: BTreeMap<String, Overrides<LinkConfig>>,
    /// What is different at a PM device.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[garde(skip)]
    pub pm: BTreeMap<String, Overrides<PmConfig>>,
    /// What is different at a memory expander.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[garde(skip)]
    pub expander: BTreeMap<String, Overrides<DramConfig>>,
    /// What is different in the memory of an accelerator.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[garde(skip)]
    pub accelerator: BTreeMap<String, Overrides<DramConfig>>,
}

/// Whose cached copies of a device's memory are taken for granted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Bias {
    /// The host may have copies: the device asks it first.
    Host,
    /// The host has none: the device need not ask.
    Device,
    /// Memory without bias (HDM-DB, CXL 3): the device knows by its snoop filter what the host has, and snoops it.
    BackInvalidate,
}

/// Whether hosts access each other's PM.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum PmSharing {
    /// Any host may access another's data: the routes of all hosts to a device pass each of its persist points.
    #[default]
    Shared,
    /// Each host keeps to its own part: a switch that other hosts do not pass may accept persists.
    Private,
    /// As `shared`, with persist points that some hosts do not pass, to show what goes wrong: stale reads, and persists
    /// overwritten by older ones.
    SharedUnsafe,
}

impl PmSharing {
    fn is_default(&self) -> bool {
        *self == PmSharing::default()
    }
}

/// Devices that share one range of addresses.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields)]
pub struct InterleaveConfig {
    /// The devices, in the order of their blocks: 2, 4, 8 or 16 of equal size, which the same hosts reach.
    #[garde(skip)]
    pub devices: Vec<String>,
    /// Bytes of a block: a power of two from 256 to 16384 (CXL 3.1 specification, HDM decoder interleave granularity).
    #[garde(range(min = 256, max = 16_384))]
    #[schemars(range(min = 256, max = 16_384))]
    pub granularity_bytes: u32,
}

/// Some of the keys of `T`, for one component of its kind.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Overrides<T> {
    keys: Map<String, Json>,
    #[serde(skip)]
    kind: PhantomData<fn() -> T>,
}

/// Its keys are checked where they have been laid over those of the kind.
impl<T> Validate for Overrides<T> {
    type Context = ();

    fn validate_into(&self, (): &Self::Context, _: &mut dyn FnMut() -> garde::Path, _: &mut garde::Report) {}
}

impl<T: JsonSchema> JsonSchema for Overrides<T> {
    fn schema_name() -> Cow<'static, str> {
        format!("{}Overrides", T::schema_name()).into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let mut settings = schemars::generate::SchemaSettings::draft2020_12();
        settings.inline_subschemas = true;
        let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
        for key in ["$schema", "title"] {
            schema.as_object_mut().expect("a config struct is an object").remove(key);
        }
        make_optional(&mut schema);
        Schema::try_from(schema).expect("it was a schema before")
    }
}
