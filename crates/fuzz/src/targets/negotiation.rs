//! Negotiation of response formats.

use apiserver::body::negotiate::{Offer, Typed, accept as negotiate, content_type, refusal};
use http::header::{ACCEPT, CONTENT_TYPE, USER_AGENT};
use http::{HeaderMap, HeaderValue};

/// Lines: `Accept`, `Accept` again, `User-Agent`. Requesting the chosen format chooses it again.
pub fn accept(input: &[u8]) {
    let mut headers = HeaderMap::new();
    let names = [ACCEPT, ACCEPT, USER_AGENT];
    for (name, line) in names.into_iter().zip(input.split(|byte| *byte == b'\n')) {
        if let Ok(value) = HeaderValue::from_bytes(line) {
            headers.append(name.clone(), value.clone());
            if name == ACCEPT {
                headers.insert(CONTENT_TYPE, value);
            }
        }
    }
    let _ = (refusal(&headers), content_type(&headers));
    for offer in [Offer::Object, Offer::List, Offer::Plain, Offer::Discovery] {
        for typed in [Typed::Yes, Typed::No] {
            let accepted = match negotiate(&headers, None, offer, typed) {
                Ok(accepted) => accepted,
                Err(status) => {
                    assert_eq!(status.code, 406);
                    continue;
                }
            };
            let media_type = accepted.format.media_type();
            let plain = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(media_type))]);
            let again = negotiate(&plain, None, offer, typed).expect("it was offered");
            assert_eq!(again.format, accepted.format, "{media_type}");
        }
    }
}
