//! Large texts are stored compressed (zstd), in the column `compressed`; the text column is empty then.
//!
//! A caller compresses its commit before it is queued, so that the writer thread, which all callers
//! share, moves fewer bytes through the WAL. See ADR 0019.

use rusqlite::types::{FromSql, FromSqlError, FromSqlResult, ValueRef};
use std::borrow::Cow;
use std::collections::HashMap;
use tandem_store::Append;

/// Texts up to this size are stored uncompressed: they fit into a few pages.
const MIN_BYTES: usize = 16 * 1024;

/// The fastest level. Most of the gain comes from repeated text, which every level finds.
const LEVEL: i32 = 1;

/// The large texts of a commit, compressed. A text that does not shrink is not included.
#[derive(Default)]
pub(crate) struct CompressedTexts {
    events: HashMap<(usize, usize), Vec<u8>>,
    snapshots: HashMap<usize, Vec<u8>>,
    saved_bytes: usize,
}

impl CompressedTexts {
    pub(crate) fn of(appends: &[Append]) -> Self {
        let mut texts = Self::default();
        for (append_index, append) in appends.iter().enumerate() {
            for (event_index, event) in append.events.iter().enumerate() {
                if let Some(compressed) = texts.compress(&event.body) {
                    texts.events.insert((append_index, event_index), compressed);
                }
            }
            let snapshot = append.snapshot.as_ref();
            if let Some(compressed) = snapshot.and_then(|s| texts.compress(&s.body)) {
                texts.snapshots.insert(append_index, compressed);
            }
        }
        texts
    }

    fn compress(&mut self, text: &str) -> Option<Vec<u8>> {
        if text.len() <= MIN_BYTES {
            return None;
        }
        // A failure only costs space.
        let compressed = zstd::bulk::compress(text.as_bytes(), LEVEL).ok()?;
        let saved = text.len().checked_sub(compressed.len())?;
        self.saved_bytes += saved;
        Some(compressed)
    }

    pub(crate) fn event(&self, append: usize, event: usize) -> Option<&[u8]> {
        self.events.get(&(append, event)).map(Vec::as_slice)
    }

    pub(crate) fn snapshot(&self, append: usize) -> Option<&[u8]> {
        self.snapshots.get(&append).map(Vec::as_slice)
    }

    /// Bytes saved for the writer.
    pub(crate) fn saved_bytes(&self) -> usize {
        self.saved_bytes
    }
}

/// A stored text, read as `coalesce(compressed, text)`.
pub(crate) fn text(stored: ValueRef<'_>) -> FromSqlResult<Cow<'_, str>> {
    match stored {
        ValueRef::Blob(compressed) => {
            let plain = zstd::decode_all(compressed)
                .map_err(|error| FromSqlError::Other(Box::new(error)))?;
            let text =
                String::from_utf8(plain).map_err(|error| FromSqlError::Other(Box::new(error)))?;
            Ok(Cow::Owned(text))
        }
        plain => plain.as_str().map(Cow::Borrowed),
    }
}

/// A stored text, for `row.get`.
pub(crate) struct StoredText(pub(crate) String);

impl FromSql for StoredText {
    fn column_result(value: ValueRef<'_>) -> FromSqlResult<Self> {
        text(value).map(|text| Self(text.into_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tandem_record::{Seq, StreamId, Timestamp};
    use tandem_store::{NewEvent, SnapshotRecord};

    fn append(bodies: &[String], snapshot: Option<String>) -> Append {
        let event = |body: &String| NewEvent {
            at: Timestamp(1),
            body: body.clone(),
        };
        Append {
            stream: StreamId::from("s"),
            after: None,
            events: bodies.iter().map(event).collect(),
            run: None,
            snapshot: snapshot.map(|body| SnapshotRecord {
                seq: Seq(0),
                format: 1,
                body,
            }),
        }
    }

    #[test]
    fn large_texts_are_compressed_and_read_back() {
        let large = format!("\"{}\"", "text ".repeat(20_000));
        let small = "{}".to_owned();
        let texts = CompressedTexts::of(&[append(&[small, large.clone()], Some(large.clone()))]);
        assert!(texts.event(0, 0).is_none());
        let stored = texts.event(0, 1).expect("large");
        assert!(stored.len() < large.len() / 10);
        assert_eq!(text(ValueRef::Blob(stored)).expect("readable"), large);
        let snapshot = texts.snapshot(0).expect("large");
        assert_eq!(text(ValueRef::Blob(snapshot)).expect("readable"), large);
        assert!(texts.saved_bytes() > large.len());
    }

    #[test]
    fn damaged_blob_is_an_error() {
        assert!(text(ValueRef::Blob(b"not zstd")).is_err());
    }
}
