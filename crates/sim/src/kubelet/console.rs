//! The input and output of a command in a container: plain streams, or a terminal that echoes the
//! input and supports editing of a line.

use std::collections::VecDeque;

use bytes::Bytes;
use tokio::sync::mpsc;

/// Longest line that is read.
const LINE_SIZE_MAX: usize = 8 * 1024;

const INTERRUPT: u8 = 0x03;
const END: u8 = 0x04;
const BACKSPACE: u8 = 0x08;
const CLEAR_LINE: u8 = 0x15;
const ESCAPE: u8 = 0x1b;
const DELETE: u8 = 0x7f;

/// A piece of a command's output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    Standard(Bytes),
    Errors(Bytes),
}

/// The client has disconnected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Disconnected;

/// A line that was read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Line {
    Text(String),
    /// Ctrl-C in a terminal.
    Interrupt,
    /// The end of the input.
    End,
}

/// Input and output of one command.
pub struct Console {
    /// Closed at the end of the input.
    input: Option<mpsc::Receiver<Bytes>>,
    output: mpsc::Sender<Output>,
    is_terminal: bool,
    /// Bytes that were received and not yet read.
    pending: VecDeque<u8>,
}

impl Console {
    /// A console. Without `input` the command cannot read; a terminal echoes and edits the input.
    pub fn new(
        input: Option<mpsc::Receiver<Bytes>>,
        output: mpsc::Sender<Output>,
        is_terminal: bool,
    ) -> Self {
        Self { input, output, is_terminal, pending: VecDeque::new() }
    }

    /// Whether the command has a terminal.
    pub fn is_terminal(&self) -> bool {
        self.is_terminal
    }

    /// Whether the client can send input.
    pub fn has_input(&self) -> bool {
        self.input.is_some()
    }

    /// Writes to the output; a terminal gets CR LF at ends of lines.
    ///
    /// # Errors
    /// The client is disconnected.
    pub async fn write(&self, text: &str) -> Result<(), Disconnected> {
        if text.is_empty() {
            return Ok(());
        }
        let text = if self.is_terminal { text.replace('\n', "\r\n") } else { text.to_owned() };
        self.send(Output::Standard(text.into())).await
    }

    /// Writes to the errors; in a terminal these are part of the output.
    pub async fn write_errors(&self, text: &str) -> Result<(), Disconnected> {
        if self.is_terminal || text.is_empty() {
            return self.write(text).await;
        }
        self.send(Output::Errors(text.to_owned().into())).await
    }

    async fn send(&self, output: Output) -> Result<(), Disconnected> {
        self.output.send(output).await.map_err(|_| Disconnected)
    }

    async fn next_byte(&mut self) -> Option<u8> {
        loop {
            if let Some(byte) = self.pending.pop_front() {
                return Some(byte);
            }
            self.pending.extend(self.input.as_mut()?.recv().await?);
        }
    }

    /// The next line, without its end.
    pub async fn read_line(&mut self) -> Result<Line, Disconnected> {
        if self.is_terminal { self.edit_line().await } else { Ok(self.plain_line().await) }
    }

    async fn plain_line(&mut self) -> Line {
        let mut line = Vec::new();
        loop {
            match self.next_byte().await {
                Some(b'\n') => break,
                Some(byte) if line.len() < LINE_SIZE_MAX => line.push(byte),
                Some(_) => {}
                None if line.is_empty() => return Line::End,
                None => break,
            }
        }
        Line::Text(String::from_utf8_lossy(&line).into_owned())
    }

    async fn edit_line(&mut self) -> Result<Line, Disconnected> {
        let mut line = Vec::new();
        loop {
            let Some(byte) = self.next_byte().await else { return Ok(Line::End) };
            match byte {
                b'\r' | b'\n' => {
                    self.write("\n").await?;
                    return Ok(Line::Text(String::from_utf8_lossy(&line).into_owned()));
                }
                INTERRUPT => {
                    self.write("^C\n").await?;
                    return Ok(Line::Interrupt);
                }
                END if line.is_empty() => return Ok(Line::End),
                BACKSPACE | DELETE => self.erase(&mut line).await?,
                CLEAR_LINE => {
                    while !line.is_empty() {
                        self.erase(&mut line).await?;
                    }
                }
                ESCAPE => self.skip_escape().await,
                byte if byte < b' ' => {}
                byte if line.len() < LINE_SIZE_MAX => {
                    line.push(byte);
                    self.send(Output::Standard(Bytes::copy_from_slice(&[byte]))).await?;
                }
                _ => {}
            }
        }
    }

