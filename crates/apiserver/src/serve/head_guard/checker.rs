//! The state machine of [`super::HeadGuard`]: bytes in, bytes out, no I/O.
//!
//! Invariant: how the bytes are split into calls changes nothing.

/// What a client begins HTTP/2 with that TLS did not agree on.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const CONTENT_LENGTH: &[u8] = b"content-length";
const TRANSFER_ENCODING: &[u8] = b"transfer-encoding";
/// The longest name that is looked for, and one byte more.
const NAME_BYTES: usize = TRANSFER_ENCODING.len() + 1;
/// A length of 64 bits, and some zeros before it.
const VALUE_BYTES: usize = 32;
/// Digits of a chunk's size: more than 64 bits have.
const CHUNK_DIGITS_MAX: u8 = 16;

/// Looks at the requests on one connection, one after the other.
#[derive(Debug)]
pub struct HeadChecker {
    state: State,
    head: Head,
    /// Bytes of the preface that have come. Absent: it is none.
    preface: Option<usize>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
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
    /// Everything passes.
    Off,
    /// Something was refused.
    Refused,
}

/// What a head has said about the body so far.
#[derive(Debug, Default)]
struct Head {
    bytes: usize,
    name: Short<NAME_BYTES>,
    value: Short<VALUE_BYTES>,
    length: Option<u64>,
    is_chunked: bool,
}

/// The first bytes of something; longer things are marked.
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
        Self { state: State::Before, head: Head::default(), preface: Some(0) }
    }
}

impl HeadChecker {
    /// Looks at nothing: what comes is no HTTP/1.
    pub fn off() -> Self {
        Self { state: State::Off, head: Head::default(), preface: None }
    }

    /// Bytes of the head that is under way.
    pub fn head_bytes(&self) -> usize {
        self.head.bytes
    }

