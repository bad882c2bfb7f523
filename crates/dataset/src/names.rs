//! The `names` of a feature, which info.json may hold in any form.

use std::fmt;

use serde::Deserialize;
use serde::de::{Deserializer, MapAccess, SeqAccess, Visitor};

/// Every text in a JSON value, in the order of the document; of an object's entry that holds none, the key.
///
/// So `null` is no name, `["x", "y"]` and `[["x"], ["y"]]` and `{"motors": ["x", "y"]}` and `{"x": 0, "y": 1}` are two.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Names(pub(crate) Vec<String>);

impl<'de> Deserialize<'de> for Names {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NamesVisitor)
    }
}

struct NamesVisitor;

impl<'de> Visitor<'de> for NamesVisitor {
    type Value = Names;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("names in any form")
    }

    fn visit_str<E>(self, name: &str) -> Result<Names, E> {
        Ok(Names(vec![name.to_owned()]))
    }

    fn visit_unit<E>(self) -> Result<Names, E> {
        Ok(Names::default())
    }

    fn visit_bool<E>(self, _: bool) -> Result<Names, E> {
        Ok(Names::default())
    }

    fn visit_i64<E>(self, _: i64) -> Result<Names, E> {
        Ok(Names::default())
    }

    fn visit_u64<E>(self, _: u64) -> Result<Names, E> {
        Ok(Names::default())
    }

    fn visit_f64<E>(self, _: f64) -> Result<Names, E> {
        Ok(Names::default())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Names, A::Error> {
        let mut names = Vec::new();
        while let Some(Names(found)) = items.next_element()? {
            names.extend(found);
        }
        Ok(Names(names))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<Names, A::Error> {
        let mut names = Vec::new();
        while let Some((key, Names(found))) = entries.next_entry::<String, _>()? {
            if found.is_empty() {
                names.push(key);
            } else {
                names.extend(found);
            }
        }
        Ok(Names(names))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found_in_any_form() {
        for (text, expected) in [
            ("null", &[] as &[&str]),
            (r#"["x", "y"]"#, &["x", "y"]),
            (r#"[["x"], ["y", "z"]]"#, &["x", "y", "z"]),
            (r#"{"motors": ["x", "y"]}"#, &["x", "y"]),
            (r#"{"right": ["x"], "left": ["y"]}"#, &["x", "y"]),
            (r#"{"x": 0, "y": 1}"#, &["x", "y"]),
            ("[1, 2.5, true, null]", &[]),
        ] {
            let names: Names = serde_json::from_str(text).unwrap();
            assert_eq!(names.0, expected, "{text}");
        }
    }
}
