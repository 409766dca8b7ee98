//! Which key of a provider's set verifies which token.

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::rsa::{KeyPair as RsaKeyPair, KeySize};
use aws_lc_rs::signature::{
    ECDSA_P256_SHA256_FIXED_SIGNING, ECDSA_P384_SHA384_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _,
    RSA_PKCS1_SHA256, RSA_PKCS1_SHA384, RSA_PKCS1_SHA512, RSA_PSS_SHA256, RSA_PSS_SHA384,
    RSA_PSS_SHA512, RsaEncoding,
};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{EncodingKey, Header};
use serde_json::{Value, json};

use super::*;

/// The modulus of an RSA key of 1024 bits.
const SHORT_MODULUS: &str = "\
    7e9DEftoDvIdscFA006FXguozTFnm6ynieRkY8szwd0VY7leevx0uaJNdw4t3aQnmD6qVX5HfGAbXPsLkfNg\
    R3L0oe2SLrKxd4MrOHW0kB9zUk4pxuPTgrJgmpb77rk3rIeKCevxu2v5hXGpfjQ97HFlYhZMPEXHxiHStW0r\
    bXU";
/// A token that this key signed with RS256.
const SHORT_TOKEN: &str = "\
    eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiJhbm4ifQ.K8ulGSRzX49ouFB4gNiH_LqEWPlgvI13BP9k5tSvKteo\
    qVgcLnouuI1n5f1N7GAzp2qvQU-8iYBJLp0ewdgL4cjao-zInFNl6nkc9nwCrQvQrFEZVB31Zhl0BpzmK7ys\
    uGMHwr41a6UyZWg62EliZm-aM_BuoBpDR4gSGtpY-Js";

enum Signer {
    Rsa(RsaKeyPair),
    P256(EcdsaKeyPair),
    P384(EcdsaKeyPair),
}

