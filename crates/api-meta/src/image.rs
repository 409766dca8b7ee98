//! References to container images: `[registry/]path[:tag][@digest]`.
//!
//! Source: the grammar of the distribution project (`reference`), with the defaults of container
//! runtimes. No registry is contacted.

use std::fmt;
use std::str::FromStr;

#[cfg(test)]
mod tests;

/// Longest registry and path together, in bytes.
const NAME_LENGTH_MAX: usize = 255;
const TAG_LENGTH_MAX: usize = 128;
/// Hex digits of the shortest digest that the grammar allows.
const DIGEST_HEX_MIN: usize = 32;
/// The registry that runtimes use for a reference without one.
const DEFAULT_REGISTRY: &str = "docker.io";
/// The folder that they use in that registry for a path with one part.
const DEFAULT_FOLDER: &str = "library";
const DEFAULT_TAG: &str = "latest";

/// A reference to a container image that container runtimes accept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImageReference {
    registry: Option<String>,
    path: String,
    tag: Option<String>,
    digest: Option<String>,
}

/// Which part of a reference is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be an image reference such as \"registry.example/team/agent:1.0\": {0}")]
pub struct ImageReferenceError(&'static str);

impl ImageReference {
    /// `host[:port]`, if the reference names one.
    pub fn registry(&self) -> Option<&str> {
        self.registry.as_deref()
    }

    /// The tag, if the reference names one.
    pub fn tag(&self) -> Option<&str> {
        self.tag.as_deref()
    }

    /// The digest, such as `sha256:…`, if the reference names one.
    pub fn digest(&self) -> Option<&str> {
        self.digest.as_deref()
    }

    /// The same image in `registry`, unless the reference names a registry itself.
    #[must_use]
    pub fn in_registry(mut self, registry: &str) -> Self {
        self.registry.get_or_insert_with(|| registry.to_owned());
        self
    }

    /// The reference with all defaults filled in: the name under which runtimes store the image.
    pub fn canonical(&self) -> String {
        let registry = self.registry.as_deref().unwrap_or(DEFAULT_REGISTRY);
        let short = registry == DEFAULT_REGISTRY && !self.path.contains('/');
        let folder = if short { format!("{DEFAULT_FOLDER}/") } else { String::new() };
        let tag = match (&self.tag, &self.digest) {
            (Some(tag), _) => format!(":{tag}"),
            (None, Some(_)) => String::new(),
            (None, None) => format!(":{DEFAULT_TAG}"),
        };
        let digest = self.digest.as_ref().map(|digest| format!("@{digest}")).unwrap_or_default();
        format!("{registry}/{folder}{}{tag}{digest}", self.path)
    }
}

impl fmt::Display for ImageReference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(registry) = &self.registry {
            write!(f, "{registry}/")?;
        }
        f.write_str(&self.path)?;
        if let Some(tag) = &self.tag {
            write!(f, ":{tag}")?;
        }
        if let Some(digest) = &self.digest {
            write!(f, "@{digest}")?;
        }
        Ok(())
    }
}

impl FromStr for ImageReference {
    type Err = ImageReferenceError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let (rest, digest) = match text.split_once('@') {
            Some((rest, digest)) => (rest, Some(digest)),
            None => (text, None),
        };
        // A colon before the last slash is a port.
        let (name, tag) = match rest.rsplit_once(':') {
            Some((name, tag)) if !tag.contains('/') => (name, Some(tag)),
            _ => (rest, None),
        };
        let (registry, path) = match name.split_once('/') {
            Some((first, path)) if is_registry(first) => (Some(first), path),
            _ => (None, name),
        };
        let wrong = |why| Err(ImageReferenceError(why));
        if name.len() > NAME_LENGTH_MAX {
            return wrong("it may have at most 255 characters before its tag");
        }
        if !registry.is_none_or(fits_registry) {
            return wrong("before the first '/' there must be a host, with or without a port");
        }
        if !path.split('/').all(fits_part) {
            return wrong(
                "its path must have lower-case letters, digits, and single '.', '_' or '-' between \
                 them",
            );
        }
        if !tag.is_none_or(fits_tag) {
            return wrong("a tag has at most 128 letters, digits, '_', '.' and '-'");
        }
        if !digest.is_none_or(fits_digest) {
            return wrong("a digest is an algorithm, ':' and hex digits");
        }
        let owned = |part: Option<&str>| part.map(str::to_owned);
        let path = path.to_owned();
        Ok(Self { registry: owned(registry), path, tag: owned(tag), digest: owned(digest) })
    }
}

/// Only these first parts are hosts; all others belong to the path.
fn is_registry(part: &str) -> bool {
    part == "localhost"
        || part.contains(['.', ':'])
        || part.bytes().any(|byte| byte.is_ascii_uppercase())
}

fn fits_registry(text: &str) -> bool {
    let (host, port) = match text.rsplit_once(':') {
        // The colons of an address in brackets are its own.
        Some((host, port)) if !port.ends_with(']') => (host, Some(port)),
        _ => (text, None),
    };
    let digits = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let host_fits = match host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
        Some(inside) => inside.parse::<std::net::Ipv6Addr>().is_ok(),
        None => host.split('.').all(fits_host_part),
    };
    host_fits && port.is_none_or(digits)
}

fn fits_host_part(part: &str) -> bool {
    !part.is_empty()
        && !part.starts_with('-')
        && !part.ends_with('-')
        && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
}

/// Runs of letters and digits; between two of them `.`, `_`, `__`, or any number of `-`.
fn fits_part(part: &str) -> bool {
    let is_word = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    let ends_well = part.starts_with(is_word) && part.ends_with(is_word);
    let mut between = part.split(is_word).filter(|run| !run.is_empty());
    ends_well
        && between.all(|run| matches!(run, "." | "_" | "__") || run.bytes().all(|b| b == b'-'))
}

fn fits_tag(tag: &str) -> bool {
    let is_word = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    (1..=TAG_LENGTH_MAX).contains(&tag.len())
        && tag.bytes().next().is_some_and(is_word)
        && tag.bytes().all(|byte| is_word(byte) || byte == b'.' || byte == b'-')
}

fn fits_digest(digest: &str) -> bool {
    let Some((algorithm, hex)) = digest.split_once(':') else { return false };
    let named = algorithm.starts_with(|first: char| first.is_ascii_alphabetic())
        && algorithm.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"+.-_".contains(&byte));
    named && hex.len() >= DIGEST_HEX_MIN && hex.bytes().all(|byte| byte.is_ascii_hexdigit())
}
