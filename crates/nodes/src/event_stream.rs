//! Server-sent events, as far as responses need them: the data of each event, joined line by line.

use reqwest::header::HeaderValue;

/// Splits a stream of bytes into events. Lines end with `\n`, `\r\n` or `\r`.
#[derive(Default)]
pub(crate) struct Frames {
    line: Vec<u8>,
    data: Vec<u8>,
    has_data: bool,
    after_cr: bool,
}

impl Frames {
    /// Bytes of the event that is not complete yet.
    pub(crate) fn pending_bytes(&self) -> usize {
        self.line.len() + self.data.len()
    }

    /// The data of every event that is complete with these bytes.
    pub(crate) fn take(&mut self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut events = Vec::new();
        for &byte in bytes {
            let after_cr = std::mem::replace(&mut self.after_cr, byte == b'\r');
            match byte {
                b'\n' if after_cr => {}
                b'\n' | b'\r' => events.extend(self.end_line()),
                other => self.line.push(other),
            }
        }
        events
    }

    fn end_line(&mut self) -> Option<Vec<u8>> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let data = std::mem::take(&mut self.data);
            return std::mem::take(&mut self.has_data).then_some(data);
        }
        if let Some(value) = line.strip_prefix(b"data:") {
            if self.has_data {
                self.data.push(b'\n');
            }
            self.has_data = true;
            let value = value.strip_prefix(b" ").unwrap_or(value);
            self.data.extend_from_slice(value);
        }
        None
    }
}

/// Whether a content type is that of server-sent events, whatever its parameters.
pub(crate) fn is_event_stream(content_type: &HeaderValue) -> bool {
    let text = content_type.to_str().unwrap_or_default();
    let essence = text.split(';').next().unwrap_or_default();
    essence.trim().eq_ignore_ascii_case("text/event-stream")
}
