//! The schemes: what a machine's switches do with persists.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::nearest::there_is_no;

/// What a switch that is a persist point does with the writes to its lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Scheme {
    /// Volatile switches: the memory device acknowledges.
    #[serde(rename = "nopb")]
    Nopb,
    /// A persist buffer that acknowledges a write as soon as it holds it, and then drains it at once.
    #[serde(rename = "pb")]
    Pb,
    /// Read forwarding: a persist buffer that acknowledges, keeps the data to answer reads from it, and drains the
    /// least recently used entries when more than a threshold of them are occupied, down to a preset.
    #[serde(rename = "pb_rf")]
    PbRf,
    /// A persist buffer that drains ahead of the writes it expects, holds back what it has room for while that pays,
    /// and keeps what has been drained to answer reads from it until the room is needed.
    #[serde(rename = "pb_adaptive")]
    PbAdaptive,
}

impl Scheme {
    /// All of them, in the order in which they are compared.
    pub const ALL: [Scheme; 4] = [Scheme::Nopb, Scheme::Pb, Scheme::PbRf, Scheme::PbAdaptive];

    /// The name on the command line and in results.
    pub fn name(self) -> &'static str {
        match self {
            Scheme::Nopb => "nopb",
            Scheme::Pb => "pb",
            Scheme::PbRf => "pb_rf",
            Scheme::PbAdaptive => "pb_adaptive",
        }
    }

    /// Whether a persist point of this scheme has a persist buffer.
    pub fn has_persist_buffer(self) -> bool {
        self != Scheme::Nopb
    }
}

impl fmt::Display for Scheme {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for Scheme {
    type Err = String;

    fn from_str(name: &str) -> Result<Scheme, String> {
        let found = Scheme::ALL.into_iter().find(|scheme| scheme.name() == name);
        found.ok_or_else(|| there_is_no("scheme", name, &Scheme::ALL.map(Scheme::name)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_scheme_is_found_by_its_name_and_serialised_as_it() {
        for scheme in Scheme::ALL {
            assert_eq!(scheme.name().parse(), Ok(scheme));
            assert_eq!(serde_json::to_value(scheme).unwrap(), scheme.name());
        }
    }

    #[test]
    fn an_unknown_scheme_is_answered_with_those_there_are() {
        let error = "pbrf".parse::<Scheme>().unwrap_err();
        assert_eq!(error, "there is no scheme `pbrf`; did you mean `pb_rf`? There are: nopb, pb, pb_rf, pb_adaptive");
    }
}
