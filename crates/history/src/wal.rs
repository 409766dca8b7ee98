//! SQLite's write-ahead log as bytes: which frames are valid, and where commits end.
//!
//! Source: <https://sqlite.org/fileformat2.html#walformat>. It reads logs with little-endian
//! checksums only, which all machines that run these tests write.

const HEADER_BYTES: usize = 32;
const FRAME_HEADER_BYTES: usize = 24;
const MAGIC_LITTLE_ENDIAN: u32 = 0x377f_0682;

/// One valid frame.
pub(crate) struct Frame {
    /// Number of the page, from 1.
    pub(crate) page: usize,
    /// Where the page's content begins in the log.
    pub(crate) content: usize,
    /// Where the frame ends.
    pub(crate) end: usize,
    pub(crate) commits: bool,
}

/// The valid frames of a log: those that recovery would use, and those behind the last commit.
pub(crate) struct Log {
    pub(crate) page_size: usize,
    pub(crate) frames: Vec<Frame>,
}

impl Log {
    /// `None` when there is no valid header, so that no frame is valid.
    pub(crate) fn read(bytes: &[u8]) -> Option<Self> {
        let header = bytes.get(..HEADER_BYTES)?;
        if word(header, 0) != MAGIC_LITTLE_ENDIAN {
            return None;
        }
        let page_size = word(header, 8) as usize;
        let mut sum = checksum((0, 0), &header[..24]);
        if sum != stored_sum(&header[24..]) {
            return None;
        }
        let mut frames = Vec::new();
        let mut start = HEADER_BYTES;
        while let Some(frame) = bytes.get(start..start + FRAME_HEADER_BYTES + page_size) {
            let (head, content) = frame.split_at(FRAME_HEADER_BYTES);
            sum = checksum(checksum(sum, &head[..8]), content);
            if head[8..16] != header[16..24] || sum != stored_sum(&head[16..]) {
                break;
            }
            let end = start + frame.len();
            frames.push(Frame {
                page: word(head, 0) as usize,
                content: start + FRAME_HEADER_BYTES,
                end,
                commits: word(head, 4) > 0,
            });
            start = end;
        }
        Some(Self { page_size, frames })
    }

    /// Where each commit ends, first to last.
    pub(crate) fn commits(&self) -> impl DoubleEndedIterator<Item = usize> {
        self.frames.iter().filter(|frame| frame.commits).map(|frame| frame.end)
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_be_bytes(bytes[at..at + 4].try_into().expect("a word has four bytes"))
}

fn stored_sum(bytes: &[u8]) -> (u32, u32) {
    (word(bytes, 0), word(bytes, 4))
}

fn checksum(sum: (u32, u32), bytes: &[u8]) -> (u32, u32) {
    bytes.chunks_exact(8).fold(sum, |(first, second), pair| {
        let little = |at: usize| {
            u32::from_le_bytes(pair[at..at + 4].try_into().expect("a word has four bytes"))
        };
        let first = first.wrapping_add(little(0)).wrapping_add(second);
        (first, second.wrapping_add(little(4)).wrapping_add(first))
    })
}
