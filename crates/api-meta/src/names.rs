//! Grammars of names, with the messages that clients see when a name is invalid.
//!
//! Every check returns all problems, each a message for the cause of a failed validation; empty
//! means valid. Source: `k8s.io/apimachinery/pkg/util/validation`.

#[cfg(test)]
mod tests;

/// Longest DNS label and longest name part of a qualified name, in bytes.
pub const LABEL_LENGTH_MAX: usize = 63;
/// Longest DNS subdomain, in bytes.
pub const SUBDOMAIN_LENGTH_MAX: usize = 253;
/// Random characters that follow `generateName`.
pub const SUFFIX_LENGTH: usize = 5;
/// No vowels and no characters that resemble others, so that suffixes spell no words.
const SUFFIX_ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

const LABEL_1123: &str = "a lowercase RFC 1123 label must consist of lower case alphanumeric \
    characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or \
    '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const SUBDOMAIN_1123: &str = "a lowercase RFC 1123 subdomain must consist of lower case \
    alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character \
    (e.g. 'example.com', regex used for validation is \
    '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const WILDCARD_1123: &str = "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must \
    consist of lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. \
    '*.example.com', regex used for validation is \
    '\\*\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const LABEL_1035: &str = "a DNS-1035 label must consist of lower case alphanumeric characters or \
    '-', start with an alphabetic character, and end with an alphanumeric character (e.g. \
    'my-name',  or 'abc-123', regex used for validation is '[a-z]([-a-z0-9]*[a-z0-9])?')";
const QUALIFIED: &str = "must consist of alphanumeric characters, '-', '_' or '.', and must start \
    and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex \
    used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const LABEL_VALUE: &str = "a valid label must be an empty string or consist of alphanumeric \
    characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. \
    'MyValue',  or 'my_value',  or '12345', regex used for validation is \
    '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const CONFIG_KEY: &str = "a valid config key must consist of alphanumeric characters, '-', '_' or \
    '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is \
    '[-._a-zA-Z0-9]+')";
const PORT_NAME: &str = "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)";

/// One of the checks below: a message for each rule that a text violates.
pub type NameCheck = fn(&str) -> Vec<String>;

/// The grammar of the names of a kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameRule {
    Dns1123Subdomain,
    Dns1123Label,
    Dns1035Label,
    PathSegment,
}

impl NameRule {
    /// Problems of a whole name.
    pub fn check(self, name: &str) -> Vec<String> {
        match self {
            Self::Dns1123Subdomain => dns1123_subdomain(name),
            Self::Dns1123Label => dns1123_label(name),
            Self::Dns1035Label => dns1035_label(name),
            Self::PathSegment => path_segment(name, false),
        }
    }

    /// Problems of a `generateName`, which may end in `-`; its end may be cut.
    pub fn check_prefix(self, prefix: &str) -> Vec<String> {
        match self {
            Self::PathSegment => path_segment(prefix, true),
            _ if prefix.len() > 1 && prefix.ends_with('-') => {
                self.check(&format!("{}a", &prefix[..prefix.len() - 1]))
            }
            _ => self.check(prefix),
        }
    }
}

fn too_long(max: usize) -> String {
    format!("must be no more than {max} bytes")
}

fn is_lower_alphanumeric(byte: u8) -> bool {
    byte.is_ascii_lowercase() || byte.is_ascii_digit()
}

fn fits_label(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().copied().zip(bytes.last().copied());
    ends.is_some_and(|(first, last)| is_lower_alphanumeric(first) && is_lower_alphanumeric(last))
        && bytes.iter().all(|&byte| is_lower_alphanumeric(byte) || byte == b'-')
}

fn fits_subdomain(text: &str) -> bool {
    text.split('.').all(fits_label)
}

/// Alphanumeric ends, and `-`, `_`, `.` between.
fn fits_qualified(text: &str) -> bool {
    let bytes = text.as_bytes();
    let ends = bytes.first().copied().zip(bytes.last().copied());
    ends.is_some_and(|(first, last)| first.is_ascii_alphanumeric() && last.is_ascii_alphanumeric())
        && bytes.iter().all(|&byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte))
}

/// Problems of a lower-case RFC 1123 label of at most 63 bytes.
pub fn dns1123_label(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_LENGTH_MAX {
        problems.push(too_long(LABEL_LENGTH_MAX));
    }
    if !fits_label(name) {
        let dotted = fits_subdomain(name);
        problems.push(if dotted { "must not contain dots" } else { LABEL_1123 }.to_owned());
    }
    problems
}

/// Problems of a lower-case RFC 1123 subdomain of at most 253 bytes.
pub fn dns1123_subdomain(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_LENGTH_MAX {
        problems.push(too_long(SUBDOMAIN_LENGTH_MAX));
    }
    if !fits_subdomain(name) {
        problems.push(SUBDOMAIN_1123.to_owned());
    }
    problems
}

