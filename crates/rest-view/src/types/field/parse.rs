//! Parses field types as schemas spell them.

use super::FieldType;

/// Nested brackets in the name of a type.
const NESTING_MAX: usize = 8;
/// Prefixes with which references may name the schema they refer to.
const SCHEMA_PATHS: [&str; 2] = ["/v3/schemas/", "/v3-public/schemas/"];

impl FieldType {
    /// The type that a schema calls `text`: `int`, `array[string]`, `reference[cluster]`. A word
    /// that is no built-in type is the id of an embedded type.
    ///
    /// `None`: brackets do not match, a name is empty, or the nesting is deeper than 8 levels.
    pub fn parse(text: &str) -> Option<Self> {
        parse(text, NESTING_MAX)
    }
}

fn parse(text: &str, nesting: usize) -> Option<FieldType> {
    if let Some((outer, rest)) = text.split_once('[') {
        let inner = rest.strip_suffix(']')?;
        let nested = || parse(inner, nesting.checked_sub(1)?).map(Box::new);
        return match outer {
            "array" => nested().map(FieldType::Array),
            "map" => nested().map(FieldType::Map),
            "reference" => {
                let id = SCHEMA_PATHS.iter().find_map(|path| inner.strip_prefix(path));
                name(id.unwrap_or(inner)).map(FieldType::Reference)
            }
            _ => None,
        };
    }
    Some(match text {
        "string" => FieldType::String,
        "password" => FieldType::Password,
        "dnsLabel" => FieldType::DnsLabel,
        "dnsLabelRestricted" => FieldType::DnsLabelRestricted,
        "hostname" => FieldType::Hostname,
        "int" => FieldType::Int,
        "float" => FieldType::Float,
        "boolean" => FieldType::Boolean,
        "json" => FieldType::Json,
        "base64" => FieldType::Base64,
        "intOrString" => FieldType::IntOrString,
        "date" => FieldType::Date,
        "enum" => FieldType::Enum,
        id => FieldType::Struct(name(id)?),
    })
}

fn name(id: &str) -> Option<String> {
    let fits = !id.is_empty() && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    fits.then(|| id.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_are_read_as_they_are_written() {
        for text in [
            "string",
            "password",
            "dnsLabel",
            "dnsLabelRestricted",
            "hostname",
            "int",
            "float",
            "boolean",
            "json",
            "base64",
            "intOrString",
            "date",
            "enum",
            "reference[cluster]",
            "array[reference[cluster]]",
            "map[array[nodeConfig]]",
        ] {
            let found = FieldType::parse(text).unwrap();
            assert_eq!(found.to_string(), text);
        }
        let full = FieldType::parse("reference[/v3/schemas/cluster]");
        assert_eq!(full, Some(FieldType::reference("cluster")));
        let deep = format!("{}int{}", "array[".repeat(100_000), "]".repeat(100_000));
        for text in ["", "array[", "array[]", "list[int]", "array[int", "a b", "reference[]", &deep]
        {
            assert_eq!(FieldType::parse(text), None, "{}", &text[..text.len().min(20)]);
        }
    }
}
