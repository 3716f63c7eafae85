//! Checks an export, line by line, without the server that made it.

use super::chain_verifier::ChainVerifier;
use super::export::FORMAT;
use super::hash::Hash;
use super::key::PublicKey;
use super::{AuditHead, Checkpoint};
use serde::Deserialize;
use serde_json::value::RawValue;

/// Summary of a valid export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExportVerification {
    pub entries: u64,
    /// How many of these have only their hash.
    pub withheld: u64,
    pub checkpoints: u64,
    pub key: PublicKey,
}

/// Reads an export. Stops at the first error.
#[derive(Default)]
pub struct ExportVerifier {
    verifier: ChainVerifier,
    /// The trusted key if one was given; else the key in the export.
    key: Option<PublicKey>,
    begun: bool,
    ended: bool,
    withheld: u64,
    checkpoints: u64,
    sealed: u64,
}

#[derive(Deserialize)]
#[serde(rename_all = "lowercase")]
enum Line<'a> {
    Audit(Title),
    #[serde(borrow)]
    Entry(&'a RawValue),
    Withheld(Withheld),
    Checkpoint(Checkpoint),
    End(End),
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Title {
    format: String,
    public_key: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Withheld {
    seq: u64,
    hash: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct End {
    entries: u64,
    hash: Option<String>,
}

#[derive(Deserialize)]
struct Numbered {
    seq: u64,
}

impl ExportVerifier {
    /// Accepts only signatures of `key`, or of the key in the export when `key` is `None`.
    pub fn new(key: Option<PublicKey>) -> Self {
        Self {
            key,
            ..Self::default()
        }
    }

    /// One line, without its line end.
    pub fn line(&mut self, text: &str) -> Result<(), String> {
        if self.ended {
            return Err("something follows after its end".to_owned());
        }
        if !text.starts_with('{') || !text.ends_with('}') {
            return Err("there is a line that is not a JSON object".to_owned());
        }
        let line = serde_json::from_str(text).map_err(|error| {
            let place = self.verifier.next_seq();
            format!("the line at entry {place} cannot be read: {error}")
        })?;
        match line {
            Line::Audit(title) => return self.title(&title),
            _ if !self.begun => return Err("it does not begin like an export".to_owned()),
            Line::Entry(body) => {
                let named: Option<Numbered> = serde_json::from_str(body.get()).ok();
                self.expect(named.map(|named| named.seq))?;
                self.verifier
                    .entry(self.verifier.next_seq(), body.get().as_bytes());
            }
            Line::Withheld(stated) => {
                self.expect(Some(stated.seq))?;
                let hash = Hash::parse(&stated.hash)
                    .ok_or_else(|| format!("entry {} has no readable hash", stated.seq))?;
                self.verifier.withheld(stated.seq, hash);
                self.withheld += 1;
            }
            Line::Checkpoint(checkpoint) => self.checkpoint(&checkpoint)?,
            Line::End(end) => self.end(&end)?,
        }
        match self.verifier.breaks().first() {
            None => Ok(()),
            Some(first) => Err(format!(
                "the chain is broken at entry {}: it carries {:?}, but the entry before it hashes \
                 to {}",
                first.at_seq, first.actual, first.expected
            )),
        }
    }

    fn title(&mut self, title: &Title) -> Result<(), String> {
        if std::mem::replace(&mut self.begun, true) {
            return Err("it begins twice".to_owned());
        }
        if title.format != FORMAT {
            return Err(format!("its format is {:?}, not {FORMAT}", title.format));
        }
        let named = PublicKey::from_spki(&title.public_key)
            .ok_or("it names a public key that cannot be read")?;
        match self.key {
            Some(trusted) if trusted != named => Err("it was signed with another key".to_owned()),
            _ => {
                self.key = Some(named);
                Ok(())
            }
        }
    }

    fn expect(&self, seq: Option<u64>) -> Result<(), String> {
        let next = self.verifier.next_seq();
        match seq {
            Some(seq) if seq == next => Ok(()),
            Some(seq) => Err(format!("entry {seq} stands where entry {next} belongs")),
            None => Err(format!("entry {next} has no number")),
        }
    }

    fn checkpoint(&mut self, checkpoint: &Checkpoint) -> Result<(), String> {
        self.checkpoints += 1;
        let key = self.key.expect("the title names a key");
        // The signature does not cover the id, so the id must be the next in order.
        let counted = checkpoint.id == format!("cp-{}", self.checkpoints);
        if !counted || !self.verifier.checkpoint(checkpoint, key) {
            return Err(format!(
                "checkpoint {} does not seal the entries before it",
                checkpoint.id
            ));
        }
        self.sealed = checkpoint.at_sequence;
        Ok(())
    }

    fn end(&mut self, end: &End) -> Result<(), String> {
        self.ended = true;
        let stated = end.hash.as_deref().and_then(Hash::parse);
        let stated = stated.map(|hash| AuditHead {
            seq: end.entries,
            hash,
        });
        let empty = end.entries == 0 && end.hash.is_none();
        if stated != self.verifier.last() || (stated.is_none() && !empty) {
            return Err("it does not end where it says it does".to_owned());
        }
        Ok(())
    }

    /// Call after the last line.
    pub fn finish(self) -> Result<ExportVerification, String> {
        let key = self.key.filter(|_| self.begun).ok_or("it is empty")?;
        if !self.ended {
            return Err("it was cut off".to_owned());
        }
        let (entries, sealed) = (self.verifier.next_seq() - 1, self.sealed);
        // An export must be sealed up to its end: entries after the last signature can be forged.
        if sealed < entries {
            return Err(format!("no signature covers its entries after {sealed}"));
        }
        Ok(ExportVerification {
            entries,
            withheld: self.withheld,
            checkpoints: self.checkpoints,
            key,
        })
    }
}
