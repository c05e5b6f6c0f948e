//! Litmus tests as they are written down: `x=1; clwb x; sfence || if x: y=1`.
//!
//! Threads stand between `||`, statements between `;`. `if x:` guards what follows it in its thread. A name that begins
//! with `r` is a register. `(same line)` behind the last thread puts all locations into one line; otherwise each has
//! its own.

use super::litmus_test::{Fence, Flush, Location, Operand, Statement};

/// The threads of a test, with the names of its locations.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Threads {
    /// What each thread does.
    pub(super) threads: Vec<Vec<Statement>>,
    /// The locations, in the order of their first mention.
    pub(super) locations: Vec<String>,
    /// Whether they lie in one line.
    pub(super) share_a_line: bool,
}

/// Reads the threads of a test.
///
/// # Errors
/// What is wrong with them.
pub(super) fn parse(text: &str) -> Result<Threads, String> {
    let (body, share_a_line) = match text.trim().strip_suffix("(same line)") {
        Some(body) => (body, true),
        None => (text, false),
    };
    let mut names = Names::default();
    let threads = body.split("||").map(|thread| names.thread(thread)).collect::<Result<_, _>>()?;
    let parsed = Threads { threads, locations: names.0, share_a_line };
    parsed.refuse_what_cannot_be_run()?;
    Ok(parsed)
}

impl Threads {
    /// A run is judged by versions of lines: that needs one thread that writes a line, and one load of it by another
    /// thread at most.
    fn refuse_what_cannot_be_run(&self) -> Result<(), String> {
        let lines = if self.share_a_line { 1 } else { self.locations.len() };
        for line in 0..lines {
            let is_of_line = |statement: &Statement| {
                statement.location().is_some_and(|location| self.share_a_line || location == line)
            };
            let of_line = |does: fn(Statement) -> bool| -> Vec<usize> {
                let threads = self.threads.iter().enumerate();
                let in_each =
                    threads.map(|(thread, own)| (thread, own.iter().filter(|own| does(**own) && is_of_line(own))));
                in_each.flat_map(|(thread, found)| found.map(move |_| thread)).collect()
            };
            let (writers, readers) = (of_line(Statement::writes), of_line(Statement::reads));
            if writers.iter().any(|writer| *writer != writers[0]) {
                return Err("several threads write one line".into());
            }
            if readers.len() > 1 || readers.iter().any(|reader| writers.contains(reader)) {
                return Err("a line is read twice, or by the thread that writes it".into());
            }
        }
        let statements = self.threads.iter().flatten();
        let loaded: Vec<Location> =
            statements.clone().filter(|own| own.reads()).filter_map(|own| own.location()).collect();
        let is_passed_on = |own: &Statement| match own {
            Statement::Store(to, Operand::Register) => self.share_a_line || loaded.contains(to),
            _ => false,
        };
        if statements.clone().any(is_passed_on) {
            return Err("a value goes through two registers".into());
        }
        Ok(())
    }
}

/// The locations mentioned so far.
#[derive(Default)]
struct Names(Vec<String>);

impl Names {
    fn location(&mut self, name: &str) -> Result<Location, String> {
        let is_name = name.starts_with(|first: char| first.is_ascii_lowercase())
            && name.chars().all(|character| character.is_ascii_alphanumeric());
        if !is_name || is_register(name) {
            return Err(format!("`{name}` is no location"));
        }
        Ok(self.0.iter().position(|own| own == name).unwrap_or_else(|| {
            self.0.push(name.to_owned());
            self.0.len() - 1
        }))
    }

    fn thread(&mut self, text: &str) -> Result<Vec<Statement>, String> {
        let mut statements = Vec::new();
        for statement in text.split(';') {
            let mut statement = statement.trim();
            if let Some(guarded) = statement.strip_prefix("if ") {
                let (name, rest) = guarded.split_once(':').ok_or_else(|| format!("`{statement}` lacks a `:`"))?;
                statements.push(Statement::If(self.location(name.trim())?));
                statement = rest.trim();
            }
            statements.push(self.statement(statement)?);
        }
        Ok(statements)
    }

    fn statement(&mut self, text: &str) -> Result<Statement, String> {
        for (mnemonic, flush) in [("clflush ", Flush::Clflush), ("clwb ", Flush::Clwb), ("DC CVAP ", Flush::Clwb)] {
            if let Some(name) = text.strip_prefix(mnemonic) {
                return Ok(Statement::Flush(flush, self.location(name.trim())?));
            }
        }
        let fences = [("sfence", Fence::Sfence), ("mfence", Fence::Mfence), ("DMB", Fence::Dmb), ("DSB", Fence::Dsb)];
        if let Some((_, fence)) = fences.iter().find(|(mnemonic, _)| *mnemonic == text) {
            return Ok(Statement::Fence(*fence));
        }
        let unknown = || format!("`{text}` is no statement");
        let (target, value) = text.split_once('=').ok_or_else(unknown)?;
        if let Some(target) = target.strip_prefix("lock xchg ") {
            return Ok(Statement::Exchange(self.location(target)?, value.parse().map_err(|_| unknown())?));
        }
        if is_register(target) {
            return Ok(Statement::Load(self.location(value)?));
        }
        let operand = if is_register(value) {
            Operand::Register
        } else {
            Operand::Constant(value.parse().map_err(|_| unknown())?)
        };
        Ok(Statement::Store(self.location(target)?, operand))
    }
}

fn is_register(name: &str) -> bool {
    name.starts_with('r')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kind_of_statement_is_read() {
        use Statement as S;
        let parsed =
            parse("x=1; clwb x; sfence; lock xchg y=2 || if y: clflush x; z=1 || r=w; DSB; v=r; DC CVAP v; DMB")
                .expect("it is a test");
        assert_eq!(parsed.locations, ["x", "y", "z", "w", "v"]);
        assert!(!parsed.share_a_line);
        assert_eq!(
            parsed.threads,
            [
                vec![
                    S::Store(0, Operand::Constant(1)),
                    S::Flush(Flush::Clwb, 0),
                    S::Fence(Fence::Sfence),
                    S::Exchange(1, 2)
                ],
                vec![S::If(1), S::Flush(Flush::Clflush, 0), S::Store(2, Operand::Constant(1))],
                vec![
                    S::Load(3),
                    S::Fence(Fence::Dsb),
                    S::Store(4, Operand::Register),
                    S::Flush(Flush::Clwb, 4),
                    S::Fence(Fence::Dmb)
                ],
            ]
        );
        assert!(parse("x=1; y=1 (same line)").expect("it is a test").share_a_line);
    }

    #[test]
    fn what_cannot_be_read_or_run_is_refused() {
        for (text, error) in [
            ("x=1; flush x", "`flush x` is no statement"),
            ("if x clwb x", "`if x clwb x` lacks a `:`"),
            ("x=a", "`x=a` is no statement"),
            ("clwb r", "`r` is no location"),
            ("x=1 || x=2", "several threads write one line"),
            ("x=1; y=1 || x=2 (same line)", "several threads write one line"),
            ("x=1; r=x", "a line is read twice, or by the thread that writes it"),
            ("r=x; y=r || r=y; x=r", "a value goes through two registers"),
            ("x=1 || if x: y=1 || if x: z=1", "a line is read twice, or by the thread that writes it"),
        ] {
            assert_eq!(parse(text).unwrap_err(), error, "{text}");
        }
    }
}
