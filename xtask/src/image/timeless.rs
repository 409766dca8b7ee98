//! A reproducible tar file: entries have one time, the order in which they were added, and root as
//! owner, except private folders.

use anyhow::{Context, Result};
use jiff::Timestamp;
use tar::{Builder, EntryType, Header};

pub struct TimelessTar {
    builder: Builder<Vec<u8>>,
    time: Timestamp,
}

impl TimelessTar {
    pub fn new(time: Timestamp) -> Self {
        Self { builder: Builder::new(Vec::new()), time }
    }

    pub fn folder(&mut self, path: &str) -> Result<()> {
        self.add(path, EntryType::Directory, 0o755, 0, &[])
    }

    /// Adds a folder that only `user` may read and write.
    pub fn private_folder(&mut self, path: &str, user: u64) -> Result<()> {
        self.add(path, EntryType::Directory, 0o700, user, &[])
    }

    pub fn file(&mut self, path: &str, mode: u32, bytes: &[u8]) -> Result<()> {
        self.add(path, EntryType::Regular, mode, 0, bytes)
    }

    /// Adds a symbolic link.
    pub fn link(&mut self, path: &str, target: &str) -> Result<()> {
        let mut header = self.header(EntryType::Symlink, 0o777, 0);
        let added = self.builder.append_link(&mut header, path, target);
        added.with_context(|| format!("cannot add '{path}'"))
    }

    fn header(&self, kind: EntryType, mode: u32, owner: u64) -> Header {
        let mut header = Header::new_ustar();
        header.set_entry_type(kind);
        header.set_mode(mode);
        header.set_uid(owner);
        header.set_gid(owner);
        header.set_size(0);
        header.set_mtime(u64::try_from(self.time.as_second()).unwrap_or_default());
        header
    }

    fn add(
        &mut self,
        path: &str,
        kind: EntryType,
        mode: u32,
        owner: u64,
        bytes: &[u8],
    ) -> Result<()> {
        let mut header = self.header(kind, mode, owner);
        header.set_size(bytes.len().try_into()?);
        let added = self.builder.append_data(&mut header, path, bytes);
        added.with_context(|| format!("cannot add '{path}'"))
    }

    pub fn finish(self) -> Result<Vec<u8>> {
        Ok(self.builder.into_inner()?)
    }
}
