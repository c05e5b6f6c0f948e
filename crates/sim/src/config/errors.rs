//! What is wrong with a machine file: where it stands, which key, and what would be right.

use std::fmt;

/// One mistake in a machine file, a `--set` or a resolved machine.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ConfigError {
    /// Where it was written: the name of a text, or `--set PATH=VALUE`.
    pub source: String,
    /// The line in that text, from 1; none where the text has no lines.
    pub line: Option<u32>,
    /// The dotted path of the key; empty if no key is at fault.
    pub key: String,
    /// What is wrong and what would be right, in one line.
    pub message: String,
}

impl fmt::Display for ConfigError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:", self.source)?;
        if let Some(line) = self.line {
            write!(formatter, "{line}:")?;
        }
        if !self.key.is_empty() {
            write!(formatter, " {}:", self.key)?;
        }
        write!(formatter, " {}", self.message)
    }
}

/// The mistakes that were found, the lowest layer first, by lines. Shown one to a line, and at the end how many more
/// there are.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ConfigErrors {
    errors: Vec<ConfigError>,
    left_out: usize,
}

impl ConfigErrors {
    /// # Panics
    /// If there is no error to report.
    pub(super) fn new(errors: Vec<ConfigError>, left_out: usize) -> ConfigErrors {
        assert!(!errors.is_empty(), "a refusal needs a reason");
        ConfigErrors { errors, left_out }
    }

    /// The mistakes, one by one.
    pub fn iter(&self) -> impl Iterator<Item = &ConfigError> {
        self.errors.iter()
    }
}

impl fmt::Display for ConfigErrors {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, error) in self.errors.iter().enumerate() {
            if index > 0 {
                writeln!(formatter)?;
            }
            write!(formatter, "{error}")?;
        }
        if self.left_out > 0 {
            write!(formatter, "\n{} more mistakes are not shown", self.left_out)?;
        }
        Ok(())
    }
}

impl std::error::Error for ConfigErrors {}
