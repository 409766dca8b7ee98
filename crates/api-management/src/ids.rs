//! Id formats: a prefix and a random suffix from an alphabet without similar characters.
//!
//! Clusters, projects and users each have a namespace with their own name in the management API,
//! beside the system namespaces. So each kind has its own prefixes: see [`is_cluster_name`],
//! [`is_project_name`] and [`is_user_name`].

/// Digits and consonants that are not easily confused.
pub const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
/// Characters of a generated id after its prefix.
pub const SUFFIX_LEN: usize = 5;
/// Characters of a secret key: tokens and registration tokens.
pub const KEY_LEN: usize = 54;

/// Prefix of generated cluster ids.
pub const CLUSTER_PREFIX: &str = "c-";
/// Prefix of project ids.
pub const PROJECT_PREFIX: &str = "p-";
/// Prefix of generated user ids.
pub const USER_PREFIX: &str = "u-";
/// Prefix of ids of users that the server creates itself.
pub const USER_BOOTSTRAP_PREFIX: &str = "user-";
/// Prefix of token names.
pub const TOKEN_PREFIX: &str = "token-";
/// Prefix of node ids.
pub const NODE_PREFIX: &str = "machine-";
/// Prefix of names of generated ClusterRoleTemplateBindings.
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

/// Prefixes of namespaces that do not belong to a cluster.
pub const RESERVED_PREFIXES: [&str; 6] =
    [PROJECT_PREFIX, USER_PREFIX, USER_BOOTSTRAP_PREFIX, "cattle-", "drover-", "kube-"];
/// The namespace that every API server has, besides those with a reserved prefix.
const NAMESPACE_DEFAULT: &str = "default";

/// Whether `id` can be the id of a cluster in a request: any DNS label, including those that no new
/// cluster can have.
pub fn is_cluster_id(id: &str) -> bool {
    is_dns_label(id)
}

/// Whether a new cluster can have the name: `local`, a generated id, or any DNS label that is not
/// reserved for other namespaces.
pub fn is_cluster_name(name: &str) -> bool {
    let is_reserved = RESERVED_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    is_dns_label(name) && name != NAMESPACE_DEFAULT && !is_reserved
}

/// Whether a new project can have the name: `p-` and [`SUFFIX_LEN`] random characters, as
/// `generateName: p-` produces.
pub fn is_project_name(name: &str) -> bool {
    let suffix = name.strip_prefix(PROJECT_PREFIX).unwrap_or_default();
    suffix.len() == SUFFIX_LEN && suffix.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// Whether a new user can have the name: a DNS label that begins with `u-` or `user-`.
pub fn is_user_name(name: &str) -> bool {
    let prefixed = name.starts_with(USER_PREFIX) || name.starts_with(USER_BOOTSTRAP_PREFIX);
    prefixed && is_dns_label(name)
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

/// The two parts of `cluster:name`, the format of project and node ids in `/v3`.
pub fn split(id: &str) -> Option<(&str, &str)> {
    let (cluster, name) = id.split_once(':')?;
    (!cluster.is_empty() && !name.is_empty() && !name.contains(':')).then_some((cluster, name))
}
