//! Bearer tokens from a file that is read at the start.

use std::collections::HashMap;

use futures::future::BoxFuture;
use sha2::{Digest, Sha256};

use super::bearer::{TokenAuthenticator, TokenUser};
use crate::attributes::{InvalidCredential, UserInfo};

/// A fixed set of tokens. Only their hashes are stored, so that neither a memory dump nor the time
/// of a lookup reveals a token.
#[derive(Default)]
pub struct StaticTokens {
    users: HashMap<[u8; 32], UserInfo>,
}

/// An invalid line of a token file. The text does not contain the line.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[error("line {line} of the token file {problem}")]
pub struct TokenFileError {
    line: usize,
    problem: &'static str,
}

impl StaticTokens {
    /// Creates an empty set.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a token of a user. Replaces the user of a known token.
    pub fn insert(&mut self, token: &str, user: UserInfo) {
        self.users.insert(hash(token), user);
    }

    /// Parses lines `token,user,uid[,"group1,group2"]`. Skips empty lines and those that begin with
    /// `#`.
    ///
    /// # Errors
    /// The first line that has another format or repeats a token. The error contains the line's
    /// number, not its text.
    pub fn parse(file: &str) -> Result<Self, TokenFileError> {
        let mut tokens = Self::new();
        for (at, line) in file.lines().enumerate() {
            let failed = |problem| TokenFileError { line: at + 1, problem };
            let line = line.trim();
            if line.is_empty() || line.starts_with('#') {
                continue;
            }
            let fields = fields(line).ok_or_else(|| failed("has an open quote"))?;
            let [token, name, uid, rest @ ..] = fields.as_slice() else {
                return Err(failed("has fewer than three fields: token, user, uid"));
            };
            if token.is_empty() || name.is_empty() {
                return Err(failed("has an empty token or user"));
            }
            let groups = rest.iter().flat_map(|list| list.split(','));
            let user = UserInfo {
                name: name.clone(),
                uid: uid.clone(),
                groups: groups
                    .map(str::trim)
                    .filter(|g| !g.is_empty())
                    .map(str::to_owned)
                    .collect(),
                ..UserInfo::default()
            };
            if tokens.users.insert(hash(token), user).is_some() {
                return Err(failed("repeats a token"));
            }
        }
        Ok(tokens)
    }
}

/// Splits comma-separated fields, which may be in double quotes; a quote inside is doubled. `None`
/// for an open quote.
fn fields(line: &str) -> Option<Vec<String>> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut chars = line.chars().peekable();
    while let Some(c) = chars.next() {
        let field = fields.last_mut().expect("there is always one");
        match c {
            '"' if quoted && chars.peek() == Some(&'"') => {
                field.push('"');
                chars.next();
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            c => field.push(c),
        }
    }
    (!quoted).then(|| fields.into_iter().map(|field| field.trim().to_owned()).collect())
}

fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

impl TokenAuthenticator for StaticTokens {
    fn authenticate_token<'a>(
        &'a self,
        token: &'a str,
        audiences: &'a [String],
    ) -> BoxFuture<'a, Result<Option<TokenUser>, InvalidCredential>> {
        let found = self
            .users
            .get(&hash(token))
            .map(|user| TokenUser { user: user.clone(), audiences: audiences.to_vec() });
        Box::pin(std::future::ready(Ok(found)))
    }
}