    /// Looks at what came. False when it was refused: then there is a NUL in place of the byte at fault. What comes
    /// after that is not looked at; nobody may read on.
    pub fn check(&mut self, bytes: &mut [u8]) -> bool {
        let mut at = 0;
        while let Some(rest) = bytes.get_mut(at..)
            && let Some(byte) = rest.first_mut()
        {
            match self.state {
                State::Off | State::Refused => return true,
                State::Body(left) => {
                    let taken = taken(left, rest.len());
                    self.state = match left - taken as u64 {
                        0 => State::Before,
                        left => State::Body(left),
                    };
                    at += taken;
                    continue;
                }
                State::Chunk(left) => {
                    let taken = taken(left, rest.len());
                    self.state = match left - taken as u64 {
                        0 => State::ChunkCr,
                        left => State::Chunk(left),
                    };
                    at += taken;
                    continue;
                }
                _ => {}
            }
            self.state = self.step(*byte);
            if self.state == State::Refused {
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
    fn step(&mut self, byte: u8) -> State {
        match self.state {
            State::Before
            | State::BeforeLf
            | State::RequestLine
            | State::RequestLineLf
            | State::LineStart
            | State::Name
            | State::Value
            | State::ValueLf
            | State::EndLf => {
                self.head.bytes += 1;
                self.step_in_head(byte)
            }
            other => step_in_chunks(other, byte),
        }
    }

    fn step_in_head(&mut self, byte: u8) -> State {
        match (self.state, byte) {
            (State::Before, b'\r') => State::BeforeLf,
            (State::BeforeLf, b'\n') => {
                self.head.bytes = 0;
                State::Before
            }
            (State::RequestLine, b'\r') => State::RequestLineLf,
            (State::LineStart, b'\r') => State::EndLf,
            (State::RequestLineLf, b'\n') => State::LineStart,
            (State::ValueLf, b'\n') => self.end_line(),
            (State::EndLf, b'\n') => self.end_head(),
            // A line ends with CR and LF, and neither stands alone.
            (State::BeforeLf | State::RequestLineLf | State::ValueLf | State::EndLf, _)
            | (_, b'\n') => State::Refused,
            (State::Before | State::RequestLine, _) => State::RequestLine,
            (State::LineStart, _) => {
                self.head.name.clear();
                self.head.value.clear();
                self.head.name.push(byte);
                State::Name
            }
            (State::Name, b':') => State::Value,
            // A line without a colon is for hyper to refuse.
            (State::Name | State::Value, b'\r') => State::ValueLf,
            (State::Name, _) => {
                self.head.name.push(byte);
                State::Name
            }
            (_, byte) => {
                let is_blank = matches!(byte, b' ' | b'\t');
                if !(is_blank && self.head.value.length == 0) {
                    self.head.value.push(byte);
                }
                State::Value
            }
        }
    }

    fn end_line(&mut self) -> State {
        let head = &mut self.head;
        let value = head.value.get().trim_ascii_end();
        if head.name.is(TRANSFER_ENCODING) {
            // Another coding, or a second one: nobody sends them, and few read them alike.
            if head.value.is_longer || head.is_chunked || !value.eq_ignore_ascii_case(b"chunked") {
                return State::Refused;
            }
            head.is_chunked = true;
        } else if head.name.is(CONTENT_LENGTH) {
            let Some(length) = number(value).filter(|_| !head.value.is_longer) else {
                return State::Refused;
            };
            if head.length.is_some_and(|before| before != length) {
                return State::Refused;
            }
            head.length = Some(length);
        }
        State::LineStart
    }

    fn end_head(&mut self) -> State {
        let head = std::mem::take(&mut self.head);
        match (head.length, head.is_chunked) {
            (Some(_), true) => State::Refused,
            (None, true) => State::ChunkSize { size: 0, digits: 0 },
            (None | Some(0), false) => State::Before,
            (Some(length), false) => State::Body(length),
        }
    }
}

fn step_in_chunks(state: State, byte: u8) -> State {
    match (state, byte) {
        (State::ChunkSize { digits: 0, .. }, byte) if !byte.is_ascii_hexdigit() => State::Refused,
        (State::ChunkSize { size, .. } | State::ChunkExtension(size), b'\r') => {
            State::ChunkSizeLf(size)
        }
        (State::ChunkSizeLf(0), b'\n') | (State::TrailerLf, b'\n') => State::TrailerStart,
        (State::ChunkSizeLf(size), b'\n') => State::Chunk(size),
        (State::ChunkCr, b'\r') => State::ChunkLf,
        (State::ChunkLf, b'\n') => State::ChunkSize { size: 0, digits: 0 },
        (State::TrailerStart, b'\r') => State::TrailersEndLf,
        (State::TrailersEndLf, b'\n') => State::Before,
        (State::Trailer, b'\r') => State::TrailerLf,
        (_, b'\n') => State::Refused,
        (State::ChunkSize { size, digits }, byte) => match (byte as char).to_digit(16) {
            Some(_) if digits >= CHUNK_DIGITS_MAX => State::Refused,
            Some(digit) => {
                State::ChunkSize { size: size << 4 | u64::from(digit), digits: digits + 1 }
            }
            None => State::ChunkExtension(size),
        },
        (State::ChunkExtension(size), _) => State::ChunkExtension(size),
        (State::TrailerStart | State::Trailer, _) => State::Trailer,
        // After CR, or after a chunk.
        _ => State::Refused,
    }
}

/// Bytes of a body among those that came.
fn taken(left: u64, came: usize) -> usize {
    usize::try_from(left).map_or(came, |left| left.min(came))
}

/// Digits and nothing else.
fn number(text: &[u8]) -> Option<u64> {
    let is_number = !text.is_empty() && text.iter().all(u8::is_ascii_digit);
    is_number.then(|| std::str::from_utf8(text).ok()?.parse().ok())?
}

#[cfg(test)]
mod tests;
