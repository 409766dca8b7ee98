//! Paths of fields in queries: `spec.nodeName`, `metadata.labels[app.kubernetes.io/name]`,
//! `metadata.fields[2]`, `spec.containers.image`.

use serde_json::Value;

/// The longest path, in bytes, and in parts.
const PATH_BYTES_MAX: usize = 512;
const PARTS_MAX: usize = 16;

/// One step: into a field, or into an element of an array.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Field(String),
    Element(usize),
}

/// A path of fields. Arrays on the way stand for each of their elements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldPath(Vec<Part>);

impl FieldPath {
    /// Parts are separated by dots; in brackets stand the index of an element, or a name that may
    /// itself have dots.
    ///
    /// # Errors
    /// What is wrong with the text.
    pub fn parse(text: &str) -> Result<Self, String> {
        if text.len() > PATH_BYTES_MAX {
            return Err(format!("is longer than {PATH_BYTES_MAX} bytes"));
        }
        let mut parts = Vec::new();
        let mut rest = text;
        while !rest.is_empty() {
            let (part, after) = if let Some(inner) = rest.strip_prefix('[') {
                let (name, after) = inner.split_once(']').ok_or("has no \"]\" for its \"[\"")?;
                let name = name.trim_matches('"');
                let part = match name.parse() {
                    Ok(index) => Part::Element(index),
                    Err(_) => Part::Field(name.to_owned()),
                };
                (part, after)
            } else {
                let end = rest.find(['.', '[']).unwrap_or(rest.len());
                (Part::Field(rest[..end].to_owned()), &rest[end..])
            };
            if part == Part::Field(String::new()) {
                return Err("has an empty part".to_owned());
            }
            parts.push(part);
            rest = match after.strip_prefix('.') {
                Some("") => return Err("ends with a dot".to_owned()),
                Some(next) => next,
                None if after.is_empty() || after.starts_with('[') => after,
                None => return Err("needs a dot after \"]\"".to_owned()),
            };
        }
        match parts.len() {
            0 => Err("is empty".to_owned()),
            1..=PARTS_MAX => Ok(Self(parts)),
            _ => Err(format!("has more than {PARTS_MAX} parts")),
        }
    }

    /// A path of fields.
    pub fn of(names: &[&str]) -> Self {
        Self(names.iter().map(|name| Part::Field((*name).to_owned())).collect())
    }

    /// Whether it leads into the field that this path leads to.
    pub fn begins_with(&self, names: &[&str]) -> bool {
        let begin = self.0.iter().zip(names);
        self.0.len() >= names.len()
            && begin.into_iter().all(|(part, name)| matches!(part, Part::Field(own) if own == name))
    }

    /// All values at the path, in order.
    pub fn values<'a>(&self, object: &'a Value) -> Vec<&'a Value> {
        let mut found = vec![object];
        for part in &self.0 {
            found = found.into_iter().flat_map(|value| step(value, part)).collect();
        }
        // An array is its elements here too.
        let flat = found.into_iter().flat_map(|value| match value {
            Value::Array(elements) => elements.iter().collect(),
            other => vec![other],
        });
        flat.collect()
    }

    /// Removes what is at the path. Paths into arrays remove it from each element.
    pub fn remove(&self, object: &mut Value) {
        self.change(object, &|parent, last| match (parent, last) {
            (Value::Object(fields), Part::Field(name)) => drop(fields.remove(name)),
            (Value::Array(elements), Part::Element(index)) if *index < elements.len() => {
                elements.remove(*index);
            }
            _ => {}
        });
    }

    /// Empties the values of the map at the path.
    pub fn empty_values(&self, object: &mut Value) {
        self.change(object, &|parent, last| {
            if let (Value::Object(fields), Part::Field(name)) = (parent, last)
                && let Some(Value::Object(map)) = fields.get_mut(name)
            {
                map.values_mut().for_each(|value| *value = Value::from(""));
            }
        });
    }

    /// Copies what is at the path from one object to the other. Whole arrays only.
    pub fn copy(&self, from: &Value, to: &mut Value) {
        let mut names = Vec::new();
        let mut source = from;
        for part in &self.0 {
            let Part::Field(name) = part else { return };
            let Some(next) = source.get(name) else { return };
            source = next;
            names.push(name.as_str());
        }
        let target = names.into_iter().fold(to, |target, name| {
            if !target.is_object() {
                *target = Value::Object(serde_json::Map::new());
            }
            &mut target[name]
        });
        *target = source.clone();
    }

    fn change(&self, object: &mut Value, last: &dyn Fn(&mut Value, &Part)) {
        let Some((end, way)) = self.0.split_last() else { return };
        change_below(object, way, &|parent| last(parent, end));
    }
}

