//! Named formats of text: `format.dns1123Label().validate(text)`.

use std::sync::LazyLock;

use api_meta::names::{self, NameRule};
use regex::Regex;

use crate::library::url::Url;
use crate::time::Timestamp;
use crate::value::{EvalResult, Value};

/// A named format, such as `dns1123Label`.
#[derive(Debug)]
pub struct NamedFormat {
    name: &'static str,
    /// Characters of an equivalent pattern, which determine the cost.
    pub(crate) pattern_size: u64,
    problems: fn(&str) -> Vec<String>,
}

static FORMATS: [NamedFormat; 13] = [
    NamedFormat { name: "dns1123Label", pattern_size: 30, problems: names::dns1123_label },
    NamedFormat { name: "dns1123Subdomain", pattern_size: 60, problems: names::dns1123_subdomain },
    NamedFormat { name: "dns1035Label", pattern_size: 30, problems: names::dns1035_label },
    NamedFormat { name: "qualifiedName", pattern_size: 60, problems: names::qualified_name },
    NamedFormat {
        name: "dns1123LabelPrefix",
        pattern_size: 30,
        problems: |text| NameRule::Dns1123Label.check_prefix(text),
    },
    NamedFormat {
        name: "dns1123SubdomainPrefix",
        pattern_size: 60,
        problems: |text| NameRule::Dns1123Subdomain.check_prefix(text),
    },
    NamedFormat {
        name: "dns1035LabelPrefix",
        pattern_size: 30,
        problems: |text| NameRule::Dns1035Label.check_prefix(text),
    },
    NamedFormat { name: "labelValue", pattern_size: 40, problems: names::label_value },
    NamedFormat {
        name: "uri",
        pattern_size: 1121,
        problems: |text| {
            let problem = || format!("parse {text:?}: invalid URI for request");
            if Url::is_valid(text) { Vec::new() } else { vec![problem()] }
        },
    },
    NamedFormat {
        name: "uuid",
        pattern_size: 66,
        problems: |text| unless(UUID.is_match(text), "does not match the UUID format"),
    },
    NamedFormat {
        name: "byte",
        pattern_size: 81,
        problems: |text| {
            use base64::Engine as _;
            let valid = base64::engine::general_purpose::STANDARD.decode(text).is_ok();
            unless(valid && !text.is_empty(), "invalid base64")
        },
    },
    NamedFormat {
        name: "date",
        pattern_size: 138,
        problems: |text| unless(Timestamp::parse_date(text).is_some(), "invalid date"),
    },
    NamedFormat {
        name: "datetime",
        pattern_size: 138,
        problems: |text| unless(Timestamp::parse_schema(text).is_some(), "invalid datetime"),
    },
];

static UUID: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new("(?i)^[0-9a-f]{8}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{4}-?[0-9a-f]{12}$")
        .expect("a constant pattern compiles")
});

fn unless(valid: bool, problem: &str) -> Vec<String> {
    if valid { Vec::new() } else { vec![problem.to_owned()] }
}

fn find(name: &str) -> Option<&'static NamedFormat> {
    FORMATS.iter().find(|format| format.name == name)
}

pub(crate) fn call<'a>(function: &str, args: &[Value<'a>]) -> Option<EvalResult<'a>> {
    Some(Ok(match (function, args) {
        ("format.named", [Value::Text(name)]) => {
            Value::Optional(find(name).map(|format| std::rc::Rc::new(Value::Format(format))))
        }
        ("validate", [Value::Format(format), Value::Text(text)]) => {
            let problems = (format.problems)(text);
            match problems.is_empty() {
                true => Value::Optional(None),
                false => Value::some(Value::list(problems.into_iter().map(Value::text).collect())),
            }
        }
        (function, []) => Value::Format(find(function.strip_prefix("format.")?)?),
        _ => return None,
    }))
}
