//! The state machine of [`super::HeadGuard`]: bytes in, bytes out, no I/O.
//!
//! Invariant: how the bytes are split into calls changes nothing.

/// The preface of HTTP/2 without TLS negotiation.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";
/// The longest name to compare, and one byte more.
const NAME_BYTES: usize = TRANSFER_ENCODING.len() + 1;
/// A length of 64 bits, and some zeros before it.
const VALUE_BYTES: usize = 32;
/// Digits of the size of a chunk: 64 bits have no more.
const CHUNK_DIGITS_MAX: u8 = 16;

/// Checks the requests on one connection, one after the other.
#[derive(Debug)]
pub struct HeadChecker {
    state: ParseState,
    head: HeadFields,
    /// Bytes of the preface that have matched so far; `None` when the stream is not HTTP/2.
    preface: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ParseState {
    /// Before a head; empty lines may come first.
    Before,
    /// Before a head, after CR.
    BeforeLf,
    /// In the request's line.
    RequestLine,
    RequestLineLf,
    /// At the first byte of a line.
    LineStart,
    Name,
    Value,
    ValueLf,
    /// At the end of the head.
    EndLf,
    Body(u64),
    ChunkSize {
        size: u64,
        digits: u8,
    },
    /// After the size and before CR: white space and extensions.
    ChunkExtension(u64),
    ChunkSizeLf(u64),
    Chunk(u64),
    ChunkCr,
    ChunkLf,
    TrailerStart,
    Trailer,
    TrailerLf,
    TrailersEndLf,
    /// Nothing is checked any more.
    Off,
    /// A request was rejected.
    Refused,
}

/// What the current head contains about the body so far.
#[derive(Debug, Default)]
struct HeadFields {
    bytes: usize,
    name: Short<NAME_BYTES>,
    value: Short<VALUE_BYTES>,
    length: Option<u64>,
    is_chunked: bool,
}

/// The first bytes of a token; longer ones are marked.
#[derive(Debug)]
struct Short<const N: usize> {
    bytes: [u8; N],
    length: usize,
    is_longer: bool,
}

impl<const N: usize> Default for Short<N> {
    fn default() -> Self {
        Self { bytes: [0; N], length: 0, is_longer: false }
    }
}

impl<const N: usize> Short<N> {
    fn clear(&mut self) {
        self.length = 0;
        self.is_longer = false;
    }

    fn push(&mut self, byte: u8) {
        match self.bytes.get_mut(self.length) {
            Some(free) => {
                *free = byte;
                self.length += 1;
            }
            None => self.is_longer = true,
        }
    }

    fn get(&self) -> &[u8] {
        self.bytes.get(..self.length).unwrap_or_default()
    }

    fn is(&self, expected: &[u8]) -> bool {
        !self.is_longer && self.get().eq_ignore_ascii_case(expected)
    }
}

impl Default for HeadChecker {
    fn default() -> Self {
        Self { state: ParseState::Before, head: HeadFields::default(), preface: Some(0) }
    }
}

impl HeadChecker {
    /// A checker that checks nothing, for what is not HTTP/1.
    pub fn off() -> Self {
        Self { state: ParseState::Off, head: HeadFields::default(), preface: None }
    }

    /// Bytes of the current head so far; 0 between heads.
    pub fn head_bytes(&self) -> usize {
        self.head.bytes
    }

    /// Checks the next bytes. `false` when they were rejected: the invalid byte is then NUL, the
    /// bytes after it are not checked, and the connection must not be read any further.
    pub fn check(&mut self, bytes: &mut [u8]) -> bool {
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..)
            && let Some(byte) = rest.first_mut()
        {
            match self.state {
                ParseState::Off | ParseState::Refused => return true,
                ParseState::Body(left) => {
                    let taken = body_bytes_in(left, rest.len());
                    self.state = match left - taken as u64 {
                        0 => ParseState::Before,
                        left => ParseState::Body(left),
                    };
                    at += taken;
                    continue;
                }
                ParseState::Chunk(left) => {
                    let taken = body_bytes_in(left, rest.len());
                    self.state = match left - taken as u64 {
                        0 => ParseState::ChunkCr,
                        left => ParseState::Chunk(left),
                    };
                    at += taken;
                    continue;
                }
                _ => {}
            }
            self.state = self.next_state(*byte);
            if self.state == ParseState::Refused {
                *byte = 0;
                return false;
            }
            self.follow_preface(*byte);
            at += 1;
        }
        true
    }

    fn follow_preface(&mut self, byte: u8) {
        self.preface = match self.preface {
            Some(matched) if PREFACE.get(matched) == Some(&byte) => Some(matched + 1),
            _ => None,
        };
        if self.preface == Some(PREFACE.len()) {
            *self = Self::off();
        }
    }

