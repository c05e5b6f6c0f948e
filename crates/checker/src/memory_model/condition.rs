//! Questions about a state, as litmus tests ask them: `z & !(x & y)`, `y & x==0`.

use super::litmus_test::{Location, NvmState};

/// A question that a state answers with yes or no.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Condition {
    /// The location has that value.
    Is(Location, u32),
    /// The location is not 0.
    IsSet(Location),
    /// Not that.
    Not(Box<Condition>),
    /// All of these.
    All(Vec<Condition>),
}

impl Condition {
    /// Whether it holds in `state`.
    pub fn holds(&self, state: &NvmState) -> bool {
        match self {
            Condition::Is(location, value) => state[*location] == *value,
            Condition::IsSet(location) => state[*location] != 0,
            Condition::Not(inner) => !inner.holds(state),
            Condition::All(parts) => parts.iter().all(|part| part.holds(state)),
        }
    }

    /// Reads a condition; `location` knows the names.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str, location: &dyn Fn(&str) -> Option<Location>) -> Result<Condition, String> {
        let mut parser = Parser { rest: text.trim(), location };
        let condition = parser.all()?;
        if parser.rest.is_empty() { Ok(condition) } else { Err(format!("`{}` follows the condition", parser.rest)) }
    }
}

struct Parser<'a> {
    rest: &'a str,
    location: &'a dyn Fn(&str) -> Option<Location>,
}

impl Parser<'_> {
    fn takes(&mut self, token: &str) -> bool {
        let rest = self.rest.trim_start().strip_prefix(token);
        self.rest = rest.unwrap_or(self.rest).trim_start();
        rest.is_some()
    }

    fn all(&mut self) -> Result<Condition, String> {
        let mut parts = vec![self.part()?];
        while self.takes("&") {
            parts.push(self.part()?);
        }
        Ok(if parts.len() == 1 { parts.remove(0) } else { Condition::All(parts) })
    }

    fn part(&mut self) -> Result<Condition, String> {
        if self.takes("!") {
            return Ok(Condition::Not(Box::new(self.part()?)));
        }
        if self.takes("(") {
            let inner = self.all()?;
            return if self.takes(")") { Ok(inner) } else { Err("a `)` is missing".into()) };
        }
        let name = self.word()?;
        let location = (self.location)(&name).ok_or_else(|| format!("there is no location `{name}`"))?;
        if !self.takes("==") {
            return Ok(Condition::IsSet(location));
        }
        let value = self.word()?;
        value.parse().map(|value| Condition::Is(location, value)).map_err(|_| format!("`{value}` is no number"))
    }

    fn word(&mut self) -> Result<String, String> {
        let end = self.rest.find(|character: char| !character.is_ascii_alphanumeric()).unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(end);
        self.rest = rest.trim_start();
        if word.is_empty() { Err(format!("a name is missing before `{}`", self.rest)) } else { Ok(word.to_owned()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parsed(text: &str) -> Result<Condition, String> {
        Condition::parse(text, &|name| ["x", "y", "z"].iter().position(|own| *own == name))
    }

    #[test]
    fn conditions_are_read_as_they_are_published() {
        let holding = |text: &str| -> Vec<NvmState> {
            let condition = parsed(text).unwrap_or_else(|error| panic!("{text}: {error}"));
            let states = (0..8).map(|bits| vec![bits & 1, bits >> 1 & 1, bits >> 2 & 1]);
            states.filter(|state| condition.holds(state)).collect()
        };
        assert_eq!(holding("y & !x"), [[0, 1, 0], [0, 1, 1]]);
        assert_eq!(holding("z & !(x & y)"), [[0, 0, 1], [1, 0, 1], [0, 1, 1]]);
        assert_eq!(holding("y & x==0"), [[0, 1, 0], [0, 1, 1]]);
        assert_eq!(holding("z & !x & !y"), [[0, 0, 1]]);
    }

    #[test]
    fn what_is_wrong_with_a_condition_is_said() {
        assert_eq!(parsed("y & w").unwrap_err(), "there is no location `w`");
        assert_eq!(parsed("(x").unwrap_err(), "a `)` is missing");
        assert_eq!(parsed("x y").unwrap_err(), "`y` follows the condition");
        assert_eq!(parsed("x==y").unwrap_err(), "`y` is no number");
    }
}
