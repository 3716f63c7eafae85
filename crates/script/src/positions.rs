//! Byte offsets of a text to lines and columns, which count from 1.

pub(crate) struct Positions {
    line_starts: Vec<usize>,
}

impl Positions {
    pub(crate) fn of(text: &str) -> Self {
        let ends = text.match_indices('\n').map(|(at, _)| at + 1);
        Self {
            line_starts: std::iter::once(0).chain(ends).collect(),
        }
    }

    pub(crate) fn at(&self, offset: usize) -> (u32, u32) {
        let line = self.line_starts.partition_point(|start| *start <= offset);
        let column = offset - self.line_starts[line - 1] + 1;
        (line as u32, column as u32)
    }
}
