//! [`Whole`]: the whole of a scan, read once and remembered, however many ask for it.

use std::sync::{Arc, Mutex, PoisonError};

use super::scan::{ReadFailure, Scan, Table};

/// The whole of a scan. Those who ask while it is being read wait for that read; a failure is not
/// remembered.
#[derive(Debug)]
pub struct Whole {
    scan: Scan,
    slot: Mutex<Slot>,
}

/// Held over a read; one for each process, because a fork may leave it locked for ever.
#[derive(Debug)]
struct Slot {
    process: u32,
    table: Arc<tokio::sync::Mutex<Option<Arc<Table>>>>,
}

impl Whole {
    /// Nothing is read yet.
    #[must_use]
    pub fn new(scan: Scan) -> Self {
        let slot = Slot { process: std::process::id(), table: Arc::default() };
        Self { scan, slot: Mutex::new(slot) }
    }

    /// The scan whose whole it is.
    #[must_use]
    pub fn scan(&self) -> &Scan {
        &self.scan
    }

    /// The whole, merged: read now, or remembered.
    ///
    /// # Errors
    /// As [`Scan::collect`].
    pub async fn table(&self) -> Result<Arc<Table>, ReadFailure> {
        let slot = self.slot();
        let mut table = slot.lock().await;
        if let Some(table) = &*table {
            return Ok(Arc::clone(table));
        }
        let read = Arc::new(self.scan.collect().await?);
        *table = Some(Arc::clone(&read));
        Ok(read)
    }

    fn slot(&self) -> Arc<tokio::sync::Mutex<Option<Arc<Table>>>> {
        let process = std::process::id();
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        if slot.process != process {
            // What the parent had read is there; what it was reading, it reads for itself.
            let known = slot.table.try_lock().ok().and_then(|table| table.clone());
            *slot = Slot { process, table: Arc::new(tokio::sync::Mutex::new(known)) };
        }
        Arc::clone(&slot.table)
    }
}

#[cfg(test)]
impl Whole {
    /// What a fork leaves: a lock that may be held for ever, and another process number.
    pub(super) fn inherit(&self) -> Arc<tokio::sync::Mutex<Option<Arc<Table>>>> {
        let mut slot = self.slot.lock().unwrap_or_else(PoisonError::into_inner);
        slot.process = 0;
        Arc::clone(&slot.table)
    }
}
