//! Options: fields of a struct, declared as flags and read from what a request brings.

use driver_contract::types::{
    Default as FlagDefault, DriverFlags, DriverOptions, Flag, StringSlice,
};
use driver_contract::{FlagType, field_name};

/// The options of a driver, as a struct. Derive it: each field is a flag.
///
/// The type of a field is `String`, `i64`, `bool`, `Vec<String>`, or an `Option` of one of them,
/// which is `None` if a request does not have it. Its comment is the help that users see. The
/// attribute `#[flag(…)]` has:
///
/// - `default = …`: the value if a request does not have it;
/// - `required`: a request without it, or with an empty text, is refused;
/// - `password`: the value is a secret, and is not stored or shown with the cluster;
/// - `name = "…"`: the name of the flag, by default that of the field with hyphens.
pub trait Options: Sized + Send + 'static {
    /// The flags, by name.
    fn flags() -> DriverFlags;
    /// The values in a request.
    ///
    /// # Errors
    /// A value is missing or has another type than its flag.
    fn read(given: &DriverOptions) -> Result<Self, InvalidOption>;
}

/// No options.
impl Options for () {
    fn flags() -> DriverFlags {
        DriverFlags::default()
    }

    fn read(_: &DriverOptions) -> Result<Self, InvalidOption> {
        Ok(())
    }
}

/// A request whose options cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidOption {
    /// A required option is not in the request.
    #[error("the option \"{0}\" is required")]
    Missing(&'static str),
    /// The value has another type than the flag.
    #[error("the option \"{name}\" needs a value of the type {needed}")]
    WrongType {
        /// The name of the flag.
        name: &'static str,
        /// The type of the flag.
        needed: &'static str,
    },
}

/// One flag, as the derive macro declares it.
#[derive(Clone, Debug)]
pub struct Declaration<V: OptionValue> {
    /// Its name.
    pub name: &'static str,
    /// Help for users, one line.
    pub usage: &'static str,
    /// Its value is a secret.
    pub is_password: bool,
    /// A request must have it.
    pub is_required: bool,
    /// Its value if a request does not have it.
    pub default: Option<V::Plain>,
}

impl<V: OptionValue> Declaration<V> {
    /// The flag with its name.
    pub fn flag(&self) -> (String, Flag) {
        let default = self.default.clone().map(V::default);
        let flag = Flag {
            r#type: V::TYPE.as_str().to_owned(),
            usage: self.usage.to_owned(),
            value: String::new(),
            // Servers of the original fail on a list without a default.
            default: Some(default.unwrap_or_else(|| FlagDefault {
                default_string_slice: Some(StringSlice::default()),
                ..FlagDefault::default()
            })),
            password: self.is_password,
        };
        (self.name.to_owned(), flag)
    }

    /// The value in a request.
    ///
    /// # Errors
    /// It is missing, or has another type.
    pub fn read(self, given: &DriverOptions) -> Result<V, InvalidOption> {
        // Programs send the name of the flag, servers that of its field.
        let field = field_name(self.name).unwrap_or_default();
        let names = [self.name, &field];
        let found = names.iter().find_map(|name| V::find(given, name));
        if found.is_none() && names.iter().any(|name| has(given, name)) {
            return Err(InvalidOption::WrongType { name: self.name, needed: V::TYPE.as_str() });
        }
        if self.is_required && found.as_ref().is_none_or(V::is_empty) {
            return Err(InvalidOption::Missing(self.name));
        }
        Ok(V::of(found.or(self.default)))
    }
}

/// Whether the request has an option of any type.
fn has(given: &DriverOptions, name: &str) -> bool {
    given.string_options.contains_key(name)
        || given.int_options.contains_key(name)
        || given.bool_options.contains_key(name)
        || given.string_slice_options.contains_key(name)
}

/// A type that an option can have.
pub trait OptionValue: Sized {
    /// Without the `Option`.
    type Plain: Clone;
    /// The type in the flag.
    const TYPE: FlagType;
    /// The default in the flag.
    fn default(value: Self::Plain) -> FlagDefault;
    /// The value of this name in a request.
    fn find(given: &DriverOptions, name: &str) -> Option<Self::Plain>;
    /// Whether the value says nothing.
    fn is_empty(value: &Self::Plain) -> bool;
    /// From the value of the request, or else the default.
    fn of(value: Option<Self::Plain>) -> Self;
}

macro_rules! plain_option {
    ($kind:ty, $type:ident, $map:ident, |$found:ident| $read:expr, |$value:ident| $default:expr, |$empty:ident| $is_empty:expr) => {
        impl OptionValue for $kind {
            type Plain = Self;
            const TYPE: FlagType = FlagType::$type;
            fn default($value: Self) -> FlagDefault {
                $default
            }
            fn find(given: &DriverOptions, name: &str) -> Option<Self> {
                given.$map.get(name).map(|$found| $read)
            }
            fn is_empty($empty: &Self) -> bool {
                $is_empty
            }
            fn of(value: Option<Self>) -> Self {
                value.unwrap_or_default()
            }
        }
    };
}

