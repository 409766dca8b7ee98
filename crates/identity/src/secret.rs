//! Text that must not be seen: logs and debug output show `[redacted]`, memory is wiped when it is
//! dropped.

use std::fmt;

use zeroize::Zeroizing;

#[derive(Clone, Default)]
pub struct Secret(Zeroizing<String>);

impl Secret {
    pub fn new(text: impl Into<String>) -> Self {
        Self(Zeroizing::new(text.into()))
    }
    /// The text itself. Every call is a place where it may leak.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[redacted]")
    }
}