fn step<'a>(value: &'a Value, part: &Part) -> Vec<&'a Value> {
    match (value, part) {
        (Value::Object(fields), Part::Field(name)) => fields.get(name).into_iter().collect(),
        (Value::Object(fields), Part::Element(index)) => {
            fields.get(&index.to_string()).into_iter().collect()
        }
        (Value::Array(elements), Part::Element(index)) => {
            elements.get(*index).into_iter().collect()
        }
        (Value::Array(elements), Part::Field(name)) => {
            elements.iter().filter_map(|element| element.get(name)).collect()
        }
        _ => Vec::new(),
    }
}

fn change_below(value: &mut Value, way: &[Part], last: &dyn Fn(&mut Value)) {
    let Some((part, rest)) = way.split_first() else {
        match value {
            Value::Array(elements) => elements.iter_mut().for_each(last),
            other => last(other),
        }
        return;
    };
    match (value, part) {
        (Value::Object(fields), Part::Field(name)) => {
            if let Some(next) = fields.get_mut(name) {
                change_below(next, rest, last);
            }
        }
        (Value::Array(elements), Part::Element(index)) => {
            if let Some(next) = elements.get_mut(*index) {
                change_below(next, rest, last);
            }
        }
        (Value::Array(elements), Part::Field(_)) => {
            elements.iter_mut().for_each(|element| change_below(element, way, last));
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn path(text: &str) -> FieldPath {
        FieldPath::parse(text).unwrap()
    }

    #[test]
    fn a_path_finds_values_in_maps_and_in_each_element_of_arrays() {
        let pod = json!({
            "metadata": {"labels": {"app.kubernetes.io/name": "web"}, "fields": ["a", 1]},
            "spec": {"containers": [{"image": "x"}, {"image": "y"}], "args": ["1", "2"]},
        });
        let texts = |text: &str| -> Vec<String> {
            path(text).values(&pod).into_iter().map(ToString::to_string).collect()
        };
        assert_eq!(texts("metadata.labels[app.kubernetes.io/name]"), ["\"web\""]);
        assert_eq!(texts("metadata.labels[\"app.kubernetes.io/name\"]"), ["\"web\""]);
        assert_eq!(texts("metadata.fields[1]"), ["1"]);
        assert_eq!(texts("spec.containers.image"), ["\"x\"", "\"y\""]);
        assert_eq!(texts("spec.containers[1].image"), ["\"y\""]);
        assert_eq!(texts("spec.args"), ["\"1\"", "\"2\""]);
        assert!(texts("spec.none.of.this").is_empty());
    }

    #[test]
    fn a_path_that_cannot_be_read_says_why() {
        for (text, why) in [
            ("", "is empty"),
            ("a..b", "has an empty part"),
            ("a.", "ends with a dot"),
            ("a[b", "has no \"]\" for its \"[\""),
            ("a[b]c", "needs a dot after \"]\""),
            (&"a.".repeat(16), "ends with a dot"),
            (&format!("{}a", "a.".repeat(16)), "has more than 16 parts"),
            (&"a".repeat(600), "is longer than 512 bytes"),
        ] {
            assert_eq!(FieldPath::parse(text), Err(why.to_owned()), "{text}");
        }
    }

    #[test]
    fn paths_select_what_is_shown_of_an_object() {
        let secret = json!({"metadata": {"name": "a", "managedFields": [1]}, "data": {"k": "v"},
            "list": [{"x": 1, "y": 2}]});
        let mut shown = secret.clone();
        path("metadata.managedFields").remove(&mut shown);
        path("data").empty_values(&mut shown);
        path("list.x").remove(&mut shown);
        let expected = json!({"metadata": {"name": "a"}, "data": {"k": ""}, "list": [{"y": 2}]});
        assert_eq!(shown, expected);
        let mut copy = Value::Null;
        path("metadata.name").copy(&secret, &mut copy);
        path("metadata.labels.app").copy(&secret, &mut copy);
        assert_eq!(copy, json!({"metadata": {"name": "a"}}));
    }
}
