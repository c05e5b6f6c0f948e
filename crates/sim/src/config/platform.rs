//! The `[platform]` table of a machine file.

use garde::Validate;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What a platform promises of a power cut. Only the exploration of crash states asks for it; no timing depends on it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema, Validate)]
#[serde(deny_unknown_fields, default)]
pub struct PlatformConfig {
    /// The aligned pieces of a store that a power cut leaves whole, in bytes: 8 (where nothing is given), 16 or 64. A
    /// longer store can be torn between them.
    #[garde(skip)]
    #[serde(skip_serializing_if = "Atomicity::is_default")]
    pub atomicity_bytes: Atomicity,
    /// What keeps what it holds through a power cut. Not given: the persist buffer where the scheme has one, otherwise
    /// the memory controller.
    #[garde(skip)]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub persistence: Option<Persistence>,
}

impl PlatformConfig {
    /// Whether nothing else is promised than where nobody says anything.
    pub fn is_default(&self) -> bool {
        *self == PlatformConfig::default()
    }
}

/// What keeps what it holds through a power cut.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Persistence {
    /// Nothing on the way to the media: no flush, fence or call says that anything is durable.
    None,
    /// The memory controller (ADR): a flush is durable when it is acknowledged there.
    Controller,
    /// The persist buffer of a switch: a flush is durable when it is acknowledged there.
    PersistBuffer,
    /// The caches (eADR, Global Persistent Flush with hold-up): a store is durable when it is visible. Buffers that
    /// combine non-temporal stores are not covered before a fence.
    Caches,
}

/// Bytes that are durable together or not at all.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "u64", into = "u64")]
#[schemars(with = "u64", extend("minimum" = 8, "maximum" = 64))]
pub enum Atomicity {
    /// What every x86-64 and AArch64 platform promises.
    #[default]
    Eight,
    /// A vector register.
    Sixteen,
    /// A whole line.
    Line,
}

impl Atomicity {
    fn is_default(&self) -> bool {
        *self == Atomicity::default()
    }

    /// As a number.
    pub fn bytes(self) -> usize {
        match self {
            Atomicity::Eight => 8,
            Atomicity::Sixteen => 16,
            Atomicity::Line => 64,
        }
    }
}

impl From<Atomicity> for u64 {
    fn from(atomicity: Atomicity) -> u64 {
        atomicity.bytes() as u64
    }
}

impl TryFrom<u64> for Atomicity {
    type Error = String;

    fn try_from(bytes: u64) -> Result<Atomicity, String> {
        match bytes {
            8 => Ok(Atomicity::Eight),
            16 => Ok(Atomicity::Sixteen),
            64 => Ok(Atomicity::Line),
            _ => Err(format!("{bytes}: it is 8, 16 or 64")),
        }
    }
}
