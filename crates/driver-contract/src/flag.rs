//! Flags: their types, and the names of the fields that they become.

use crate::types::{Flag, StringSlice};

/// What the value of a flag is. A pointer differs from its plain type in that it may be unset,
/// which the API cannot express.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FlagType {
    /// `string`
    String,
    /// `int`
    Int,
    /// `intPtr`
    IntPtr,
    /// `bool`
    Bool,
    /// `boolPtr`
    BoolPtr,
    /// `stringSlice`
    StringSlice,
}

/// A flag that cannot become a field.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidFlag {
    /// The type is none of [`FlagType`].
    #[error(
        "flag \"{flag}\" has the type \"{kind}\"; known are string, int, intPtr, bool, boolPtr and \
         stringSlice"
    )]
    UnknownType {
        /// The name of the flag.
        flag: String,
        /// The unknown type.
        kind: String,
    },
    /// The name has an empty part, or characters that no field can have.
    #[error(
        "flag \"{0}\" has no name that can be a field: use letters and digits, in parts that \
         single hyphens separate"
    )]
    InvalidName(String),
}

impl FlagType {
    /// The type by its text in a flag.
    pub fn parse(text: &str) -> Option<Self> {
        Some(match text {
            "string" => Self::String,
            "int" => Self::Int,
            "intPtr" => Self::IntPtr,
            "bool" => Self::Bool,
            "boolPtr" => Self::BoolPtr,
            "stringSlice" => Self::StringSlice,
            _ => return None,
        })
    }

    /// The text in a flag.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::String => "string",
            Self::Int => "int",
            Self::IntPtr => "intPtr",
            Self::Bool => "bool",
            Self::BoolPtr => "boolPtr",
            Self::StringSlice => "stringSlice",
        }
    }
}

impl Flag {
    /// The type of the flag called `name`.
    ///
    /// # Errors
    /// The driver uses a type that the contract does not have.
    pub fn flag_type(&self, name: &str) -> Result<FlagType, InvalidFlag> {
        FlagType::parse(&self.r#type).ok_or_else(|| InvalidFlag::UnknownType {
            flag: name.to_owned(),
            kind: self.r#type.clone(),
        })
    }

    /// The default of a string: old drivers have it in `value`.
    pub fn default_string(&self) -> &str {
        self.default.as_ref().map_or(&self.value, |default| &default.default_string)
    }

    /// The default of an integer.
    pub fn default_int(&self) -> i64 {
        self.default.as_ref().map(|default| default.default_int).unwrap_or_default()
    }

    /// The default of a boolean.
    pub fn default_bool(&self) -> bool {
        self.default.as_ref().map(|default| default.default_bool).unwrap_or_default()
    }

    /// The default of a list; none if the flag has none.
    pub fn default_list(&self) -> Option<&[String]> {
        let list = self.default.as_ref()?.default_string_slice.as_ref();
        list.map(|StringSlice { value }| value.as_slice())
    }
}

/// The name of the field that a flag becomes: `disk-size-gb` is `diskSizeGb`, and `keyPairName`
/// stays.
///
/// # Errors
/// The name has an empty part (`a--b`), or something other than letters, digits, `-` and `_`.
pub fn field_name(flag: &str) -> Result<String, InvalidFlag> {
    let is_valid = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
    };
    let mut parts = flag.split('-');
    if !flag.split('-').all(is_valid) {
        return Err(InvalidFlag::InvalidName(flag.to_owned()));
    }
    let mut name = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (first, rest) = part.split_at(1);
        name.push_str(&first.to_ascii_uppercase());
        name.push_str(rest);
    }
    Ok(name)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::types::Default;

    #[test]
    fn flags_become_fields_in_camel_case() {
        let names = [
            ("disk-size-gb", "diskSizeGb"),
            ("cluster-ipv4-cidr", "clusterIpv4Cidr"),
            ("keyPairName", "keyPairName"),
            ("node_pool", "node_pool"),
            ("a-1b", "a1b"),
        ];
        for (flag, field) in names {
            assert_eq!(field_name(flag).as_deref(), Ok(field));
        }
        for flag in ["", "a--b", "-a", "a-", "a.b", "größe", "a b"] {
            assert_eq!(field_name(flag), Err(InvalidFlag::InvalidName(flag.to_owned())));
        }
    }

    #[test]
    fn a_default_replaces_the_value_even_when_it_is_empty() {
        let old = Flag { value: "eastus".to_owned(), ..Flag::default() };
        assert_eq!(old.default_string(), "eastus");
        let new = Flag { default: Some(Default::default()), ..old };
        assert_eq!(new.default_string(), "");
        // Servers of the original fail on such a list.
        assert_eq!(new.default_list(), None);
    }

    #[test]
    fn a_type_outside_of_the_contract_is_named() {
        let flag = Flag { r#type: "float".to_owned(), ..Flag::default() };
        assert!(
            flag.flag_type("ratio").unwrap_err().to_string().contains("\"ratio\" has the type")
        );
        for text in ["string", "int", "intPtr", "bool", "boolPtr", "stringSlice"] {
            assert_eq!(FlagType::parse(text).map(FlagType::as_str), Some(text));
        }
    }
}
