//! Every promise of storage, kept by SQLite.

use std::sync::Arc;
use tandem_store::battery::Fresh;
use tandem_store_sqlite::{Options, SqliteStore};

async fn open() -> Fresh {
    let directory = tempfile::tempdir().expect("there is a temporary directory");
    let store = SqliteStore::open(directory.path().join("tandem.db"), Options::default());
    Fresh {
        store: Arc::new(store.expect("a new database opens")),
        keep: Box::new(directory),
    }
}

tandem_store::battery!(tests open);
