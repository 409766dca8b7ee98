//! Headers of WebSocket frames, and the mask of their payload (RFC 6455, section 5).

use bytes::{BufMut, BytesMut};

/// Largest payload of a control frame.
pub(super) const CONTROL_MAX_BYTES: usize = 125;

const FINAL: u8 = 0x80;
const RESERVED: u8 = 0x70;
const OPCODE: u8 = 0x0f;
const MASKED: u8 = 0x80;
const LENGTH: u8 = 0x7f;
/// Instead of a length: two bytes of length follow, or eight.
const LENGTH_16: u8 = 126;
const LENGTH_64: u8 = 127;
const MASK_BYTES: usize = 4;

/// Why a frame is refused.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum FrameError {
    #[error("the peer sent a message that is not binary")]
    Kind(u8),
    #[error(
        "the peer sent a WebSocket frame with reserved bits, of an extension that was not negotiated"
    )]
    Reserved,
    #[error("the peer sent a WebSocket frame of {0} bytes, which is too long")]
    Length(u64),
    #[error("the peer sent a WebSocket control frame in parts")]
    Control,
    #[error("the peer sent parts of WebSocket messages out of order")]
    Order,
    #[error("the peer must mask its WebSocket frames")]
    Unmasked,
    #[error("the peer must not mask its WebSocket frames")]
    Masked,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FrameKind {
    Continuation,
    Binary,
    Close,
    Ping,
    Pong,
}

impl FrameKind {
    const ALL: [(Self, u8); 5] = [
        (Self::Continuation, 0),
        (Self::Binary, 2),
        (Self::Close, 8),
        (Self::Ping, 9),
        (Self::Pong, 10),
    ];

    fn of(opcode: u8) -> Result<Self, FrameError> {
        let found = Self::ALL.iter().find(|(_, code)| *code == opcode);
        found.map(|(kind, _)| *kind).ok_or(FrameError::Kind(opcode))
    }

    fn opcode(self) -> u8 {
        let found = Self::ALL.iter().find(|(kind, _)| *kind == self);
        found.map_or(0, |(_, code)| *code)
    }
}

/// The header of a frame: everything but its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct FrameHead {
    pub(super) kind: FrameKind,
    /// The last frame of its message.
    pub(super) is_final: bool,
    /// Bytes of payload.
    pub(super) length: u64,
    pub(super) mask: Option<Mask>,
}

impl FrameHead {
    pub(super) const LENGTH_MIN: usize = 2;
    pub(super) const LENGTH_MAX: usize = 14;

    /// Size of a header that begins with these two bytes.
    pub(super) fn length(begin: &[u8]) -> usize {
        let length = match begin[1] & LENGTH {
            LENGTH_16 => 2,
            LENGTH_64 => 8,
            _ => 0,
        };
        let mask = if begin[1] & MASKED == 0 { 0 } else { MASK_BYTES };
        Self::LENGTH_MIN + length + mask
    }

    /// `bytes` is a whole header.
    pub(super) fn parse(bytes: &[u8]) -> Result<Self, FrameError> {
        if bytes[0] & RESERVED != 0 {
            return Err(FrameError::Reserved);
        }
        let kind = FrameKind::of(bytes[0] & OPCODE)?;
        let (begin, rest) = bytes.split_at(Self::LENGTH_MIN);
        let is_masked = begin[1] & MASKED != 0;
        let (length, mask) = rest.split_at(rest.len() - if is_masked { MASK_BYTES } else { 0 });
        let length = match length {
            [] => u64::from(begin[1] & LENGTH),
            more => more.iter().fold(0, |length, byte| length << 8 | u64::from(*byte)),
        };
        let mask = mask.try_into().ok().map(Mask::new);
        Ok(Self { kind, is_final: begin[0] & FINAL != 0, length, mask })
    }

    pub(super) fn write(&self, out: &mut BytesMut) {
        out.put_u8(if self.is_final { FINAL } else { 0 } | self.kind.opcode());
        let masked = if self.mask.is_some() { MASKED } else { 0 };
        match (u8::try_from(self.length), u16::try_from(self.length)) {
            (Ok(length), _) if length < LENGTH_16 => out.put_u8(masked | length),
            (_, Ok(length)) => {
                out.put_u8(masked | LENGTH_16);
                out.put_u16(length);
            }
            _ => {
                out.put_u8(masked | LENGTH_64);
                out.put_u64(self.length);
            }
        }
        if let Some(mask) = self.mask {
            out.put_slice(&mask.key);
        }
    }

    /// Clients must mask, servers must not.
    pub(super) fn check_mask(&self, must_mask: bool) -> Result<(), FrameError> {
        match (must_mask, self.mask) {
            (true, None) => Err(FrameError::Unmasked),
            (false, Some(_)) => Err(FrameError::Masked),
            _ => Ok(()),
        }
    }

    /// Bytes of payload of a control frame.
    pub(super) fn control_length(&self) -> Result<usize, FrameError> {
        let length = usize::try_from(self.length).unwrap_or(usize::MAX);
        if !self.is_final {
            return Err(FrameError::Control);
        }
        if length > CONTROL_MAX_BYTES {
            return Err(FrameError::Length(self.length));
        }
        Ok(length)
    }
}

/// The mask of a payload: these bytes, repeated, are XORed with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Mask {
    key: [u8; MASK_BYTES],
}

impl Mask {
    fn new(key: [u8; MASK_BYTES]) -> Self {
        Self { key }
    }

    pub(super) fn random() -> Self {
        Self::new(rand::random())
    }

    /// Masks or unmasks the next bytes of a payload.
    pub(super) fn apply(&mut self, payload: &mut [u8]) {
        const WORD_BYTES: usize = size_of::<u64>();
        let [a, b, c, d] = self.key;
        let word = u64::from_ne_bytes([a, b, c, d, a, b, c, d]);
        let (words, rest) = payload.as_chunks_mut::<WORD_BYTES>();
        for bytes in words {
            *bytes = (u64::from_ne_bytes(*bytes) ^ word).to_ne_bytes();
        }
        for (byte, key) in rest.iter_mut().zip(self.key.iter().cycle()) {
            *byte ^= key;
        }
        // The next call may begin in the middle of the key.
        self.key.rotate_left(payload.len() % MASK_BYTES);
    }
}
