//! [`PageSizes`]: the page size of reads that state none.
//!
//! The range of `pageSize` is not documented (§8). The automatic size is sent until the service has
//! refused it and accepted the same request without it. That is remembered for 30 days, in a file
//! next to the ledger. Without the file two requests are lost, so its faults are not errors.

use std::path::PathBuf;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard};
use tokio::time::timeout;

use super::settings::ClientSettings;
use crate::error::{Error, Kind};
use crate::files;
use crate::lock::Mutex;

const MEMORY: SignedDuration = SignedDuration::from_hours(30 * 24);
/// How far a clock that was set back may be behind the one that wrote the file.
const AHEAD: SignedDuration = SignedDuration::from_hours(24);
/// How long a request waits for the one that decides.
const PATIENCE: Duration = Duration::from_secs(5);
const LONGEST: u64 = 200;

#[derive(Debug)]
pub(super) struct PageSizes {
    automatic: Option<u32>,
    file: Option<PathBuf>,
    known: Mutex<Known>,
    /// Locked by the request that decides.
    deciding: AsyncMutex<()>,
}

#[derive(Debug, Clone, Copy)]
enum Known {
    /// The file was not read.
    Unread,
    Nothing,
    Accepted,
    Refused(Timestamp),
}

impl PageSizes {
    pub(super) fn new(settings: &ClientSettings) -> Self {
        let ledger = settings.ledger_file.as_ref().or(settings.unused_ledger_file.as_ref());
        let file = ledger.map(|ledger| files::beside(ledger, ".page-size"));
        Self {
            automatic: settings.page_size,
            file,
            known: Mutex::new(Known::Unread),
            deciding: AsyncMutex::default(),
        }
    }

    /// Waits for the request that decides, so that only one of several is refused. The wait is short,
    /// because that request may belong to a caller that waits for this one.
    pub(super) async fn turn(&self) -> Option<MutexGuard<'_, ()>> {
        if self.is_decided() {
            return None;
        }
        timeout(PATIENCE, self.deciding.lock()).await.ok()
    }

    /// Whether the size may be the cause of a refusal, which it is not after the first success.
    /// Status codes are not documented (§7); these are for requests with a wrong parameter.
    pub(super) fn may_blame(&self, error: &Error) -> bool {
        !self.is_decided()
            && error.kind() == Kind::RequestRejected
            && matches!(error.context().status, Some(400 | 413 | 416 | 422))
    }

    fn is_decided(&self) -> bool {
        self.automatic.is_none() || matches!(*self.known.lock(), Known::Accepted)
    }

    /// The size to send; `None` if the service has refused it within the last 30 days.
    pub(super) fn automatic(&self, now: Timestamp) -> Option<u32> {
        let mut known = self.known.lock();
        if matches!(*known, Known::Unread) {
            *known = self.read().map_or(Known::Nothing, Known::Refused);
        }
        let is_refused = matches!(*known, Known::Refused(at)
            if (-AHEAD..MEMORY).contains(&now.duration_since(at)));
        self.automatic.filter(|_| !is_refused)
    }

    pub(super) fn accepted(&self) {
        *self.known.lock() = Known::Accepted;
    }

    pub(super) fn refused(&self, now: Timestamp) {
        *self.known.lock() = Known::Refused(now);
        let Some((file, size)) = self.file.as_ref().zip(self.automatic) else { return };
        log::info!(
            target: "siteline::data",
            "the service refuses pageSize={size}: none is sent for 30 days"
        );
        let text = format!("refused {size} {}\n", now.as_second());
        // If several processes write the file, the last one wins.
        let written = files::create_folder(files::folder_of(file))
            .and_then(|()| files::write_whole(file, text.as_bytes(), true));
        if let Err(error) = written {
            log::info!(
                target: "siteline::data",
                "{} cannot be written ({error}): the next client asks again", file.display()
            );
        }
    }

    /// The time of the refusal in the file. Opening a pipe or a device could wait.
    fn read(&self) -> Option<Timestamp> {
        let file = self.file.as_ref().filter(|file| file.is_file())?;
        let bytes = files::read_whole(file, LONGEST).ok()?;
        let text = std::str::from_utf8(&bytes).ok()?;
        let second =
            text.strip_prefix(&format!("refused {} ", self.automatic?))?.strip_suffix('\n');
        Timestamp::from_second(second?.parse().ok()?).ok()
    }
}
