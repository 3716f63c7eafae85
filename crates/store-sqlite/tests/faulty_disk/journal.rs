//! The journal of `disk.c`, and the disk contents that may result from it.

use std::collections::BTreeMap;
use std::path::Path;

/// After a power failure, parts of a write are whole sectors.
const SECTOR: usize = 512;

/// A small generator, so that a seed gives the same values everywhere.
pub(crate) struct Rng(pub(crate) u64);

impl Rng {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut x = self.0;
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^ (x >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end.max(1) as u64).expect("smaller than its bound")
    }
}

struct Record {
    kind: u8,
    name: String,
    offset: usize,
    bytes: Vec<u8>,
}

pub(crate) struct Journal(Vec<Record>);

/// A change that was not synced.
enum Change<'a> {
    Write(usize, &'a [u8]),
    Truncate(usize),
}

#[derive(Default)]
struct File<'a> {
    durable: Vec<u8>,
    pending: Vec<Change<'a>>,
}

impl Journal {
    pub(crate) fn read(path: &Path) -> Self {
        let bytes = std::fs::read(path).unwrap();
        let mut rest = bytes.as_slice();
        let mut take = |length: usize| {
            let (taken, left) = rest.split_at_checked(length)?;
            rest = left;
            Some(taken)
        };
        let mut records = Vec::new();
        while let Some([kind]) = take(1) {
            let mut number = || {
                let bytes = take(8).expect("a whole record").try_into();
                u64::from_le_bytes(bytes.expect("eight bytes")) as usize
            };
            let length = number();
            let name = String::from_utf8(take(length).expect("a name").to_vec()).unwrap();
            let mut number = || {
                let bytes = take(8).expect("a whole record").try_into();
                u64::from_le_bytes(bytes.expect("eight bytes")) as usize
            };
            let (offset, length) = (number(), number());
            records.push(Record {
                kind: *kind,
                name,
                offset,
                bytes: take(length).expect("its bytes").to_vec(),
            });
        }
        Self(records)
    }

    /// The journal as if no sync had any effect.
    pub(crate) fn without_syncs(mut self) -> Self {
        self.0.retain(|record| record.kind != b'S');
        self
    }

    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Places of the syncs, the failed ones too.
    pub(crate) fn syncs(&self) -> Vec<usize> {
        let is_sync = |place: &usize| matches!(self.0[*place].kind, b'S' | b'F');
        (0..self.0.len()).filter(is_sync).collect()
    }

    /// How many commits were acknowledged in the first `cut` records.
    pub(crate) fn acknowledged(&self, cut: usize) -> u64 {
        let acknowledgements = self.0[..cut].iter().filter(|r| r.name == "acknowledged");
        let acknowledgements = acknowledgements.filter_map(|record| {
            let bytes = record.bytes.as_slice().try_into().ok()?;
            Some(u64::from_le_bytes(bytes) + 1)
        });
        acknowledgements.max().unwrap_or(0)
    }

    /// Builds the disk after a power failure behind `cut` records, and returns how many commits had
    /// been acknowledged by then.
    pub(crate) fn write_disk_after_power_cut(&self, cut: usize, rng: &mut Rng, into: &Path) -> u64 {
        let mut files: BTreeMap<String, File<'_>> = BTreeMap::new();
        // A permanently broken disk stores nothing of a failed sync. Retried often enough, a disk
        // that stores some of it has all of it in the end.
        let takes_nothing = rng.below(2) == 0;
        for record in &self.0[..cut] {
            let name = record.name.clone();
            match record.kind {
                b'W' => {
                    let write = Change::Write(record.offset, &record.bytes);
                    files.entry(name).or_default().pending.push(write);
                }
                b'T' => {
                    let truncate = Change::Truncate(record.offset);
                    files.entry(name).or_default().pending.push(truncate);
                }
                b'S' => files.entry(name).or_default().sync(),
                // Changes of a failed sync are on the disk or lost permanently.
                b'F' if takes_nothing => files.entry(name).or_default().pending.clear(),
                b'F' => files.entry(name).or_default().lose_some(rng),
                b'U' => drop(files.remove(&name)),
                b'R' => {
                    let to = String::from_utf8(record.bytes.clone()).unwrap();
                    let file = files.remove(&name).unwrap_or_default();
                    files.insert(to, file);
                }
                kind => panic!("no such record: {kind}"),
            }
        }
        std::fs::create_dir(into).unwrap();
        for (name, mut file) in files {
            file.lose_some(rng);
            std::fs::write(into.join(name), file.durable).unwrap();
        }
        self.acknowledged(cut)
    }
}

impl File<'_> {
    fn sync(&mut self) {
        for change in std::mem::take(&mut self.pending) {
            match change {
                Change::Write(offset, bytes) => self.put(offset, bytes),
                Change::Truncate(length) => self.durable.resize(length, 0),
            }
        }
    }

    /// Each change reaches the disk, or does not, or does in part; in any order.
    fn lose_some(&mut self, rng: &mut Rng) {
        for change in std::mem::take(&mut self.pending) {
            match (change, rng.below(3)) {
                (_, 0) => {}
                (Change::Write(offset, bytes), 1) => self.put(offset, bytes),
                (Change::Write(offset, bytes), _) => {
                    for (at, sector) in bytes.chunks(SECTOR).enumerate() {
                        if rng.below(2) == 0 {
                            self.put(offset + at * SECTOR, sector);
                        }
                    }
                }
                (Change::Truncate(length), _) => self.durable.resize(length, 0),
            }
        }
    }

    fn put(&mut self, offset: usize, bytes: &[u8]) {
        let end = offset + bytes.len();
        if self.durable.len() < end {
            self.durable.resize(end, 0);
        }
        self.durable[offset..end].copy_from_slice(bytes);
    }
}