/// Problems of `*.` followed by a subdomain.
pub fn wildcard_dns1123_subdomain(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > SUBDOMAIN_LENGTH_MAX {
        problems.push(too_long(SUBDOMAIN_LENGTH_MAX));
    }
    if !name.strip_prefix("*.").is_some_and(fits_subdomain) {
        problems.push(WILDCARD_1123.to_owned());
    }
    problems
}

/// Problems of a lower-case RFC 1035 label, which begins with a letter.
pub fn dns1035_label(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > LABEL_LENGTH_MAX {
        problems.push(too_long(LABEL_LENGTH_MAX));
    }
    if !fits_label(name) || name.starts_with(|first: char| first.is_ascii_digit()) {
        problems.push(LABEL_1035.to_owned());
    }
    problems
}

/// Problems of one segment of a URL path. A `prefix` may be `.` or `..`, because more follows.
pub fn path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && (name == "." || name == "..") {
        return vec![format!("may not be '{name}'")];
    }
    ['/', '%']
        .into_iter()
        .filter(|&forbidden| name.contains(forbidden))
        .map(|forbidden| format!("may not contain '{forbidden}'"))
        .collect()
}

/// Problems of `[subdomain/]name`: keys of labels and annotations, finalizers, condition types.
pub fn qualified_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    let parts: Vec<&str> = name.split('/').collect();
    let part = match parts.as_slice() {
        [part] => *part,
        [prefix, part] => {
            if prefix.is_empty() {
                problems.push("prefix part must be non-empty".to_owned());
            } else {
                let found = dns1123_subdomain(prefix);
                problems.extend(found.into_iter().map(|text| format!("prefix part {text}")));
            }
            *part
        }
        _ => {
            problems.push(format!(
                "a valid label key {QUALIFIED} with an optional DNS subdomain prefix and '/' (e.g. \
                 'example.com/MyName')"
            ));
            return problems;
        }
    };
    if part.is_empty() {
        problems.push("name part must be non-empty".to_owned());
    } else if part.len() > LABEL_LENGTH_MAX {
        problems.push(format!("name part {}", too_long(LABEL_LENGTH_MAX)));
    }
    if !fits_qualified(part) {
        problems.push(format!("name part {QUALIFIED}"));
    }
    problems
}

/// Problems of the value of a label: empty, or at most 63 bytes.
pub fn label_value(value: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if value.len() > LABEL_LENGTH_MAX {
        problems.push(too_long(LABEL_LENGTH_MAX));
    }
    if !value.is_empty() && !fits_qualified(value) {
        problems.push(LABEL_VALUE.to_owned());
    }
    problems
}

/// Problems of a key of a Secret or ConfigMap, which becomes a file name.
pub fn config_key(key: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if key.len() > SUBDOMAIN_LENGTH_MAX {
        problems.push(too_long(SUBDOMAIN_LENGTH_MAX));
    }
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if key.is_empty() || !key.bytes().all(fits) {
        problems.push(CONFIG_KEY.to_owned());
    } else if key == "." || key == ".." {
        problems.push(format!("must not be '{key}'"));
    } else if key.starts_with("..") {
        problems.push("must not start with '..'".to_owned());
    }
    problems
}

/// Problems of the name of a container port: at most 15 characters, with at least one letter.
pub fn port_name(name: &str) -> Vec<String> {
    let mut problems = Vec::new();
    if name.len() > 15 {
        problems.push("must be no more than 15 characters".to_owned());
    }
    let fits = |byte: u8| is_lower_alphanumeric(byte) || byte == b'-';
    if name.is_empty() || !name.bytes().all(fits) {
        problems.push(PORT_NAME.to_owned());
    }
    if !name.bytes().any(|byte| byte.is_ascii_lowercase()) {
        problems.push("must contain at least one letter (a-z)".to_owned());
    }
    if name.contains("--") {
        problems.push("must not contain consecutive hyphens".to_owned());
    }
    if name.starts_with('-') || name.ends_with('-') {
        problems.push("must not begin or end with a hyphen".to_owned());
    }
    problems
}

/// The name of an object that has only `generateName`: at most 63 bytes; the end of a long `base`
/// is cut.
///
/// `random` is five random bytes. The same bytes give the same name; on a collision try new ones.
pub fn generate_name(base: &str, random: [u8; SUFFIX_LENGTH]) -> String {
    let mut end = base.len().min(LABEL_LENGTH_MAX - SUFFIX_LENGTH);
    while !base.is_char_boundary(end) {
        end -= 1;
    }
    let mut name = base[..end].to_owned();
    name.extend(
        random
            .iter()
            .map(|&byte| char::from(SUFFIX_ALPHABET[usize::from(byte) % SUFFIX_ALPHABET.len()])),
    );
    name
}
