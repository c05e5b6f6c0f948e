//! Names and paths of the recorded program: bytes, as the kernel has them, and how they are shown.

use std::ffi::OsStr;
use std::fmt;
use std::ops::Deref;

use serde::{Serialize, Serializer};

/// A name from a record. It reads as a `str` in which whatever a terminal would not show stands as `\xNN`; the bytes
/// themselves, by which a file is found, are kept beside it.
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Default)]
pub struct Text {
    shown: Box<str>,
    /// Where they are not those of `shown`.
    bytes: Option<Box<[u8]>>,
}

impl Text {
    /// The bytes that the program used.
    #[must_use]
    pub fn as_bytes(&self) -> &[u8] {
        self.bytes.as_deref().unwrap_or(self.shown.as_bytes())
    }

    /// The file of that path.
    #[cfg(unix)]
    #[must_use]
    pub fn as_os_str(&self) -> &OsStr {
        std::os::unix::ffi::OsStrExt::from_bytes(self.as_bytes())
    }
}

/// What is shown of bytes from outside: control characters, and what is not UTF-8, as `\xNN`.
#[must_use]
pub fn escaped(bytes: &[u8]) -> String {
    let mut shown = String::with_capacity(bytes.len());
    let escape = |bytes: &[u8], shown: &mut String| bytes.iter().for_each(|byte| *shown += &format!("\\x{byte:02x}"));
    for chunk in bytes.utf8_chunks() {
        for character in chunk.valid().chars() {
            if character.is_control() {
                escape(character.encode_utf8(&mut [0; 4]).as_bytes(), &mut shown);
            } else {
                shown.push(character);
            }
        }
        escape(chunk.invalid(), &mut shown);
    }
    shown
}

impl From<&[u8]> for Text {
    fn from(bytes: &[u8]) -> Self {
        let shown = escaped(bytes);
        let bytes = (shown.as_bytes() != bytes).then(|| bytes.into());
        Self { shown: shown.into(), bytes }
    }
}

impl From<&str> for Text {
    fn from(text: &str) -> Self {
        text.as_bytes().into()
    }
}

impl Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.shown
    }
}

impl fmt::Display for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self)
    }
}

impl fmt::Debug for Text {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&**self, formatter)
    }
}

impl Serialize for Text {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_that_are_no_utf8_are_kept_and_shown_escaped() {
        let text = Text::from(b"/tmp/caf\xe9/\xc3\xa9.so".as_slice());
        assert_eq!(&*text, "/tmp/caf\\xe9/é.so");
        assert_eq!(text.as_bytes(), b"/tmp/caf\xe9/\xc3\xa9.so");
    }

    #[test]
    fn terminals_get_no_control_characters() {
        let text = Text::from("a\x1b]0;title\x07\u{9b}31m\n");
        assert_eq!(&*text, "a\\x1b]0;title\\x07\\xc2\\x9b31m\\x0a");
        assert_eq!(text.as_bytes(), "a\x1b]0;title\x07\u{9b}31m\n".as_bytes());
    }

    #[test]
    fn what_looks_escaped_is_another_text_than_what_is() {
        let (escaped, plain) = (Text::from(b"\xe9".as_slice()), Text::from("\\xe9"));
        assert_eq!(&*escaped, &*plain);
        assert_ne!(escaped, plain);
    }
}
