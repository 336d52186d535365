//! [`CertificateState`]: the certificate in memory, and the state of its files.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use log::Level;

use super::super::Checked;
use super::loaded::Loaded;
use crate::files::Stamp;
use crate::{Error, Result};

/// The pause before unusable files are retried. A `password_command` may fail for a while.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// The certificate in memory, and the state of its files when it was read.
#[derive(Default)]
pub(super) struct CertificateState {
    pub(super) loaded: Option<Arc<Loaded>>,
    pub(super) files: Option<Files>,
    pub(super) unusable: Option<Unusable>,
    /// Records that the next request logs.
    pub(super) unlogged: Vec<(Level, String)>,
}

/// Files that replaced the certificate and are unusable.
pub(super) struct Unusable {
    pub(super) why: Error,
    /// When a request found that.
    at: Option<Timestamp>,
}

impl CertificateState {
    /// Whether unusable files are due for a retry. A getter has no time and passes `None`.
    pub(super) fn is_due(&self, now: Option<Timestamp>) -> bool {
        let Some(unusable) = &self.unusable else { return false };
        let Some(at) = unusable.at else { return true };
        now.is_some_and(|now| now.duration_since(at).abs() >= AGAIN)
    }

    /// Records the result of reading the files. Keeps the previous certificate if they are
    /// unusable.
    pub(super) fn settle(
        &mut self,
        files: Files,
        read: Result<Checked<Loaded>>,
        now: Option<Timestamp>,
    ) -> Result<Arc<Loaded>> {
        let former = self.loaded.clone();
        match (read, former) {
            (Ok(Checked { value, warnings }), former) => {
                let loaded = Arc::new(value);
                self.unlogged.extend(warnings.into_iter().map(|text| (Level::Warn, text)));
                if former.is_some_and(|former| !former.certificate.is_same(&loaded.certificate)) {
                    let (thumbprint, ends) = (loaded.certificate.thumbprint(), loaded.not_after);
                    let text = format!(
                        "the client certificate was replaced: {thumbprint}, valid until {ends}"
                    );
                    self.unlogged.push((Level::Info, text));
                }
                (self.loaded, self.unusable) = (Some(Arc::clone(&loaded)), None);
                self.files = Some(files);
                Ok(loaded)
            }
            (Err(why), Some(former)) => {
                self.refuse(files, why, now);
                Ok(former)
            }
            (Err(error), None) => Err(error),
        }
    }

    fn refuse(&mut self, files: Files, why: Error, now: Option<Timestamp>) {
        let text = &why.context().message;
        let is_logged = self.files.as_ref() == Some(&files)
            && self.unusable.as_ref().is_some_and(|last| last.why.context().message == *text);
        if !is_logged {
            let text = format!(
                "the replaced client certificate is unusable, so the previous one is used: {text}"
            );
            self.unlogged.push((Level::Warn, text));
        }
        self.unusable = Some(Unusable { why, at: now });
        self.files = Some(files);
    }
}

/// The certificate and the key; `None` for a part that is not a file or does not exist.
pub(super) type Files = [Option<Stamp>; 2];
