//! The primitives of protobuf: varints, tags, lengths.

/// The encoding of a field's value on the wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    Varint,
    Fixed64,
    Delimited,
    Fixed32,
}

/// Why bytes are not valid protobuf.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Malformed {
    #[error("it ends in the middle of a value")]
    Truncated,
    #[error("a number has more than 64 bits")]
    Varint,
    #[error("a field has the number {0}, which does not exist")]
    Number(u64),
    #[error("a field has the wire type {0}, which is not in use")]
    WireType(u64),
}

/// Reads the fields of a message from front to back.
#[derive(Clone, Copy, Debug)]
pub struct WireReader<'a> {
    rest: &'a [u8],
}

impl<'a> WireReader<'a> {
    /// A reader at the start of a message.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self { rest: bytes }
    }

    /// Whether all bytes are read.
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads the number and wire type of the next field; `None` at the end.
    ///
    /// # Errors
    /// The tag is malformed or its wire type is not supported.
    pub fn tag(&mut self) -> Result<Option<(u32, Wire)>, Malformed> {
        if self.rest.is_empty() {
            return Ok(None);
        }
        let tag = self.varint()?;
        let number = u32::try_from(tag >> 3).ok().filter(|number| *number > 0);
        let number = number.ok_or(Malformed::Number(tag >> 3))?;
        let wire = match tag & 7 {
            0 => Wire::Varint,
            1 => Wire::Fixed64,
            2 => Wire::Delimited,
            5 => Wire::Fixed32,
            // 3 and 4 are groups, which Kubernetes has never used.
            other => return Err(Malformed::WireType(other)),
        };
        Ok(Some((number, wire)))
    }

    /// Reads a varint of up to 64 bits.
    ///
    /// # Errors
    /// It is longer than 64 bits, or the bytes end early.
    pub fn varint(&mut self) -> Result<u64, Malformed> {
        let mut value = 0_u64;
        for (index, byte) in self.rest.iter().enumerate() {
            let bits = u64::from(byte & 0x7f);
            if index == 9 && bits > 1 {
                return Err(Malformed::Varint);
            }
            value |= bits << (7 * index);
            if byte & 0x80 == 0 {
                self.rest = &self.rest[index + 1..];
                return Ok(value);
            }
            if index == 9 {
                return Err(Malformed::Varint);
            }
        }
        Err(Malformed::Truncated)
    }

    /// Reads eight bytes, little-endian.
    ///
    /// # Errors
    /// Fewer bytes are left.
    pub fn fixed64(&mut self) -> Result<u64, Malformed> {
        let (bytes, rest) = self.rest.split_first_chunk().ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(u64::from_le_bytes(*bytes))
    }

    /// Reads a length and as many bytes.
    ///
    /// # Errors
    /// The length is malformed, or fewer bytes are left.
    pub fn delimited(&mut self) -> Result<&'a [u8], Malformed> {
        let length = usize::try_from(self.varint()?).map_err(|_| Malformed::Truncated)?;
        let (bytes, rest) = self.rest.split_at_checked(length).ok_or(Malformed::Truncated)?;
        self.rest = rest;
        Ok(bytes)
    }

    /// Skips the value of a field.
    ///
    /// # Errors
    /// The value is malformed, or the bytes end early.
    pub fn skip(&mut self, wire: Wire) -> Result<(), Malformed> {
        match wire {
            Wire::Varint => drop(self.varint()?),
            Wire::Fixed64 => drop(self.fixed64()?),
            Wire::Delimited => drop(self.delimited()?),
            Wire::Fixed32 => {
                let (_, rest) = self.rest.split_first_chunk::<4>().ok_or(Malformed::Truncated)?;
                self.rest = rest;
            }
        }
        Ok(())
    }
}

/// Appends a varint: seven bits in each byte, the lowest first.
pub fn put_varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

fn put_tag(out: &mut Vec<u8>, number: u32, wire: u64) {
    put_varint(out, u64::from(number) << 3 | wire);
}

/// Appends a varint field with its tag. Negative numbers take ten bytes.
pub fn put_int(out: &mut Vec<u8>, number: u32, value: i64) {
    put_tag(out, number, 0);
    put_varint(out, value.cast_unsigned());
}

/// Appends a field of eight bytes with its tag.
pub fn put_double(out: &mut Vec<u8>, number: u32, value: f64) {
    put_tag(out, number, 1);
    out.extend_from_slice(&value.to_le_bytes());
}

/// Appends a length-delimited field with its tag.
pub fn put_bytes(out: &mut Vec<u8>, number: u32, value: &[u8]) {
    put_tag(out, number, 2);
    put_varint(out, value.len() as u64);
    out.extend_from_slice(value);
}

/// Appends a length-delimited field whose contents `write` appends. Returns the result of `write`.
pub fn put_nested<T>(out: &mut Vec<u8>, number: u32, write: impl FnOnce(&mut Vec<u8>) -> T) -> T {
    put_tag(out, number, 2);
    let start = out.len();
    // Reserves one byte, because most messages are short. A longer message moves to make room for
    // its length.
    out.push(0);
    let result = write(out);
    let length = out.len() - start - 1;
    if length < 0x80 {
        out[start] = length as u8;
    } else {
        let mut prefix = Vec::with_capacity(10);
        put_varint(&mut prefix, length as u64);
        out.splice(start..=start, prefix);
    }
    result
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn varints_are_read_as_written() {
        for value in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX - 1, u64::MAX] {
            let mut bytes = Vec::new();
            put_varint(&mut bytes, value);
            assert_eq!(WireReader::new(&bytes).varint(), Ok(value));
            let cut = &bytes[..bytes.len() - 1];
            assert_eq!(WireReader::new(cut).varint(), Err(Malformed::Truncated));
        }
        assert_eq!(WireReader::new(&[0xff; 11]).varint(), Err(Malformed::Varint));
        let too_large = [0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 2];
        assert_eq!(WireReader::new(&too_large).varint(), Err(Malformed::Varint));
    }

    #[test]
    fn a_nested_message_of_any_length_is_read_as_written() {
        for length in [0, 1, 127, 128, 16_383, 16_384, 100_000] {
            let mut bytes = Vec::new();
            put_nested(&mut bytes, 3, |out| out.resize(out.len() + length, 7));
            let mut reader = WireReader::new(&bytes);
            assert_eq!(reader.tag(), Ok(Some((3, Wire::Delimited))));
            assert_eq!(reader.delimited(), Ok(&vec![7; length][..]));
            assert_eq!(reader.tag(), Ok(None));
        }
    }
}
