//! What is PM, as a person says it: `heap`, `file:PATTERN` or `range:LO-HI`.

use std::fmt;
use std::str::FromStr;

use super::address_ranges::AddressRange;

/// Which of a program's addresses are PM.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum PmSelector {
    /// `heap`: the break and anonymous mappings, without stacks.
    Heap,
    /// `file:PATTERN`: mappings of the files whose path, or name without its folder, the pattern matches.
    File(glob::Pattern),
    /// `range:LO-HI`: these addresses, the upper one excluded.
    Range(AddressRange),
}

/// A text that is no selector.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("PM selector `{selector}`: {problem}")]
pub struct SelectorError {
    /// The text.
    pub selector: String,
    /// What is wrong with it.
    pub problem: String,
}

impl FromStr for PmSelector {
    type Err = SelectorError;

    fn from_str(selector: &str) -> Result<Self, SelectorError> {
        let parsed = match selector.split_once(':') {
            None if selector == "heap" => Ok(Self::Heap),
            Some(("file", "")) => Err("the pattern after `file:` is empty".to_string()),
            Some(("file", pattern)) => {
                let pattern = glob::Pattern::new(pattern);
                pattern.map(Self::File).map_err(|error| format!("{} at position {}", error.msg, error.pos))
            }
            Some(("range", range)) => parse_range(range).map(Self::Range),
            _ => Err("it has to be `heap`, `file:PATTERN` or `range:LO-HI`".to_string()),
        };
        parsed.map_err(|problem| SelectorError { selector: selector.to_string(), problem })
    }
}

fn parse_range(range: &str) -> Result<AddressRange, String> {
    let (low, high) = range.split_once('-').ok_or("a range is two addresses with `-` between them")?;
    let (start, end) = (parse_address(low)?, parse_address(high)?);
    if start >= end {
        return Err("the range is empty: its lower address is not below its upper one".to_string());
    }
    Ok(AddressRange { start, end })
}

fn parse_address(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    parsed.map_err(|_| format!("`{text}` is no address; write it as 0x7f00 or as 32512, below 2^64"))
}

impl fmt::Display for PmSelector {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Heap => write!(formatter, "heap"),
            Self::File(pattern) => write!(formatter, "file:{pattern}"),
            Self::Range(AddressRange { start, end }) => write!(formatter, "range:{start:#x}-{end:#x}"),
        }
    }
}

impl PmSelector {
    /// Whether it is a `file:` selector that means the file of this path.
    #[must_use]
    pub fn means_file(&self, path: &str) -> bool {
        matches!(self, Self::File(pattern) if Self::matches_file(pattern, path))
    }

    /// Whether the pattern of a `file:` selector matches this path.
    pub(super) fn matches_file(pattern: &glob::Pattern, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        pattern.matches(path) || pattern.matches(name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn selectors_read_as_they_print() {
        for text in ["heap", "file:*.pool", "file:/dev/dax0.[01]", "range:0x1000-0x2000"] {
            assert_eq!(text.parse::<PmSelector>().map(|selector| selector.to_string()), Ok(text.to_string()));
        }
        assert_eq!("range:4096-8192".parse::<PmSelector>(), "range:0x1000-0x2000".parse());
    }

    #[test]
    fn errors_name_the_selector_and_what_it_should_be() {
        let cases = [
            ("head", "it has to be `heap`"),
            ("heap:", "it has to be `heap`"),
            ("file:", "is empty"),
            ("file:[a", "at position"),
            ("range:1", "two addresses"),
            ("range:2-2", "not below"),
            ("range:0x-2", "`0x` is no address"),
            ("range:0-99999999999999999999", "is no address"),
        ];
        for (text, problem) in cases {
            let message = text.parse::<PmSelector>().unwrap_err().to_string();
            assert!(message.starts_with(&format!("PM selector `{text}`: ")) && message.contains(problem), "{message}");
        }
    }

    #[test]
    fn a_pattern_matches_the_path_or_the_name() {
        let pattern = glob::Pattern::new("*.pool").unwrap();
        assert!(PmSelector::matches_file(&pattern, "/tmp/a/b.pool"));
        let name = glob::Pattern::new("b?pool").unwrap();
        assert!(PmSelector::matches_file(&name, "/tmp/a/b.pool"));
        assert!(!PmSelector::matches_file(&name, "/tmp/b.pool/a"));
    }
}
