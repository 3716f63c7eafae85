//! All terminal output. Results go to stdout, everything else to stderr, so that a pipe contains
//! only the result.

use serde::Serialize;
use std::io::{self, ErrorKind, IsTerminal as _, Write};

/// Writes one line to stdout and flushes it, because a reader of a pipe may wait for it.
pub(crate) fn line(text: impl AsRef<str>) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_ref().as_bytes())?;
    out.write_all(b"\n")?;
    out.flush()
}

/// Writes a text that is not a line yet, and flushes it.
pub(crate) fn text(text: &str) -> io::Result<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()
}

/// Indented JSON, for people and for files.
pub(crate) fn json(value: &impl Serialize) -> io::Result<()> {
    line(serde_json::to_string_pretty(value)?)
}

/// One object per line, for programs that read the output as a stream.
pub(crate) fn json_line(value: &impl Serialize) -> io::Result<()> {
    line(serde_json::to_string(value)?)
}

/// A message that is not the result.
pub(crate) fn note(text: impl AsRef<str>) {
    let _ = writeln!(io::stderr().lock(), "{}", text.as_ref());
}

/// Stdout for output that is not our own lines.
pub(crate) fn bytes() -> Box<dyn Write> {
    Box::new(io::BufWriter::new(io::stdout().lock()))
}

/// One line with the progress of a long command, if stderr is a terminal.
pub(crate) struct Progress {
    is_terminal: bool,
}

impl Progress {
    pub(crate) fn new() -> Self {
        let is_terminal = io::stderr().is_terminal();
        Self { is_terminal }
    }

    pub(crate) fn show(&self, text: &str) {
        if self.is_terminal {
            let _ = write!(io::stderr().lock(), "\r\u{1b}[K{text}");
        }
    }

    pub(crate) fn clear(&self) {
        self.show("");
    }
}

pub(crate) fn print_error(error: &anyhow::Error) {
    note(format!("error: {error:#}"));
}

/// Whether the reader of our stdout has closed it.
pub(crate) fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.downcast_ref::<io::Error>();
    io.is_some_and(|e| e.kind() == ErrorKind::BrokenPipe)
}

/// The style of stdout: colours only on a terminal and if not disabled.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Style {
    colours: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Colour {
    Dim,
    Red,
    Green,
    Yellow,
    Blue,
    Bold,
}

impl Style {
    #[cfg(test)]
    pub(crate) const PLAIN: Self = Self { colours: false };

    pub(crate) fn of_stdout() -> Self {
        // https://no-color.org: any value but the empty one.
        let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            colours: io::stdout().is_terminal() && !refused,
        }
    }

    pub(crate) fn paint(self, colour: Colour, text: &str) -> String {
        if !self.colours {
            return text.to_owned();
        }
        let code = match colour {
            Colour::Dim => 2,
            Colour::Red => 31,
            Colour::Green => 32,
            Colour::Yellow => 33,
            Colour::Blue => 34,
            Colour::Bold => 1,
        };
        format!("\u{1b}[{code}m{text}\u{1b}[0m")
    }
}

/// Text from elsewhere, without control characters that a terminal would interpret.
pub(crate) fn sanitize(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c.is_control() && c != '\t' {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn colours_are_used_only_when_enabled() {
        assert_eq!(Style::PLAIN.paint(Colour::Red, "no"), "no");
        let style = Style { colours: true };
        assert_eq!(style.paint(Colour::Red, "no"), "\u{1b}[31mno\u{1b}[0m");
    }

    #[test]
    fn control_characters_are_replaced() {
        assert_eq!(sanitize("a\u{1b}[2Jb\nc"), "a\u{fffd}[2Jb\u{fffd}c");
    }
}
