//! Options as a command line gives them: texts, whose types the driver's flags say.

use std::collections::BTreeMap;

use crate::types::{DriverFlags, DriverOptions, StringSlice};
use crate::{FlagType, InvalidFlag, field_name};

/// An option that the driver's flags do not allow.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOptionText {
    /// The driver has no such flag.
    #[error("the driver has no flag \"{name}\"; it has: {known}")]
    Unknown {
        /// The name.
        name: String,
        /// All flags.
        known: String,
    },
    /// The value is not of the type of the flag.
    #[error("\"{value}\" is no value for the flag \"{name}\", which needs {needed}")]
    WrongType {
        /// The name.
        name: String,
        /// The value.
        value: String,
        /// What is needed.
        needed: &'static str,
    },
    /// The driver declares the flag wrongly.
    #[error(transparent)]
    Flag(#[from] InvalidFlag),
}

/// Options from pairs of a name, as that of the flag or of its field, and a text. The name is
/// repeated for each value of a list.
///
/// # Errors
/// The driver has no such flag, or the text is not of its type.
pub fn parse_options(
    flags: &DriverFlags,
    given: &[(String, String)],
) -> Result<DriverOptions, InvalidOptionText> {
    let mut fields = BTreeMap::new();
    for (name, flag) in &flags.options {
        fields.insert(field_name(name)?, flag.flag_type(name)?);
    }
    let mut options = DriverOptions::default();
    for (name, text) in given {
        let field = field_name(name).unwrap_or_default();
        let Some(&kind) = fields.get(&field) else {
            let mut known: Vec<&str> = flags.options.keys().map(String::as_str).collect();
            known.sort_unstable();
            let known = known.join(", ");
            return Err(InvalidOptionText::Unknown { name: name.clone(), known });
        };
        let wrong = |needed| InvalidOptionText::WrongType {
            name: name.clone(),
            value: text.clone(),
            needed,
        };
        match kind {
            FlagType::String => drop(options.string_options.insert(field, text.clone())),
            FlagType::Int | FlagType::IntPtr => {
                let number = text.parse().map_err(|_| wrong("a whole number"))?;
                options.int_options.insert(field, number);
            }
            FlagType::Bool | FlagType::BoolPtr => {
                let value = text.parse().map_err(|_| wrong("true or false"))?;
                options.bool_options.insert(field, value);
            }
            FlagType::StringSlice => {
                let StringSlice { value } = options.string_slice_options.entry(field).or_default();
                value.push(text.clone());
            }
        }
    }
    Ok(options)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Flag;

    fn flags() -> DriverFlags {
        let flag = |kind: &str| Flag { r#type: kind.to_owned(), ..Flag::default() };
        let pairs = [
            ("disk-size-gb", "int"),
            ("region", "string"),
            ("public", "boolPtr"),
            ("node-labels", "stringSlice"),
        ];
        let options = pairs.into_iter().map(|(name, kind)| (name.to_owned(), flag(kind)));
        DriverFlags { options: options.collect() }
    }

    fn parse(pairs: &[(&str, &str)]) -> Result<DriverOptions, InvalidOptionText> {
        let pairs: Vec<(String, String)> =
            pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        parse_options(&flags(), &pairs)
    }

    #[test]
    fn texts_get_the_types_of_the_flags_and_the_names_of_the_fields() {
        let options = parse(&[
            ("disk-size-gb", "20"),
            ("region", "west"),
            ("public", "false"),
            ("node-labels", "a=1,b=2"),
            ("nodeLabels", "c=3"),
        ])
        .unwrap();
        assert_eq!(options.int_options["diskSizeGb"], 20);
        assert_eq!(options.string_options["region"], "west");
        assert!(!options.bool_options["public"]);
        assert_eq!(options.string_slice_options["nodeLabels"].value, ["a=1,b=2", "c=3"]);
    }

    #[test]
    fn unknown_names_and_wrong_types_say_what_would_be_right() {
        let error = parse(&[("zone", "a")]).unwrap_err().to_string();
        assert_eq!(
            error,
            "the driver has no flag \"zone\"; it has: disk-size-gb, node-labels, public, region"
        );
        let error = parse(&[("disk-size-gb", "big")]).unwrap_err().to_string();
        assert!(error.ends_with("which needs a whole number"), "{error}");
        assert!(parse(&[("public", "yes")]).is_err());
    }
}
