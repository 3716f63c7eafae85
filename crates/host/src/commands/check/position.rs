//! Converts a JSON pointer to a line and column. The parser keeps no positions, so the text is
//! scanned again, only along the pointer and only when there is something to report.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TextPosition {
    /// Both start at 1; columns count characters.
    pub(super) line: usize,
    pub(super) column: usize,
}

/// Where the value of a pointer starts. If a part of the pointer does not exist (a missing key),
/// the position of the nearest enclosing value. `None` for text that is not JSON.
pub(super) fn locate(text: &str, pointer: &str) -> Option<TextPosition> {
    let mut scanner = JsonScanner { text, at: 0 };
    scanner.skip_space();
    for token in pointer.split('/').skip(1) {
        let token = token.replace("~1", "/").replace("~0", "~");
        let inner = match scanner.peek()? {
            b'{' => scanner.member(&token)?,
            b'[' => scanner.item(token.parse().ok())?,
            _ => None,
        };
        match inner {
            Some(at) => scanner.at = at,
            None => break,
        }
    }
    let before = text.get(..scanner.at)?;
    let line_start = before.rfind('\n').map_or(0, |at| at + 1);
    Some(TextPosition {
        line: before.matches('\n').count() + 1,
        column: before[line_start..].chars().count() + 1,
    })
}

struct JsonScanner<'a> {
    text: &'a str,
    at: usize,
}

impl JsonScanner<'_> {
    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn skip_space(&mut self) {
        while self.peek().is_some_and(|b| b.is_ascii_whitespace()) {
            self.at += 1;
        }
    }

    /// Offset of a member's value in the object that starts here. The last of duplicate keys
    /// counts, as in the parser.
    fn member(&self, key: &str) -> Option<Option<usize>> {
        let mut scanner = JsonScanner { ..*self };
        let mut found = None;
        scanner.at += 1;
        loop {
            scanner.skip_space();
            if scanner.peek()? == b'}' {
                return Some(found);
            }
            let begin = scanner.at;
            scanner.skip_string()?;
            let name: String = serde_json::from_str(&self.text[begin..scanner.at]).ok()?;
            scanner.skip_space();
            scanner.expect(b':')?;
            scanner.skip_space();
            if name == key {
                found = Some(scanner.at);
            }
            scanner.skip_value()?;
            scanner.skip_space();
            if scanner.peek()? == b',' {
                scanner.at += 1;
            }
        }
    }

    /// Offset of an item of the array that starts here.
    fn item(&self, index: Option<usize>) -> Option<Option<usize>> {
        let mut scanner = JsonScanner { ..*self };
        scanner.at += 1;
        for i in 0.. {
            scanner.skip_space();
            if scanner.peek()? == b']' {
                break;
            }
            if Some(i) == index {
                return Some(Some(scanner.at));
            }
            scanner.skip_value()?;
            scanner.skip_space();
            if scanner.peek()? == b',' {
                scanner.at += 1;
            }
        }
        Some(None)
    }

    fn expect(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    /// Counts brackets instead of recursing: the author controls the depth.
    fn skip_value(&mut self) -> Option<()> {
        let mut depth = 0_usize;
        loop {
            match self.peek()? {
                b'"' => self.skip_string()?,
                b'{' | b'[' => {
                    depth += 1;
                    self.at += 1;
                }
                b'}' | b']' => {
                    depth = depth.checked_sub(1)?;
                    self.at += 1;
                }
                b',' | b':' => self.at += 1,
                b if b.is_ascii_whitespace() => self.at += 1,
                _ => self.skip_scalar(),
            }
            if depth == 0 {
                return Some(());
            }
        }
    }

    fn skip_scalar(&mut self) {
        let ends = |b: u8| b.is_ascii_whitespace() || matches!(b, b',' | b']' | b'}');
        while self.peek().is_some_and(|b| !ends(b)) {
            self.at += 1;
        }
    }

    fn skip_string(&mut self) -> Option<()> {
        self.expect(b'"')?;
        loop {
            match self.peek()? {
                b'"' => {
                    self.at += 1;
                    return Some(());
                }
                b'\\' => self.at += 2,
                _ => self.at += 1,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{
  "a": [1, {"b~/c": "x\"]"}, [true]],
  "ünï": {"k": 1, "k": 2},
  "z": {}
}"#;

    #[test]
    fn finds_values_by_pointer() {
        let at = |pointer| locate(TEXT, pointer).map(|p| (p.line, p.column));
        assert_eq!(at(""), Some((1, 1)));
        assert_eq!(at("/a"), Some((2, 8)));
        assert_eq!(at("/a/1/b~0~1c"), Some((2, 21)));
        assert_eq!(at("/a/2/0"), Some((2, 31)));
        assert_eq!(at("/ünï/k"), Some((3, 24)), "the last of two equal keys");
    }

    #[test]
    fn missing_value_is_located_at_its_parent() {
        let at = |pointer| locate(TEXT, pointer).map(|p| (p.line, p.column));
        assert_eq!(at("/z/missing"), Some((4, 8)));
        assert_eq!(at("/a/9"), Some((2, 8)));
        assert_eq!(at("/a/0/deeper"), Some((2, 9)));
    }

    #[test]
    fn truncated_json_does_not_panic() {
        for cut in 0..TEXT.len() {
            if let Some(part) = TEXT.get(..cut) {
                let _ = locate(part, "/a/1/b~0~1c");
            }
        }
    }
}
