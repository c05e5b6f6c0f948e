//! Finds what a person meant who mistyped a name, and says so.

use std::fmt::Write as _;

/// How alike two names have to be (Jaro-Winkler, 0 to 1) for one to be offered instead of the other.
const ALIKE: f64 = 0.8;

/// The valid name most like `wanted`, if any is like it.
pub fn nearest<'a>(wanted: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let alike = valid.into_iter().map(|name| (strsim::jaro_winkler(&wanted, &name.to_lowercase()), name));
    best(alike.filter(|(likeness, _)| *likeness >= ALIKE))
}

/// What is said of a `kind` of which none is called `wanted`: the nearest name first, then all that there are.
pub fn there_is_no(kind: &str, wanted: &str, valid: &[impl AsRef<str>]) -> String {
    let names: Vec<&str> = valid.iter().map(AsRef::as_ref).collect();
    let mut message = format!("there is no {kind} `{wanted}`; ");
    let there_are = match nearest(wanted, names.iter().copied()) {
        Some(near) => {
            let _ = write!(message, "did you mean `{near}`? ");
            "There are"
        }
        None => "there are",
    };
    let _ = write!(message, "{there_are}: {}", if names.is_empty() { "none".to_owned() } else { names.join(", ") });
    message
}

/// The valid dotted path most like `wanted`: first by its last step, then by its first one, then by all of it.
pub fn nearest_path<'a>(wanted: &str, valid: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let first_step = |path: &str| path.split('.').next().unwrap_or_default().to_lowercase();
    let last_step = |path: &str| path.rsplit('.').next().unwrap_or_default().to_lowercase();
    let likeness = |path: &str| {
        2.0 * strsim::jaro_winkler(&last_step(wanted), &last_step(path))
            + strsim::jaro_winkler(&first_step(wanted), &first_step(path))
            + 0.5 * strsim::normalized_damerau_levenshtein(wanted, path)
    };
    best(valid.into_iter().map(|path| (likeness(path), path)))
}

/// The name with the highest likeness; of equal ones the first.
fn best<'a>(candidates: impl Iterator<Item = (f64, &'a str)>) -> Option<&'a str> {
    candidates
        .fold(None, |best: Option<(f64, &str)>, candidate| match best {
            Some(best) if best.0 >= candidate.0 => Some(best),
            _ => Some(candidate),
        })
        .map(|(_, name)| name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn typing_errors_and_beginnings_find_their_name() {
        let valid = ["rob_entries", "issue_queue_entries", "clock_ghz"];
        assert_eq!(nearest("rob_entires", valid), Some("rob_entries"));
        assert_eq!(nearest("ROB", valid), Some("rob_entries"));
        assert_eq!(nearest("colck_ghz", valid), Some("clock_ghz"));
    }

    #[test]
    fn nothing_is_offered_that_is_not_alike() {
        assert_eq!(nearest("voltage", ["rob_entries", "ways"]), None);
    }

    #[test]
    fn an_unknown_name_is_answered_with_the_nearest_and_then_all() {
        let valid = ["nopb", "pb", "pb_rf"];
        let near = "there is no scheme `pbrf`; did you mean `pb_rf`? There are: nopb, pb, pb_rf";
        assert_eq!(there_is_no("scheme", "pbrf", &valid), near);
        assert_eq!(there_is_no("scheme", "xyz", &valid), "there is no scheme `xyz`; there are: nopb, pb, pb_rf");
        assert_eq!(there_is_no("channel", "gold", &[""; 0]), "there is no channel `gold`; there are: none");
    }

    #[test]
    fn paths_are_found_by_their_last_step_first() {
        let valid = ["core.rob_entries", "switch.persist_buffer.entries", "tlb.entries", "link.flit_format"];
        assert_eq!(nearest_path("switch.entries", valid), Some("switch.persist_buffer.entries"));
        assert_eq!(nearest_path("tbl.entries", valid), Some("tlb.entries"));
        assert_eq!(nearest_path("link.flit_forma", valid), Some("link.flit_format"));
    }
}
