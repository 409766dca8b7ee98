//! Tokens that are signed correctly and refused for another reason, and the reverse.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE, URL_SAFE_NO_PAD};
use jsonwebtoken::EncodingKey;
use serde_json::json;

use super::*;

/// 16 bytes, so that its base64 has unused bits and could be padded.
const HEADER: &str = "{\"alg\":\"ES256\"} ";
/// 16 bytes, with both characters in which the alphabets of base64 differ.
const CLAIMS: &str = "{\"sub\":\"??>>~~\"}";

struct Signer {
    pair: EcdsaKeyPair,
    key: DecodingKey,
}

impl Signer {
    fn new() -> Self {
        let pair = EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap();
        let key = DecodingKey::from_ec_der(pair.public_key().as_ref());
        Self { pair, key }
    }

    fn signature(&self, text: &str) -> String {
        encode(self.pair.sign(&SystemRandom::new(), text.as_bytes()).unwrap())
    }

    /// A signature of exactly these parts.
    fn token(&self, header: &str, claims: &str) -> String {
        let text = format!("{header}.{claims}");
        format!("{text}.{}", self.signature(&text))
    }

    fn verify(&self, token: &str) -> Option<Value> {
        let token = UnverifiedToken::parse(token)?;
        token.verify(Algorithm::ES256, &self.key).map(Value::Object)
    }

