//! The compressed headers of SPDY/3: one zlib stream for all frames of a direction.

use anyhow::{Context, ensure};
use flate2::{Compress, Compression, Decompress, FlushCompress, FlushDecompress, Status};

use super::dictionary::dictionary;

/// Longest headers of one stream, after decompression.
const HEADERS_SIZE_MAX: usize = 64 * 1024;
/// Output of the compressor for no headers at all; the first block is the longest, with the header
/// of the whole stream.
const EMPTY_BLOCK_SIZE_MAX: usize = 64;

/// Names in lower case, with their values.
pub type Headers = Vec<(String, String)>;

/// Decompresses the headers of one direction.
pub struct HeaderReader {
    zlib: Decompress,
}

impl HeaderReader {
    /// A reader before the first frame.
    pub fn new() -> Self {
        Self { zlib: Decompress::new(true) }
    }

    /// Reads the headers of one frame.
    ///
    /// # Errors
    /// The block cannot be decompressed, is longer than [`HEADERS_SIZE_MAX`], or is no list of
    /// names and values. The caller must close the connection.
    pub fn read(&mut self, mut block: &[u8]) -> anyhow::Result<Headers> {
        let mut plain = vec![0; HEADERS_SIZE_MAX];
        let mut filled = 0;
        while !block.is_empty() {
            let (read, written) = (self.zlib.total_in(), self.zlib.total_out());
            let outcome = self.zlib.decompress(block, &mut plain[filled..], FlushDecompress::Sync);
            let taken = usize::try_from(self.zlib.total_in() - read)?;
            block = &block[taken..];
            filled += usize::try_from(self.zlib.total_out() - written)?;
            match outcome {
                Ok(Status::Ok) if taken > 0 && filled < plain.len() => {}
                Ok(_) => anyhow::bail!("headers are longer than {HEADERS_SIZE_MAX} bytes"),
                Err(error) if error.needs_dictionary().is_some() => {
                    self.zlib.set_dictionary(&dictionary())?;
                }
                Err(error) => return Err(error).context("headers cannot be decompressed"),
            }
        }
        parse(&plain[..filled])
    }
}

fn parse(mut plain: &[u8]) -> anyhow::Result<Headers> {
    let count = take_number(&mut plain)?;
    let mut headers = Headers::new();
    for _ in 0..count {
        let name = take_text(&mut plain)?.to_ascii_lowercase();
        let value = take_text(&mut plain)?;
        headers.push((name, value));
    }
    Ok(headers)
}

fn take_number(plain: &mut &[u8]) -> anyhow::Result<u32> {
    let (number, rest) = plain.split_first_chunk().context("headers end within a number")?;
    *plain = rest;
    Ok(u32::from_be_bytes(*number))
}

fn take_text(plain: &mut &[u8]) -> anyhow::Result<String> {
    let length = usize::try_from(take_number(plain)?)?;
    ensure!(length <= plain.len(), "headers end within a name or value");
    let (text, rest) = plain.split_at(length);
    *plain = rest;
    Ok(String::from_utf8_lossy(text).into_owned())
}

/// Compresses the headers of one direction.
pub struct HeaderWriter {
    zlib: Compress,
}

impl HeaderWriter {
    /// A writer before the first frame.
    pub fn new() -> Self {
        let mut zlib = Compress::new(Compression::fast(), true);
        zlib.set_dictionary(&dictionary()).expect("a new stream takes a dictionary");
        Self { zlib }
    }

    /// A block without headers, which is all that replies need.
    pub fn empty_block(&mut self) -> Vec<u8> {
        let mut block = Vec::with_capacity(EMPTY_BLOCK_SIZE_MAX);
        let none = 0u32.to_be_bytes();
        let compressed = self.zlib.compress_vec(&none, &mut block, FlushCompress::Sync);
        compressed.expect("a zlib stream that was not finished takes more");
        block
    }
}