    /// The state after a byte.
    fn next_state(&mut self, byte: u8) -> ParseState {
        match self.state {
            ParseState::Before
            | ParseState::BeforeLf
            | ParseState::RequestLine
            | ParseState::RequestLineLf
            | ParseState::LineStart
            | ParseState::Name
            | ParseState::Value
            | ParseState::ValueLf
            | ParseState::EndLf => {
                self.head.bytes += 1;
                self.next_state_in_head(byte)
            }
            other => next_state_in_chunks(other, byte),
        }
    }

    fn next_state_in_head(&mut self, byte: u8) -> ParseState {
        match (self.state, byte) {
            (ParseState::Before, b'\r') => ParseState::BeforeLf,
            (ParseState::BeforeLf, b'\n') => {
                self.head.bytes = 0;
                ParseState::Before
            }
            (ParseState::RequestLine, b'\r') => ParseState::RequestLineLf,
            (ParseState::LineStart, b'\r') => ParseState::EndLf,
            (ParseState::RequestLineLf, b'\n') => ParseState::LineStart,
            (ParseState::ValueLf, b'\n') => self.end_line(),
            (ParseState::EndLf, b'\n') => self.end_head(),
            // A line ends with CR LF, and neither occurs alone.
            (
                ParseState::BeforeLf
                | ParseState::RequestLineLf
                | ParseState::ValueLf
                | ParseState::EndLf,
                _,
            )
            | (_, b'\n') => ParseState::Refused,
            (ParseState::Before | ParseState::RequestLine, _) => ParseState::RequestLine,
            (ParseState::LineStart, _) => {
                self.head.name.clear();
                self.head.value.clear();
                self.head.name.push(byte);
                ParseState::Name
            }
            (ParseState::Name, b':') => ParseState::Value,
            // A line without a colon is for hyper to refuse.
            (ParseState::Name | ParseState::Value, b'\r') => ParseState::ValueLf,
            (ParseState::Name, _) => {
                self.head.name.push(byte);
                ParseState::Name
            }
            (_, byte) => {
                let is_blank = matches!(byte, b' ' | b'\t');
                if !(is_blank && self.head.value.length == 0) {
                    self.head.value.push(byte);
                }
                ParseState::Value
            }
        }
    }

    fn end_line(&mut self) -> ParseState {
        let head = &mut self.head;
        let value = head.value.get().trim_ascii_end();
        if head.name.is(TRANSFER_ENCODING) {
            // Another coding, or a second one: no client sends them, and readers differ.
            if head.value.is_longer || head.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return ParseState::Refused;
            }
            head.is_chunked = true;
        } else if head.name.is(CONTENT_LENGTH) {
            let Some(length) = number(value).filter(|_| !head.value.is_longer) else {
                return ParseState::Refused;
            };
            if head.length.is_some_and(|before| before != length) {
                return ParseState::Refused;
            }
            head.length = Some(length);
        }
        ParseState::LineStart
    }

    fn end_head(&mut self) -> ParseState {
        let head = std::mem::take(&mut self.head);
        match (head.length, head.is_chunked) {
            (Some(_), true) => ParseState::Refused,
            (None, true) => ParseState::ChunkSize { size: 0, digits: 0 },
            (None | Some(0), false) => ParseState::Before,
            (Some(length), false) => ParseState::Body(length),
        }
    }
}

fn next_state_in_chunks(state: ParseState, byte: u8) -> ParseState {
    match (state, byte) {
        (ParseState::ChunkSize { digits: 0, .. }, byte) if !byte.is_ascii_hexdigit() => {
            ParseState::Refused
        }
        (ParseState::ChunkSize { size, .. } | ParseState::ChunkExtension(size), b'\r') => {
            ParseState::ChunkSizeLf(size)
        }
        (ParseState::ChunkSizeLf(0), b'\n') | (ParseState::TrailerLf, b'\n') => {
            ParseState::TrailerStart
        }
        (ParseState::ChunkSizeLf(size), b'\n') => ParseState::Chunk(size),
        (ParseState::ChunkCr, b'\r') => ParseState::ChunkLf,
        (ParseState::ChunkLf, b'\n') => ParseState::ChunkSize { size: 0, digits: 0 },
        (ParseState::TrailerStart, b'\r') => ParseState::TrailersEndLf,
        (ParseState::TrailersEndLf, b'\n') => ParseState::Before,
        (ParseState::Trailer, b'\r') => ParseState::TrailerLf,
        (_, b'\n') => ParseState::Refused,
        (ParseState::ChunkSize { size, digits }, byte) => match (byte as char).to_digit(16) {
            Some(_) if digits >= CHUNK_DIGITS_MAX => ParseState::Refused,
            Some(digit) => {
                ParseState::ChunkSize { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            None => ParseState::ChunkExtension(size),
        },
        (ParseState::ChunkExtension(size), _) => ParseState::ChunkExtension(size),
        (ParseState::TrailerStart | ParseState::Trailer, _) => ParseState::Trailer,
        // After CR, or after a chunk.
        _ => ParseState::Refused,
    }
}

/// Bytes that belong to the body, out of those that arrived.
fn body_bytes_in(left: u64, came: usize) -> usize {
    usize::try_from(left).map_or(came, |left| left.min(came))
}

/// Digits and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests;
