//! What clients send back to go on reading.

use apiserver::registry::ContinueToken;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// What is read is written as something that reads alike. A token never leads out of its list.
pub fn continue_token(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    // Most inputs are no base64; what would be in it is the more interesting part.
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
