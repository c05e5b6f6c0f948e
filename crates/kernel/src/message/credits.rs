//! Buffer places of a link for each class of messages, as the `[link]` table of a machine file gives them.

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::de::{Error, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::{Map, Value as Json, json};

use super::{CreditPool, MessageClass};

/// How many places a class that a link carries may have.
const PLACES: RangeInclusive<u16> = 1..=4096;

/// Buffer places at a receiver, class by class, and so the credits that a transmitter starts with. A class without
/// places is not carried.
///
/// In a machine file, one key for each class: [`CreditPool::key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Credits([u16; MessageClass::COUNT]);

impl Credits {
    /// No places at all.
    pub const NONE: Credits = Credits([0; MessageClass::COUNT]);

    /// `places` for each class that every link carries, none for others.
    pub fn on_every_link(places: u16) -> Credits {
        let classes = MessageClass::ALL.into_iter().filter(|class| pool(*class).is_on_every_link);
        classes.fold(Credits::NONE, |credits, class| credits.with(class, places))
    }

    /// The same with `places` for `class`.
    #[must_use]
    pub fn with(mut self, class: MessageClass, places: u16) -> Credits {
        self.0[class.index()] = places;
        self
    }

    /// The places of `class`.
    #[inline]
    pub fn of(self, class: MessageClass) -> u16 {
        self.0[class.index()]
    }

    /// The places of each class, by its index.
    pub fn by_class(self) -> [u16; MessageClass::COUNT] {
        self.0
    }

    /// The classes that are carried.
    pub fn carried(self) -> impl Iterator<Item = MessageClass> {
        MessageClass::ALL.into_iter().filter(move |class| self.0[class.index()] > 0)
    }

    /// Whether a machine file may say this.
    ///
    /// # Errors
    /// The first key whose number is out of range.
    pub fn check(&self, (): &()) -> garde::Result {
        let is_sound = |class: MessageClass| {
            let places = self.0[class.index()];
            PLACES.contains(&places) || places == 0 && !pool(class).is_on_every_link
        };
        match MessageClass::ALL.into_iter().find(|class| !is_sound(*class)) {
            Some(class) => Err(garde::Error::new(format!("{} is out of range", pool(class).key))),
            None => Ok(()),
        }
    }
}

fn pool(class: MessageClass) -> &'static CreditPool {
    &class.description().credits
}

const KEYS: [&str; MessageClass::COUNT] = {
    let mut keys = [""; MessageClass::COUNT];
    let mut index = 0;
    while index < MessageClass::COUNT {
        keys[index] = MessageClass::ALL[index].description().credits.key;
        index += 1;
    }
    keys
};

impl Serialize for Credits {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        for class in self.carried() {
            map.serialize_entry(pool(class).key, &self.0[class.index()])?;
        }
        map.end()
    }
}

impl<'de> Deserialize<'de> for Credits {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Credits, D::Error> {
        deserializer.deserialize_struct("Credits", &KEYS, CreditsVisitor)
    }
}

struct CreditsVisitor;

impl<'de> Visitor<'de> for CreditsVisitor {
    type Value = Credits;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the credits of a link")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Credits, A::Error> {
        let mut given = [None; MessageClass::COUNT];
        while let Some(key) = map.next_key::<Cow<'_, str>>()? {
            let index = KEYS.iter().position(|known| *known == key && !known.is_empty());
            let index = index.ok_or_else(|| A::Error::unknown_field(&key, &KEYS))?;
            given[index] = Some(map.next_value()?);
        }
        let mut credits = Credits::NONE;
        for (class, places) in MessageClass::ALL.into_iter().zip(given) {
            match places {
                Some(places) => credits = credits.with(class, places),
                None if pool(class).is_on_every_link => return Err(A::Error::missing_field(pool(class).key)),
                None => {}
            }
        }
        Ok(credits)
    }
}

impl JsonSchema for Credits {
    fn schema_name() -> Cow<'static, str> {
        "Credits".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        let property = |class: MessageClass| {
            let CreditPool { key, meaning, .. } = pool(class);
            let (minimum, maximum) = (PLACES.start(), PLACES.end());
            let places = json!({
                "description": meaning, "type": "integer", "format": "uint16",
                "minimum": minimum, "maximum": maximum,
            });
            ((*key).to_owned(), places)
        };
        let with_keys = MessageClass::ALL.into_iter().filter(|class| !pool(*class).key.is_empty());
        let properties: Map<String, Json> = with_keys.map(property).collect();
        let required = MessageClass::ALL.into_iter().filter(|class| pool(*class).is_on_every_link);
        let required: Vec<&str> = required.map(|class| pool(class).key).collect();
        json_schema!({ "type": "object", "properties": properties, "required": required })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_that_not_every_link_carries_is_in_the_table_only_where_it_has_places() {
        let credits = Credits::on_every_link(4).with(MessageClass::S2mDrs, 7);
        let mut table = json!({
            "request_credits": 4, "request_with_data_credits": 4, "no_data_response_credits": 4, "data_response_credits": 7,
        });
        assert_eq!(serde_json::to_value(credits).unwrap(), table);
        assert_eq!(serde_json::from_value::<Credits>(table.clone()).unwrap(), credits);
        table["exchange_request_credits"] = json!(2);
        let both = credits.with(MessageClass::ExchangeReq, 2);
        assert_eq!(serde_json::from_value::<Credits>(table.clone()).unwrap(), both);
        assert_eq!(serde_json::to_value(both).unwrap(), table);
        assert_eq!(credits.carried().count(), 4);
        assert_eq!(both.carried().last(), Some(MessageClass::ExchangeReq));
    }

    #[test]
    fn a_class_that_every_link_carries_has_places() {
        let none = Credits::on_every_link(4).with(MessageClass::M2sRwd, 0);
        assert_eq!(none.check(&()).unwrap_err().to_string(), "request_with_data_credits is out of range");
        let error = serde_json::from_value::<Credits>(json!({ "request_credits": 4 })).unwrap_err();
        assert_eq!(error.to_string(), "missing field `request_with_data_credits`");
        let error = serde_json::from_value::<Credits>(json!({ "requests": 4 })).unwrap_err();
        assert!(error.to_string().starts_with("unknown field `requests`"), "{error}");
    }
}
