//! Parses server-sent events from bytes to frames. Does no I/O.

/// One dispatched event.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Frame {
    pub(crate) id: Option<String>,
    pub(crate) event: Option<String>,
    pub(crate) data: String,
}

/// A larger frame does not come from our server.
const MAX_FRAME_BYTES: usize = 64 * 1024 * 1024;

/// Accepts bytes in any chunking and returns a frame when its blank line has arrived. An unfinished
/// frame of a dropped connection is discarded, as the format requires.
#[derive(Debug, Default)]
pub(crate) struct Parser {
    line: Vec<u8>,
    frame: Frame,
    has_data: bool,
    after_cr: bool,
}

impl Parser {
    /// The frames that these bytes complete.
    pub(crate) fn feed(&mut self, bytes: &[u8]) -> Vec<Frame> {
        let mut frames = Vec::new();
        for &byte in bytes {
            // CR LF is one line end, also when a chunk ends between the two.
            let second_half = byte == b'\n' && std::mem::take(&mut self.after_cr);
            self.after_cr = byte == b'\r';
            match byte {
                _ if second_half => {}
                b'\n' | b'\r' => frames.extend(self.end_line()),
                _ if self.line.len() < MAX_FRAME_BYTES => self.line.push(byte),
                _ => {}
            }
        }
        frames
    }

    fn end_line(&mut self) -> Option<Frame> {
        let line = std::mem::take(&mut self.line);
        if line.is_empty() {
            let frame = std::mem::take(&mut self.frame);
            return std::mem::take(&mut self.has_data).then_some(frame);
        }
        let line = String::from_utf8_lossy(&line);
        let (field, value) = match line.split_once(':') {
            // A comment, such as a keep-alive.
            Some(("", _)) => return None,
            Some((field, value)) => (field, value.strip_prefix(' ').unwrap_or(value)),
            None => (&*line, ""),
        };
        match field {
            "id" => self.frame.id = Some(value.to_owned()),
            "event" => self.frame.event = Some(value.to_owned()),
            "data" => {
                if self.has_data {
                    self.frame.data.push('\n');
                }
                self.has_data = true;
                self.frame.data.push_str(value);
            }
            _ => {}
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const STREAM: &str = "\
:keepalive\n\nid: 3\nevent: run.completed\ndata: {\"a\":\ndata: \"ü\"}\n\n\
retry: 100\r\ndata:x\r\n\r\nevent: nothing\n\nid: 4\ndata: cut";

    fn expected() -> Vec<Frame> {
        vec![
            Frame {
                id: Some("3".to_owned()),
                event: Some("run.completed".to_owned()),
                data: "{\"a\":\n\"ü\"}".to_owned(),
            },
            Frame {
                data: "x".to_owned(),
                ..Frame::default()
            },
        ]
    }

    #[test]
    fn reads_frames_and_skips_comments_and_incomplete_frames() {
        assert_eq!(Parser::default().feed(STREAM.as_bytes()), expected());
    }

    #[test]
    fn frames_do_not_depend_on_chunk_boundaries() {
        for size in 1..8 {
            let mut parser = Parser::default();
            let frames: Vec<Frame> = STREAM
                .as_bytes()
                .chunks(size)
                .flat_map(|chunk| parser.feed(chunk))
                .collect();
            assert_eq!(frames, expected(), "chunks of {size}");
        }
    }
}
