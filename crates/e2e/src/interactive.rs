//! An interactive program: writes to its input, and collects its output.

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use anyhow::{Context, Result, bail};

use crate::poll_until;
use crate::wait::{LOOK_INTERVAL, SETTLE_TIMEOUT};

/// A running program. Dropping it kills it.
#[derive(Debug)]
pub struct Interactive {
    child: Child,
    input: Option<ChildStdin>,
    said: Arc<Mutex<Vec<u8>>>,
    readers: Vec<JoinHandle<()>>,
}

impl Interactive {
    /// Starts `command` with captured streams. Output and errors are stored together.
    ///
    /// # Errors
    /// It cannot be started.
    pub fn start(command: &mut Command) -> Result<Self> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().context("cannot start a program to talk with")?;
        let said = Arc::default();
        let mut readers = Vec::new();
        if let Some(output) = child.stdout.take() {
            readers.push(collect(output, &said));
        }
        if let Some(errors) = child.stderr.take() {
            readers.push(collect(errors, &said));
        }
        Ok(Self { input: child.stdin.take(), child, said, readers })
    }

    /// Writes `text` to its input.
    ///
    /// # Errors
    /// Its input is closed; the message has all its output.
    pub fn write_input(&mut self, text: &str) -> Result<()> {
        let input = self.input.as_mut().context("its input has been closed")?;
        let written = input.write_all(text.as_bytes());
        written
            .with_context(|| format!("it does not read its input; its output: {:?}", self.output()))
    }

    /// Ends its input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// All its output so far.
    #[must_use]
    pub fn output(&self) -> String {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Waits until `find` finds something in what it has said.
    ///
    /// # Errors
    /// Not in time; the message has all it said.
    pub fn await_said<T>(&self, mut find: impl FnMut(&str) -> Option<T>) -> Result<T> {
        poll_until(SETTLE_TIMEOUT, LOOK_INTERVAL, || {
            let said = self.output();
            find(&said).with_context(|| format!("it said only: {said:?}"))
        })
    }

    /// How it ended, if it has.
    ///
    /// # Errors
    /// It still runs.
    pub fn exit_status(&mut self) -> Result<ExitStatus> {
        match self.child.try_wait()? {
            Some(status) => Ok(status),
            None => bail!("it still runs and has said: {:?}", self.output()),
        }
    }

    /// Waits until it has ended and gives that with all it said.
    ///
    /// # Errors
    /// It does not end in time.
    pub fn finish(mut self) -> Result<(ExitStatus, String)> {
        let status = poll_until(SETTLE_TIMEOUT, LOOK_INTERVAL, || self.exit_status())?;
        for reader in self.readers.drain(..) {
            let _ = reader.join();
        }
        Ok((status, self.output()))
    }
}

impl Drop for Interactive {
    fn drop(&mut self) {
        // Both fail only when it has ended.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn collect(mut from: impl Read + Send + 'static, into: &Arc<Mutex<Vec<u8>>>) -> JoinHandle<()> {
    let into = Arc::clone(into);
    std::thread::spawn(move || {
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            into.lock().unwrap_or_else(PoisonError::into_inner).extend(&buffer[..count]);
        }
    })
}
