//! Id formats: a prefix and a random suffix from an alphabet without look-alikes.

/// Digits and consonants that are not mistaken for one another.
pub const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of a generated id after its prefix.
pub const SUFFIX_LEN: usize = 5;
/// Characters of a secret key: tokens and registration tokens.
pub const KEY_LEN: usize = 54;

pub const CLUSTER_PREFIX: &str = "c-";
pub const PROJECT_PREFIX: &str = "p-";
pub const USER_PREFIX: &str = "u-";
/// Of users that the server itself makes.
pub const USER_BOOTSTRAP_PREFIX: &str = "user-";
pub const TOKEN_PREFIX: &str = "token-";
pub const NODE_PREFIX: &str = "machine-";
pub const CLUSTER_ROLE_TEMPLATE_BINDING_PREFIX: &str = "crtb-";

/// The cluster that is the management API itself.
pub const LOCAL_CLUSTER: &str = "local";

/// `prefix` and one character of the alphabet for each byte of `random`.
///
/// 256 is no multiple of 27, so the first characters are slightly likelier: fine for ids, and a key
/// of [`KEY_LEN`] such characters still has more than 250 bits.
pub fn from_random(prefix: &str, random: &[u8]) -> String {
    let mut id = String::with_capacity(prefix.len() + random.len());
    id.push_str(prefix);
    id.extend(random.iter().map(|&byte| char::from(ALPHABET[usize::from(byte) % ALPHABET.len()])));
    id
}

/// Whether `id` can name a cluster: `local`, a generated id, or any DNS label short enough for the
/// namespace of the same name.
pub fn is_cluster_id(id: &str) -> bool {
    is_dns_label(id)
}

/// RFC 1123 label: at most 63 of `[a-z0-9-]`, alphanumeric at both ends.
pub fn is_dns_label(name: &str) -> bool {
    let alphanumeric = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.len() <= 63
        && bytes.first().is_some_and(|&byte| alphanumeric(byte))
        && bytes.last().is_some_and(|&byte| alphanumeric(byte))
        && bytes.iter().all(|&byte| alphanumeric(byte) || byte == b'-')
}

/// The two halves of `cluster:name`, as project and node ids are written in `/v3`.
pub fn split(id: &str) -> Option<(&str, &str)> {
    let (cluster, name) = id.split_once(':')?;
    (!cluster.is_empty() && !name.is_empty() && !name.contains(':')).then_some((cluster, name))
}
