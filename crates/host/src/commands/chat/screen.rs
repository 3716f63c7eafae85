//! The terminal: output that may arrive while the user types.

use crate::output;

const PROMPT: &str = "> ";

pub(super) struct Screen {
    /// There is a prompt, and its line can be erased.
    is_interactive: bool,
    /// The prompt is shown and nothing was entered yet.
    has_prompt: bool,
    /// The last output did not end its line.
    is_within_line: bool,
}

impl Screen {
    pub(super) fn new(is_interactive: bool) -> Self {
        Self {
            is_interactive,
            has_prompt: false,
            is_within_line: false,
        }
    }

    /// Writes a text. A prompt before it is erased.
    pub(super) fn print(&mut self, text: &str) -> anyhow::Result<()> {
        if text.is_empty() {
            return Ok(());
        }
        if std::mem::take(&mut self.has_prompt) {
            output::text("\r\u{1b}[K")?;
        }
        output::text(text)?;
        self.is_within_line = !text.ends_with('\n');
        Ok(())
    }

    /// Shows the prompt, unless it is there or an answer is being written.
    pub(super) fn prompt(&mut self) -> anyhow::Result<()> {
        if self.is_interactive && !self.has_prompt && !self.is_within_line {
            output::text(PROMPT)?;
            self.has_prompt = true;
        }
        Ok(())
    }

    /// The terminal has moved to the next line.
    pub(super) fn line_entered(&mut self) {
        self.has_prompt = false;
    }

    /// Ends the line that is under way.
    pub(super) fn finish(&mut self) -> anyhow::Result<()> {
        if self.has_prompt || self.is_within_line {
            output::text("\n")?;
        }
        Ok(())
    }
}
