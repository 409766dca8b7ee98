//! Continue tokens, which clients send to read the next page.

use apiserver::registry::ContinueToken;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// A decoded token encodes to an equivalent one. A token never points outside of its list.
pub fn continue_token(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // Most inputs are not base64; the decoded content is the more interesting part.
    for text in [text.to_owned(), URL_SAFE_NO_PAD.encode(input)] {
        match ContinueToken::decode(&text) {
            Ok(token) => {
                assert!(!token.start.is_empty());
                assert!(token.start.split('/').all(|part| part != ".."), "{token:?}");
                let again = ContinueToken::decode(&token.encode());
                assert_eq!(again.ok().as_ref(), Some(&token));
            }
            Err(status) => assert_eq!(status.code, 400),
        }
    }
}
