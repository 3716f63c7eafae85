//! The bytes of recordings and files of sessions (ADR 0023).
//!
//! Each is a stream with one event that nothing folds: it is written with the commit that names it or before it,
//! never changed, and purged with its session.

use super::settings::Conversations;
use crate::runtime::Runtime;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::{Deserialize, Serialize};
use std::fmt;
use tandem_record::conversation::MediaRef;
use tandem_record::{MediaId, SessionId, StreamId, TenantId, Timestamp};
use tandem_store::{Append, Commit, Error, Fault, NewEvent, PageLimit};

/// Bytes of one recording or file.
pub const MAX_MEDIA_BYTES: usize = 2 * 1024 * 1024;
/// Bytes of all of a session. What comes after is not kept.
const MAX_SESSION_BYTES: u64 = 32 * 1024 * 1024;
const MAX_TYPE_CHARS: usize = 100;

/// A recording or file.
#[derive(Clone, PartialEq, Eq)]
pub struct MediaContent {
    pub content_type: String,
    pub bytes: Vec<u8>,
}

impl fmt::Debug for MediaContent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (kind, bytes) = (&self.content_type, self.bytes.len());
        write!(f, "MediaContent({kind}, {bytes} bytes)")
    }
}

/// As it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct StoredMedia {
    content_type: String,
    /// In base64.
    data: String,
}

impl MediaContent {
    /// Of a message; `Err` says what is wrong with it.
    pub fn from_base64(content_type: &str, data: &str) -> Result<Self, String> {
        let is_plain = |c: char| c.is_ascii_alphanumeric() || "/+.-_;= ".contains(c);
        let fits = content_type.contains('/')
            && content_type.chars().count() <= MAX_TYPE_CHARS
            && content_type.chars().all(is_plain);
        if !fits {
            return Err("needs a contentType such as audio/ogg".to_owned());
        }
        let bytes = STANDARD.decode(data);
        let bytes = bytes.map_err(|_| "has data that is not base64".to_owned())?;
        if bytes.is_empty() || bytes.len() > MAX_MEDIA_BYTES {
            return Err(format!("must have 1 to {MAX_MEDIA_BYTES} bytes"));
        }
        Ok(Self {
            content_type: content_type.to_owned(),
            bytes,
        })
    }

    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.bytes)
    }

    pub fn is_audio(&self) -> bool {
        self.content_type.starts_with("audio/")
    }

    pub fn named(&self, id: MediaId) -> MediaRef {
        MediaRef {
            id,
            content_type: self.content_type.clone(),
            bytes: self.bytes.len() as u64,
        }
    }

    /// Whether a session with so many bytes may keep it.
    pub(super) fn fits_beside(&self, media_bytes: u64) -> bool {
        media_bytes.saturating_add(self.bytes.len() as u64) <= MAX_SESSION_BYTES
    }

    pub(super) fn append(&self, session: &SessionId, id: &MediaId, at: Timestamp) -> Append {
        let stored = StoredMedia {
            content_type: self.content_type.clone(),
            data: self.to_base64(),
        };
        Append {
            stream: StreamId::of_media(session, id),
            after: None,
            events: vec![NewEvent {
                at,
                body: serde_json::to_string(&stored).expect("it is plain data"),
            }],
            run: None,
            snapshot: None,
        }
    }
}

impl Runtime {
    /// A recording or file of a session; `None` if it was not kept, or is purged.
    pub async fn read_media(
        &self,
        session: &SessionId,
        id: &MediaId,
    ) -> Result<Option<MediaContent>, Fault> {
        const ONE: PageLimit = PageLimit {
            events: 1,
            bytes: 4 * MAX_MEDIA_BYTES,
        };
        let stream = StreamId::of_media(session, id);
        let page = self.store().event_page(&stream, None, ONE).await?;
        let Some(stored) = page.events.first() else {
            return Ok(None);
        };
        let corrupt = |why: String| Fault::permanent("corrupt", format!("{stream}: {why}"));
        let read = serde_json::from_str::<StoredMedia>(&stored.body);
        let read = read.map_err(|error| corrupt(error.to_string()))?;
        let bytes = STANDARD.decode(read.data);
        Ok(Some(MediaContent {
            content_type: read.content_type,
            bytes: bytes.map_err(|error| corrupt(error.to_string()))?,
        }))
    }

    /// Stores what was made for a session. What is stored under the id already stays.
    pub(super) async fn store_media(
        &self,
        tenant: &TenantId,
        session: &SessionId,
        id: &MediaId,
        content: &MediaContent,
    ) -> Result<(), Fault> {
        let commit = Commit {
            tenant: Some(tenant.clone()),
            appends: vec![content.append(session, id, self.clock().now())],
            ..Commit::default()
        };
        match self.store().commit(commit).await {
            Ok(_) | Err(Error::Conflict(_)) => Ok(()),
            Err(Error::Fault(fault)) => Err(fault),
        }
    }

    /// How many bytes of recordings and files a session has.
    pub(super) async fn media_bytes_of(
        &self,
        conversations: &Conversations,
        session: &SessionId,
    ) -> Result<u64, Fault> {
        let stream = StreamId::of_session(session);
        let machine = self.read_machine(&conversations.sessions, &stream).await?;
        let session = machine.as_ref().and_then(|machine| machine.session());
        Ok(session.map_or(0, |session| session.media_bytes()))
    }
}
