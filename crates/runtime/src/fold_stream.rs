//! Folds a stream of the store into its machine, from the snapshot if there is a usable one.

use crate::codec;
use crate::driven_machine::DrivenMachine;
use crate::offload::in_place;
use crate::runtime::Runtime;
use tandem_record::{Seq, StreamId};
use tandem_store::{Fault, PageLimit, SnapshotQuery};

/// Page size for reading the log while folding.
pub(crate) const FOLD_PAGE: PageLimit = PageLimit {
    events: 1024,
    bytes: 1024 * 1024,
};

/// A machine as folded from the store.
pub struct FoldedStream<M> {
    pub machine: M,
    /// Sequence of the snapshot it was folded from.
    pub(crate) snapshot_at: Option<Seq>,
}

impl Runtime {
    /// Folds up to and including `last`, or to the end. `fresh` is the machine before its first
    /// event; `restore` gives the one of a snapshot.
    pub async fn fold_stream<M: DrivenMachine>(
        &self,
        stream: &StreamId,
        fresh: M,
        restore: impl FnOnce(M::Snapshot) -> Option<M>,
        last: Option<Seq>,
    ) -> Result<FoldedStream<M>, Fault> {
        let is_usable = |seq| last.is_none_or(|last| seq <= last);
        let wanted = SnapshotQuery {
            format: M::SNAPSHOT_FORMAT,
            up_to: last,
        };
        let start = self.store().fold_start(stream, wanted, FOLD_PAGE).await?;
        let is_from_start = start.snapshot.is_none();
        let restored = start.snapshot.and_then(|s| {
            in_place(s.body.len(), || {
                let snapshot: M::Snapshot = serde_json::from_str(&s.body).ok()?;
                Some((restore(snapshot)?, s.seq))
            })
        });
        // Without its snapshot the page is of no use.
        let mut first_page = (is_from_start || restored.is_some()).then_some(start.slice);
        let (mut machine, snapshot_at) = match restored {
            Some((machine, at)) => (machine, Some(at)),
            None => (fresh, None),
        };
        loop {
            let page = match first_page.take() {
                Some(page) => page,
                None => {
                    let after = machine.head();
                    self.store().event_page(stream, after, FOLD_PAGE).await?
                }
            };
            let bytes = page.events.iter().map(|e| e.body.len()).sum();
            in_place(bytes, || {
                for stored in page.events.iter().take_while(|e| is_usable(e.seq)) {
                    machine.evolve(&codec::decode(stored)?);
                }
                Ok::<_, Fault>(())
            })?;
            let past = page.events.last().is_some_and(|e| !is_usable(e.seq.next()));
            if past || page.events.is_empty() || machine.head() >= page.head {
                return Ok(FoldedStream {
                    machine,
                    snapshot_at,
                });
            }
        }
    }
}
