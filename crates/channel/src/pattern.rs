//! Patterns of programs and threads. The C library's `fnmatch` may allocate, and threads match their names in handlers.

/// Whether `text` is what `pattern` says: `*` stands for anything, `?` for a byte.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    let (mut at, mut seen) = (0, 0);
    // Where to go on if what follows the last star does not match: let that take one byte more.
    let mut retry: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some(b'*') => {
                retry = Some((at + 1, seen));
                at += 1;
            }
            Some(byte) if *byte == b'?' || *byte == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => {
                let Some((after_star, taken)) = retry else { return false };
                retry = Some((after_star, taken + 1));
                at = after_star;
                seen = taken + 1;
            }
        }
    }
    pattern[at..].iter().all(|byte| *byte == b'*')
}

#[cfg(test)]
mod tests {
    use super::matches;

    #[test]
    fn stars_stand_for_anything() {
        for (pattern, text, is_match) in [
            ("*", "", true),
            ("redis*", "redis-server", true),
            ("*server", "redis-server", true),
            ("a*b*c", "aXbXbXc", true),
            ("a*b*c", "aXbX", false),
            ("io_thd_?", "io_thd_1", true),
            ("io_thd_?", "io_thd_", false),
            ("python3", "python3.11", false),
            ("", "", true),
            ("", "a", false),
        ] {
            assert_eq!(matches(pattern.as_bytes(), text.as_bytes()), is_match, "{pattern} {text}");
        }
    }
}