impl Signer {
    fn rsa() -> Self {
        Self::Rsa(RsaKeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    fn p256() -> Self {
        Self::P256(EcdsaKeyPair::generate(&ECDSA_P256_SHA256_FIXED_SIGNING).unwrap())
    }

    fn p384() -> Self {
        Self::P384(EcdsaKeyPair::generate(&ECDSA_P384_SHA384_FIXED_SIGNING).unwrap())
    }

    /// A token with this algorithm; `None` when the key cannot sign with it.
    fn token(&self, algorithm: &str, id: Option<&str>) -> Option<String> {
        let head = json!({"alg": algorithm, "kid": id});
        let text = format!("{}.{}", encode(head.to_string()), encode(r#"{"sub":"ann"}"#));
        let random = SystemRandom::new();
        let signature = match (self, algorithm) {
            (Self::Rsa(key), _) => {
                let mut signature = vec![0; key.public_modulus_len()];
                key.sign(rsa_encoding(algorithm)?, &random, text.as_bytes(), &mut signature)
                    .unwrap();
                signature
            }
            (Self::P256(key), "ES256") | (Self::P384(key), "ES384") => {
                key.sign(&random, text.as_bytes()).unwrap().as_ref().to_vec()
            }
            _ => return None,
        };
        Some(format!("{text}.{}", encode(signature)))
    }

    fn jwk(&self) -> Value {
        let public = match self {
            Self::Rsa(key) => DecodingKey::from_rsa_der(key.public_key().as_ref()),
            Self::P256(key) | Self::P384(key) => {
                DecodingKey::from_ec_der(key.public_key().as_ref())
            }
        };
        json!(Jwk::from_decoding_key(&public, None).unwrap())
    }

    fn jwk_with(&self, members: Value) -> Value {
        let mut jwk = self.jwk();
        for (member, value) in members.as_object().unwrap() {
            jwk[member] = value.clone();
        }
        jwk
    }
}

fn rsa_encoding(algorithm: &str) -> Option<&'static dyn RsaEncoding> {
    Some(match algorithm {
        "RS256" => &RSA_PKCS1_SHA256,
        "RS384" => &RSA_PKCS1_SHA384,
        "RS512" => &RSA_PKCS1_SHA512,
        "PS256" => &RSA_PSS_SHA256,
        "PS384" => &RSA_PSS_SHA384,
        "PS512" => &RSA_PSS_SHA512,
        _ => return None,
    })
}

fn encode(bytes: impl AsRef<[u8]>) -> String {
    URL_SAFE_NO_PAD.encode(bytes)
}

fn set(keys: &[Value]) -> KeySet {
    KeySet::parse(json!({ "keys": keys }).to_string().as_bytes()).unwrap()
}

fn verifies(keys: &KeySet, token: &str, algorithm: Algorithm) -> bool {
    let Some(token) = UnverifiedToken::parse(token) else { return false };
    let claims = keys.verify(&token, algorithm);
    claims.is_some_and(|claims| Value::Object(claims) == json!({"sub": "ann"}))
}

/// The algorithms with which one of the keys verifies the token.
fn accepted(keys: &[Value], token: &str) -> Vec<&'static str> {
    let keys = set(keys);
    let algorithms = Algorithm::ALL.iter();
    let verified = algorithms.filter(|(_, algorithm)| verifies(&keys, token, *algorithm));
    verified.map(|(name, _)| *name).collect()
}

#[test]
fn each_algorithm_is_verified_by_its_key_and_under_its_name_only() {
    let signers = [Signer::rsa(), Signer::p256(), Signer::p384()];
    let all: Vec<Value> = signers.iter().map(Signer::jwk).collect();
    let others = [Signer::rsa().jwk(), Signer::p256().jwk(), Signer::p384().jwk()];
    let mut signed = Vec::new();
    for (signer, own) in signers.iter().zip(&all) {
        for (name, _) in Algorithm::ALL {
            let Some(token) = signer.token(name, None) else { continue };
            signed.push(name);
            assert_eq!(accepted(&all, &token), [name]);
            assert_eq!(accepted(std::slice::from_ref(own), &token), [name]);
            let without: Vec<Value> = all.iter().filter(|key| *key != own).cloned().collect();
            assert_eq!(accepted(&without, &token), [""; 0], "{name}");
            assert_eq!(accepted(&others, &token), [""; 0], "{name}");
        }
    }
    assert_eq!(signed, Algorithm::ALL.map(|(name, _)| name));
}

#[test]
fn a_header_that_names_another_algorithm_than_the_signature_is_refused() {
    let rsa = Signer::rsa();
    let keys = [rsa.jwk()];
    let token = rsa.token("RS256", None).unwrap();
    let (_, rest) = token.split_once('.').unwrap();
    for other in ["RS384", "PS256", "ES256", "HS256", "ES512", "none"] {
        let head = encode(json!({"alg": other, "kid": null}).to_string());
        assert_eq!(accepted(&keys, &format!("{head}.{rest}")), [""; 0], "{other}");
    }
}

#[test]
fn a_key_of_another_type_curve_or_purpose_is_not_tried() {
    let (rsa, p256) = (Signer::rsa(), Signer::p256());
    let of_rsa = rsa.token("RS256", None).unwrap();
    let of_p256 = p256.token("ES256", None).unwrap();
    assert_eq!(accepted(&[rsa.jwk_with(json!({"use": "sig"}))], &of_rsa), ["RS256"]);
    for change in [json!({"use": "enc"}), json!({"use": "tls"}), json!({"kty": "EC"})] {
        assert_eq!(accepted(&[rsa.jwk_with(change.clone())], &of_rsa), [""; 0], "{change}");
    }
    for change in [
        json!({"crv": "P-384"}),
        json!({"crv": "P-521"}),
        json!({"crv": "Ed25519"}),
        json!({"crv": "secp256k1"}),
        json!({"kty": "RSA"}),
        json!({"kty": "OKP"}),
        json!({"x": p256.jwk()["y"]}),
        json!({"x": ""}),
        json!({"y": "!"}),
    ] {
        assert_eq!(accepted(&[p256.jwk_with(change.clone())], &of_p256), [""; 0], "{change}");
    }
    let text = br#"{"keys":[{"kty":"AKP","pub":"AA"},{"kty":"EC","crv":"P-999"}]}"#;
    assert_eq!(KeySet::parse(text).unwrap().0.keys.len(), 2, "unknown types are no error");
}

#[test]
fn a_symmetric_key_of_the_provider_verifies_nothing() {
    let secret = [7; 32];
    let key = json!({"kty": "oct", "k": encode(secret), "alg": "HS256"});
    let header = Header::new(JwtAlgorithm::HS256);
    let claims = json!({"sub": "ann"});
    let signed = jsonwebtoken::encode(&header, &claims, &EncodingKey::from_secret(&secret));
    assert_eq!(accepted(&[key], &signed.unwrap()), [""; 0]);
}

#[test]
fn an_rsa_key_below_2048_bits_verifies_nothing() {
    let key = json!({"kty": "RSA", "n": SHORT_MODULUS, "e": "AQAB"});
    assert_eq!(accepted(&[key], SHORT_TOKEN), [""; 0]);
}

#[test]
fn a_key_id_selects_the_keys_that_are_tried() {
    let signer = Signer::p256();
    let key = |id: &str| signer.jwk_with(json!({"kid": id}));
    let other = Signer::p256().jwk_with(json!({"kid": "a"}));
    let named = signer.token("ES256", Some("a")).unwrap();
    assert_eq!(accepted(&[key("a")], &named), ["ES256"]);
    assert_eq!(accepted(&[other, key("a")], &named), ["ES256"], "both have the ID");
    assert_eq!(accepted(&[key("b")], &named), [""; 0]);
    assert_eq!(accepted(&[signer.jwk()], &named), [""; 0]);
    let unnamed = signer.token("ES256", None).unwrap();
    assert_eq!(accepted(&[key("a")], &unnamed), ["ES256"]);
}

#[test]
fn the_hundredth_key_of_a_set_is_the_last_one_used() {
    let signer = Signer::p256();
    let token = signer.token("ES256", None).unwrap();
    let mut keys = vec![Signer::p256().jwk(); KEYS_MAX - 1];
    keys.push(signer.jwk());
    assert_eq!(accepted(&keys, &token), ["ES256"]);
    keys.insert(0, Signer::p256().jwk());
    assert_eq!(accepted(&keys, &token), [""; 0]);
}

#[test]
fn flags_name_asymmetric_algorithms_that_are_implemented() {
    for (name, algorithm) in Algorithm::ALL {
        assert_eq!(Algorithm::from_name(name), Some(algorithm));
    }
    for name in ["ES512", "HS256", "HS384", "HS512", "EdDSA", "none", "rs256", ""] {
        assert_eq!(Algorithm::from_name(name), None, "{name}");
    }
}