    /// Whether a token with this header is verified.
    fn accepts(&self, header: &str) -> bool {
        self.verify(&self.token(&encode(header), &encode(CLAIMS))).is_some()
    }
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

/// The same text with the last character's unused bits set.
fn with_unused_bits(text: &str) -> String {
    let last = match text.chars().last().unwrap() {
        'A' => 'B',
        'Q' => 'R',
        'g' => 'h',
        'w' => 'x',
        other => panic!("{other} has no unused bits"),
    };
    format!("{}{last}", &text[..text.len() - 1])
}

#[test]
fn a_header_with_crit_is_refused_whatever_it_lists() {
    let signer = Signer::new();
    assert!(signer.accepts(r#"{"alg":"ES256"}"#));
    assert!(signer.accepts(r#"{"alg":"ES256","b64":true,"http://example.com/x":[1]}"#));
    for crit in [r#"["b64"]"#, r#"["exp","alg"]"#, r#"["http://example.com/x"]"#, "[]"] {
        assert!(!signer.accepts(&format!(r#"{{"alg":"ES256","crit":{crit}}}"#)), "{crit}");
        assert!(
            !signer.accepts(&format!(r#"{{"crit":{crit},"b64":true,"alg":"ES256"}}"#)),
            "{crit}"
        );
    }
    for malformed in [r#""b64""#, "[1]", "{}", "true", "0"] {
        assert!(!signer.accepts(&format!(r#"{{"alg":"ES256","crit":{malformed}}}"#)));
    }
}

#[test]
fn header_members_that_occur_twice_are_refused() {
    let signer = Signer::new();
    for header in [
        r#"{"alg":"ES256","alg":"ES256"}"#,
        r#"{"alg":"none","alg":"ES256"}"#,
        r#"{"alg":"ES256","alg":"none"}"#,
        r#"{"alg":"ES256","\u0061lg":"ES256"}"#,
        r#"{"alg":"ES256","kid":"a","kid":"b"}"#,
        r#"{"alg":"ES256","kid":"a","\u006bid":"b"}"#,
        r#"{"alg":"ES256","crit":null,"crit":["b64"]}"#,
        r#"{"alg":"ES256","typ":"JWT","typ":"JWT"}"#,
    ] {
        assert!(!signer.accepts(header), "{header}");
    }
}

#[test]
fn a_header_that_is_no_object_with_an_algorithm_is_refused() {
    let signer = Signer::new();
    for header in [
        "",
        "{}",
        "null",
        r#"["ES256"]"#,
        r#""ES256""#,
        r#"{"ALG":"ES256"}"#,
        r#"{"alg":["ES256"]}"#,
        r#"{"alg":"es256"}"#,
        r#"{"alg":"ES256 "}"#,
        r#"{"alg":"ES256","kid":7}"#,
        r#"{"alg":"ES256"} {}"#,
        r#"{"alg":"ES256"}x"#,
    ] {
        assert!(!signer.accepts(header), "{header}");
    }
}

#[test]
fn only_canonical_base64_without_padding_is_accepted() {
    let signer = Signer::new();
    let (header, claims) = (encode(HEADER), encode(CLAIMS));
    assert!(claims.contains('-') && claims.contains('_'), "{claims}");
    let spoilt = |text: &str, bytes: &[u8]| {
        [
            URL_SAFE.encode(bytes),
            STANDARD_NO_PAD.encode(bytes),
            format!("{text}="),
            format!("{text}\n"),
            format!(" {text}"),
            format!("{}\r\n{}", &text[..4], &text[4..]),
            with_unused_bits(text),
            format!("{text}A"),
        ]
        .into_iter()
        // The header has the same text in both alphabets.
        .filter(|other| other != text)
        .collect::<Vec<String>>()
    };
    let good = signer.token(&header, &claims);
    assert!(signer.verify(&good).is_some());
    for header in spoilt(&header, HEADER.as_bytes()) {
        assert_eq!(signer.verify(&signer.token(&header, &claims)), None, "{header:?}");
    }
    for claims in spoilt(&claims, CLAIMS.as_bytes()) {
        assert_eq!(signer.verify(&signer.token(&header, &claims)), None, "{claims:?}");
    }
    let (text, signature) = good.rsplit_once('.').unwrap();
    let bytes = URL_SAFE_NO_PAD.decode(signature).unwrap();
    for signature in spoilt(signature, &bytes) {
        assert_eq!(signer.verify(&format!("{text}.{signature}")), None, "{signature:?}");
    }
}

#[test]
fn a_token_of_the_maximum_size_is_accepted_and_no_larger_one() {
    let signer = Signer::new();
    let header = encode(r#"{"alg":"ES256"}"#);
    let token = |padding: usize| {
        signer.token(&header, &encode(json!({"sub": "a".repeat(padding)}).to_string()))
    };
    let mut paddings = 0..TOKEN_SIZE_MAX / 4 * 3;
    let longest = paddings.rfind(|padding| token(*padding).len() <= TOKEN_SIZE_MAX).unwrap();
    assert!(token(longest).len() > TOKEN_SIZE_MAX - 4);
    assert!(signer.verify(&token(longest)).is_some());
    assert_eq!(signer.verify(&token(longest + 1)), None);
}

#[test]
fn a_signature_of_another_text_key_or_algorithm_is_refused() {
    let (signer, other) = (Signer::new(), Signer::new());
    let (header, claims) = (encode(HEADER), encode(CLAIMS));
    let good = signer.token(&header, &claims);
    assert_eq!(signer.verify(&good).unwrap(), serde_json::from_str::<Value>(CLAIMS).unwrap());
    let (text, signature) = good.rsplit_once('.').unwrap();
    let root = encode(json!({"sub": "root"}).to_string());
    let named = encode(r#"{"alg":"ES256","kid":"a"}"#);
    for forged in [
        other.token(&header, &claims),
        format!("{header}.{root}.{signature}"),
        format!("{named}.{claims}.{signature}"),
        format!("{text}."),
        format!("{text}.{}", encode([0; 64])),
        format!("{text}.{}", &signature[..signature.len() - 4]),
        format!("{text}.{signature}{signature}"),
        format!("{good}."),
        format!(".{good}"),
        text.to_owned(),
    ] {
        assert_eq!(signer.verify(&forged), None, "{forged}");
    }
    let token = UnverifiedToken::parse(&good).unwrap();
    for algorithm in [Algorithm::ES384, Algorithm::RS256, Algorithm::HS256, Algorithm::EdDSA] {
        assert_eq!(token.verify(algorithm, &signer.key), None, "{algorithm:?}");
    }
}

#[test]
fn the_public_key_is_no_secret_of_an_hmac() {
    let signer = Signer::new();
    let point = signer.pair.public_key().as_ref();
    let secret = EncodingKey::from_secret(point);
    let header = Header::new(Algorithm::HS256);
    let token = jsonwebtoken::encode(&header, &json!({"sub": "root"}), &secret).unwrap();
    let unverified = UnverifiedToken::parse(&token).unwrap();
    assert!(unverified.verify(Algorithm::HS256, &DecodingKey::from_secret(point)).is_some());
    assert_eq!(unverified.verify(Algorithm::HS256, &signer.key), None);
    assert_eq!(unverified.verify(Algorithm::ES256, &signer.key), None);
    for algorithm in ["none", "None", "NONE", ""] {
        let header = encode(json!({"alg": algorithm}).to_string());
        assert_eq!(signer.verify(&format!("{header}.{}.", encode(CLAIMS))), None, "{algorithm}");
        assert_eq!(signer.verify(&signer.token(&header, &encode(CLAIMS))), None, "{algorithm}");
    }
}

#[test]
fn registered_claims_that_occur_twice_are_refused() {
    let signer = Signer::new();
    let claims = |text: &str| signer.verify(&signer.token(&encode(HEADER), &encode(text)));
    assert!(claims(r#"{"iss":"a","sub":"b","aud":["c"],"exp":1,"nbf":2}"#).is_some());
    for twice in [
        r#"{"iss":"a","iss":"b"}"#,
        r#"{"sub":"a","sub":"b"}"#,
        r#"{"aud":"a","aud":["b"]}"#,
        r#"{"exp":1,"exp":2}"#,
        r#"{"nbf":1,"nbf":2}"#,
        "[]",
        "7",
        "",
    ] {
        assert_eq!(claims(twice), None, "{twice}");
    }
}

#[test]
fn times_and_audiences_are_left_to_the_caller() {
    let signer = Signer::new();
    let outdated = json!({"exp": 1, "nbf": 9_999_999_999_i64, "aud": ["other"]});
    let token = signer.token(&encode(HEADER), &encode(outdated.to_string()));
    assert_eq!(signer.verify(&token), Some(outdated));
}