plain_option!(
    String,
    String,
    string_options,
    |found| found.clone(),
    |value| FlagDefault { default_string: value, ..FlagDefault::default() },
    |value| value.is_empty()
);
plain_option!(
    i64,
    Int,
    int_options,
    |found| *found,
    |value| FlagDefault { default_int: value, ..FlagDefault::default() },
    |_value| false
);
plain_option!(
    bool,
    Bool,
    bool_options,
    |found| *found,
    |value| FlagDefault { default_bool: value, ..FlagDefault::default() },
    |_value| false
);
plain_option!(
    Vec<String>,
    StringSlice,
    string_slice_options,
    |found| found.value.clone(),
    |value| FlagDefault {
        default_string_slice: Some(StringSlice { value }),
        ..FlagDefault::default()
    },
    |value| value.is_empty()
);

impl<V: OptionValue<Plain = V> + Clone> OptionValue for Option<V> {
    type Plain = V;
    const TYPE: FlagType = match V::TYPE {
        FlagType::Int => FlagType::IntPtr,
        FlagType::Bool => FlagType::BoolPtr,
        other => other,
    };
    fn default(value: V) -> FlagDefault {
        V::default(value)
    }
    fn find(given: &DriverOptions, name: &str) -> Option<V> {
        V::find(given, name)
    }
    fn is_empty(value: &V) -> bool {
        V::is_empty(value)
    }
    fn of(value: Option<V>) -> Self {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, driver_sdk_derive::Options)]
    struct Given {
        /// Size of the disk attached to each node
        #[flag(default = 100)]
        disk_size_gb: i64,
        /// Where the cluster is.
        /// Regions are listed by the provider.
        #[flag(default = "west", required)]
        region: String,
        /// Key of the provider
        #[flag(password, required)]
        access_token: String,
        /// Key pair of the nodes
        #[flag(name = "keyPairName")]
        key_pair: Option<String>,
        /// Labels of the nodes
        labels: Vec<String>,
        /// Encrypt the disks
        #[flag(default = true)]
        encrypt: bool,
        /// Number of nodes
        #[flag(default = 3)]
        nodes: Option<i64>,
        /// Assign public addresses
        public: Option<bool>,
    }

    fn sent() -> DriverOptions {
        let mut given = DriverOptions::default();
        given.int_options.insert("diskSizeGb".to_owned(), 20);
        given.string_options.insert("region".to_owned(), "east".to_owned());
        given.string_options.insert("access-token".to_owned(), "t".to_owned());
        given
    }

    #[test]
    fn fields_are_flags_with_types_help_and_defaults() {
        let flags = Given::flags().options;
        let of = |name: &str| (flags[name].r#type.as_str(), flags[name].usage.as_str());
        assert_eq!(of("disk-size-gb"), ("int", "Size of the disk attached to each node"));
        assert_eq!(flags["disk-size-gb"].default_int(), 100);
        let usage = "Where the cluster is. Regions are listed by the provider";
        assert_eq!(of("region"), ("string", usage));
        assert_eq!(flags["region"].default_string(), "west");
        assert!(flags["access-token"].password && !flags["region"].password);
        assert_eq!(of("keyPairName").0, "string");
        assert_eq!(of("labels").0, "stringSlice");
        assert_eq!(flags["labels"].default_list(), Some(&[][..]));
        assert!(flags["encrypt"].default_bool());
        assert_eq!((of("nodes").0, of("public").0), ("intPtr", "boolPtr"));
        assert_eq!(flags.len(), 8);
    }

    #[test]
    fn values_come_by_the_name_of_the_flag_or_of_its_field() {
        let read = Given::read(&sent()).unwrap();
        let expected = Given {
            disk_size_gb: 20,
            region: "east".to_owned(),
            access_token: "t".to_owned(),
            key_pair: None,
            labels: Vec::new(),
            encrypt: true,
            nodes: Some(3),
            public: None,
        };
        assert_eq!(read, expected);
    }

    #[test]
    fn missing_and_mistyped_values_are_refused_by_name() {
        let mut given = sent();
        given.string_options.insert("access-token".to_owned(), String::new());
        assert_eq!(Given::read(&given), Err(InvalidOption::Missing("access-token")));
        let mut given = sent();
        given.int_options.clear();
        given.string_options.insert("diskSizeGb".to_owned(), "20".to_owned());
        let wrong = InvalidOption::WrongType { name: "disk-size-gb", needed: "int" };
        assert_eq!(Given::read(&given), Err(wrong));
    }
}
