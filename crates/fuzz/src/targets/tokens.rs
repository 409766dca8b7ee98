//! JSON Web Tokens: of service accounts, and of an OpenID Connect provider.

use std::sync::LazyLock;

use apiserver::authentication::jwt::UnverifiedToken;
use apiserver::authentication::oidc::{Algorithm, KeySet};
use apiserver::service_accounts::VerifyKeys;
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

/// Nobody has the private keys of these public ones: they were deleted after they had signed the
/// tokens of [`SIGNED`].
const ACCOUNT_KEY: &str = "-----BEGIN PUBLIC KEY-----\n\
    MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAERUM0JVYhegg3StTMZcGm0ehNEpTr\n\
    SSkMDe/+FmX0FqRIpmAU2OMFihiS2ecm37Jb2Vx9akDDmZx9JjQVbLr0oQ==\n\
    -----END PUBLIC KEY-----\n";
const PROVIDER_RSA_MODULUS: &str = "\
    ubdwZ2tJ6NEJ4ythqSR6qTdSz6orBUijl9fSnGNAFBtLyAUWSyb1rl5tBLZy9QHnAcDUlbRKPe8aroFN2Dxn\
    3645UAyxjzntQgRUzczGNiK_TDKDQbWbI7YtPsJ6XLw80aDcdZDqn6j4kKCAorDQaQTddpz_qV5xhX9z9kX6\
    yQjeglsF5xVqAFq37mHpoqAyz7syIR4vMa5FafP42OCdFMIc7Y6SlR6oZWXO9UeLQu1koAmNocnnN3_UXtHX\
    KXayHdkaBb71jfE26Ud3Q0dkJM1oog5WKJG7MQM8YRtvW-MflPLlpzI8cgRe3k_XZAZQjxi_XVh6piv9WQLh\
    R9mMaw";
const PROVIDER_EC_X: &str = "d0C9IXixsXoSSU7M34EqsApXp4jyd2Z1tJG4xCFYXLu4SXGLzykhe_U3QJEWUY3l";
const PROVIDER_EC_Y: &str = "hBzeZCtkxDrnOiR8iYpawDyOHK08U2fTxiGOvNEeH-hao8qOwkiX1_ox7m0EWVC5";

/// The signed part, header and claims, of each signed token. The corpus has the whole tokens.
const SIGNED: [&str; 4] = [
    "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJhIiwic3ViIjoiYW5uIn0",
    "eyJhbGciOiJFUzM4NCIsImtpZCI6ImUifQ.eyJpc3MiOiJiIiwic3ViIjoiYW5uIn0",
    "eyJhbGciOiJSUzI1NiIsImtpZCI6InIifQ.eyJpc3MiOiJiIiwic3ViIjoiYW5uIn0",
    "eyJhbGciOiJQUzUxMiIsImtpZCI6InIifQ.eyJpc3MiOiJiIiwic3ViIjoiYW5uIn0",
];

static ACCOUNT_KEYS: LazyLock<VerifyKeys> =
    LazyLock::new(|| VerifyKeys::from_pems([ACCOUNT_KEY]).expect("it is a public key"));

static PROVIDER_KEYS: LazyLock<KeySet> = LazyLock::new(|| {
    let set = serde_json::json!({"keys": [
        {"kty": "RSA", "kid": "r", "n": PROVIDER_RSA_MODULUS, "e": "AQAB"},
        {"kty": "EC", "kid": "e", "crv": "P-384", "x": PROVIDER_EC_X, "y": PROVIDER_EC_Y},
        {"kty": "oct", "kid": "s", "k": "c2VjcmV0"},
    ]});
    KeySet::parse(set.to_string().as_bytes()).expect("it is a key set")
});

/// No token verifies unless a key signed it. The input is a token, or its header, its claims and
/// its encoded signature in lines: most changes of a token only break its base64.
pub fn jwt(input: &[u8]) {
    let Ok(text) = std::str::from_utf8(input) else { return };
    check(text);
    if let Some([header, claims, signature]) = super::parts::<3>(input) {
        let signed = [header, claims].map(|part| URL_SAFE_NO_PAD.encode(part)).join(".");
        let signature = std::str::from_utf8(signature).unwrap_or_default();
        check(&format!("{signed}.{signature}"));
    }
}

fn check(token: &str) {
    if is_verified(token) {
        let (signed, _) = token.rsplit_once('.').expect("a verified token has a signature");
        assert!(SIGNED.contains(&signed), "{token}");
    }
}

/// Whether a key verifies the token with any algorithm.
fn is_verified(token: &str) -> bool {
    let by_provider = || {
        let token = UnverifiedToken::parse(token)?;
        Algorithm::ALL.iter().find_map(|(_, algorithm)| PROVIDER_KEYS.verify(&token, *algorithm))
    };
    ACCOUNT_KEYS.verify(token).is_ok() || by_provider().is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Otherwise the target could not fail.
    #[test]
    fn the_signed_tokens_of_the_corpus_verify() {
        let signed = [
            include_str!("../../corpus/jwt/signed_es256"),
            include_str!("../../corpus/jwt/malleable_es256"),
            include_str!("../../corpus/jwt/signed_es384"),
            include_str!("../../corpus/jwt/signed_rs256"),
            include_str!("../../corpus/jwt/signed_ps512"),
        ];
        for token in signed {
            assert!(is_verified(token), "{token}");
        }
    }
}
