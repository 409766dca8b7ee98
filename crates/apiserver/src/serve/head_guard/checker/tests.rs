//! Requests as strangers may write them.

use proptest::prelude::*;

use super::*;

/// All at once: whether it passed, and what came out.
fn check(text: &[u8]) -> (bool, Vec<u8>) {
    let mut bytes = text.to_vec();
    let passed = HeadChecker::default().check(&mut bytes);
    (passed, bytes)
}

fn passes(text: &str) -> bool {
    let (passed, bytes) = check(text.as_bytes());
    assert_eq!(passed, bytes == text.as_bytes(), "{text:?}");
    passed
}

#[test]
fn what_clients_send_passes_as_it_is() {
    for text in [
        "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "\r\n\r\nGET / HTTP/1.1\r\n\r\nGET / HTTP/1.1\r\nA:\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\n\r\n\n\n\n\n\nGET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length:0005 \t\r\nContent-length: 5\r\n\r\n\n\n\n\n\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: Chunked\r\n\r\n5;a=b\r\n\n\n\n\n\n\r\n0\r\n\r\n\
         GET / HTTP/1.1\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1 \r\n\n\r\n0\r\nA: b\r\n\r\n",
        "GET / HTTP/1.1\r\nX-Content-Length: 7\r\nTransfer-Encodings: x\r\n\r\n",
    ] {
        assert!(passes(text), "{text:?}");
    }
}

#[test]
fn ambiguous_heads_are_rejected() {
    for text in [
        "\nGET / HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\r\nHost\nA: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "GET / HTTP/1.1\r\nHost: a\rB: c\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\ntransfer-encoding: chunked\r\ncontent-length: 5\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: identity\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding:\x0bchunked\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 5, 5\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: +5\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length:\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5\nabcde\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n5;a\nb\r\nabcde\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n0\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n;\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n00000000000000001\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\nA: b\n\r\n",
        // The second request.
        "POST / HTTP/1.1\r\nContent-Length: 1\r\n\r\n\nGET / HTTP/1.1\nA: b\r\n\r\n",
    ] {
        let (passed, bytes) = check(text.as_bytes());
        assert!(!passed && bytes.contains(&0), "{text:?}");
    }
}

#[test]
fn http2_is_not_checked() {
    let mut bytes = PREFACE.to_vec();
    bytes.extend(b"\n\n\n\0\x04\n");
    let before = bytes.clone();
    assert!(HeadChecker::default().check(&mut bytes));
    assert_eq!(bytes, before);
    assert!(!passes("GET / HTTP/1.1\r\n\r\nPRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\n"));
}

#[test]
fn a_head_is_counted_until_it_is_complete() {
    let mut checker = HeadChecker::default();
    assert!(checker.check(&mut b"GET / HTTP/1.1\r\nA: b".to_vec()));
    assert_eq!(checker.head_bytes(), 20);
    assert!(checker.check(&mut b"\r\n\r\nGET".to_vec()));
    assert_eq!(checker.head_bytes(), 3);
}

/// Bytes that make up requests, so that all states are reached.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let parts = prop::sample::select(vec![
        "GET / HTTP/1.1",
        "\r\n",
        "\r\n",
        "\r\n\r\n",
        "\n",
        "\r",
        "A: b",
        "Content-Length: 3",
        "Transfer-Encoding: chunked",
        "3",
        "0",
        "abc",
        ":",
        " ",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    ]);
    prop::collection::vec(parts, 0..24).prop_map(|parts| parts.concat().into_bytes())
}

proptest! {
    #[test]
    fn how_bytes_are_split_changes_nothing(text in text(), sizes in prop::collection::vec(1usize..9, 1..40)) {
        let (whole_passed, whole) = check(&text);
        let mut checker = HeadChecker::default();
        let (mut rest, mut out, mut passed) = (text.clone(), Vec::new(), true);
        let mut sizes = sizes.iter().cycle();
        while passed && !rest.is_empty() {
            let size = (*sizes.next().unwrap()).min(rest.len());
            let mut part: Vec<u8> = rest.drain(..size).collect();
            passed = checker.check(&mut part);
            out.extend(part);
        }
        out.extend(rest);
        prop_assert_eq!((whole_passed, whole), (passed, out));
    }

    /// The first head ends where hyper's own reader sees its end, and has only lines that end with
    /// CR and LF.
    #[test]
    fn the_readers_agree_on_where_a_head_ends(text in text()) {
        let mut headers = [httparse::EMPTY_HEADER; 32];
        let mut request = httparse::Request::new(&mut headers);
        let Ok(httparse::Status::Complete(end)) = request.parse(&text) else { return Ok(()) };
        if text.starts_with(PREFACE) {
            return Ok(());
        }
        let mut head = text[..end].to_vec();
        let mut checker = HeadChecker::default();
        if checker.check(&mut head) {
            prop_assert_eq!(checker.head_bytes(), 0);
            let text = std::str::from_utf8(&head).unwrap();
            prop_assert_eq!(text.matches('\n').count(), text.matches("\r\n").count());
        }
    }

    #[test]
    fn a_bare_lf_anywhere_in_a_head_is_rejected(at in 0usize..60) {
        let mut text = b"GET /a HTTP/1.1\r\nHost: example.com\r\nAccept: text/plain\r\n\r\n".to_vec();
        let at = at.min(text.len() - 1);
        prop_assume!(!matches!(text[at], b'\r') && text[at.saturating_sub(1)] != b'\r');
        text[at] = b'\n';
        prop_assert!(!check(&text).0);
    }
}