    /// Removes the last character, on the screen too.
    async fn erase(&self, line: &mut Vec<u8>) -> Result<(), Disconnected> {
        let is_continuation = |byte: &u8| byte & 0xc0 == 0x80;
        if line.is_empty() {
            return Ok(());
        }
        while line.pop_if(|byte| is_continuation(byte)).is_some() {}
        line.pop();
        self.write("\x08 \x08").await
    }

    /// Skips an escape sequence such as an arrow key: a bracket, then anything up to a letter.
    async fn skip_escape(&mut self) {
        let begins = self.next_byte().await;
        if begins != Some(b'[') && begins != Some(b'O') {
            return;
        }
        while let Some(byte) = self.next_byte().await {
            if (0x40..=0x7e).contains(&byte) {
                return;
            }
        }
    }

    /// Copies the input to the output, up to its end.
    pub async fn copy_input(&mut self) -> Result<(), Disconnected> {
        if self.is_terminal {
            while let Line::Text(line) = self.edit_line().await? {
                self.write(&format!("{line}\n")).await?;
            }
            return Ok(());
        }
        let before: Vec<u8> = self.pending.drain(..).collect();
        if !before.is_empty() {
            self.send(Output::Standard(before.into())).await?;
        }
        while let Some(input) = &mut self.input {
            let Some(piece) = input.recv().await else { break };
            self.send(Output::Standard(piece)).await?;
        }
        Ok(())
    }

    /// Reads and discards all input; never returns.
    pub async fn discard_input(&mut self) {
        while let Some(input) = &mut self.input {
            if input.recv().await.is_none() {
                break;
            }
        }
        std::future::pending().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lines that result from the typed input, and the text on the screen.
    async fn typed(pieces: &[&str]) -> (Vec<Line>, String) {
        let (send, input) = mpsc::channel(pieces.len().max(1));
        for piece in pieces {
            send.send(Bytes::copy_from_slice(piece.as_bytes())).await.unwrap();
        }
        drop(send);
        let (output, mut screen) = mpsc::channel(1000);
        let mut console = Console::new(Some(input), output, true);
        let mut lines = Vec::new();
        loop {
            let line = console.read_line().await.unwrap();
            if line == Line::End {
                break;
            }
            lines.push(line);
        }
        drop(console);
        let mut shown = Vec::new();
        while let Some(Output::Standard(bytes)) = screen.recv().await {
            shown.extend(bytes);
        }
        (lines, String::from_utf8(shown).unwrap())
    }

    fn text(line: &str) -> Line {
        Line::Text(line.to_owned())
    }

    #[tokio::test]
    async fn a_terminal_echoes_what_is_typed_and_edits_the_line() {
        let (lines, shown) = typed(&["ech", "o\r", "l\u{e4}\x7f\x7fps\r"]).await;
        assert_eq!(lines, [text("echo"), text("ps")]);
        assert_eq!(shown, "echo\r\nl\u{e4}\x08 \x08\x08 \x08ps\r\n");
        let (lines, _) = typed(&["wrong\x15l\x1b[1;5D\x1bOAs\r"]).await;
        assert_eq!(lines, [text("ls")]);
    }

    #[tokio::test]
    async fn a_terminal_knows_interrupts_and_the_end() {
        let (lines, shown) = typed(&["half\x03", "\x04never\r"]).await;
        assert_eq!((lines, shown.as_str()), (vec![Line::Interrupt], "half^C\r\n"));
    }

    #[tokio::test]
    async fn plain_input_is_split_into_lines_and_the_rest_is_the_last_one() {
        let (send, input) = mpsc::channel(2);
        send.send(Bytes::from_static(b"first\nsecond\nre")).await.unwrap();
        send.send(Bytes::from_static(b"st")).await.unwrap();
        drop(send);
        let (output, mut shown) = mpsc::channel(10);
        let mut console = Console::new(Some(input), output, false);
        assert_eq!(console.read_line().await, Ok(text("first")));
        assert_eq!(console.read_line().await, Ok(text("second")));
        console.copy_input().await.unwrap();
        assert_eq!(console.read_line().await, Ok(Line::End));
        drop(console);
        let mut left = Vec::new();
        while let Some(Output::Standard(bytes)) = shown.recv().await {
            left.extend(bytes);
        }
        assert_eq!(left, b"rest");
    }
}
