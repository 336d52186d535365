//! [`State`]: the certificate that was read, and what became of files that have replaced it.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use log::Level;

use super::super::Checked;
use super::loaded::Loaded;
use crate::files::Stamp;
use crate::{Error, Result};

/// Files that cannot be used are tried again after this: a `password_command` may fail for a while.
const AGAIN: SignedDuration = SignedDuration::from_secs(60);

/// What was read, and the state of the files at that time.
#[derive(Default)]
pub(super) struct State {
    pub(super) loaded: Option<Arc<Loaded>>,
    pub(super) files: Option<Files>,
    pub(super) unusable: Option<Unusable>,
    /// What the next request writes to the log.
    pub(super) unlogged: Vec<(Level, String)>,
}

/// Files that have replaced the certificate, and cannot be used.
pub(super) struct Unusable {
    pub(super) why: Error,
    /// When that was found, if a request has found it.
    at: Option<Timestamp>,
}

impl State {
    /// Whether files that cannot be used are to be tried again. `now` is `None` for a getter, which knows
    /// no time.
    pub(super) fn is_due(&self, now: Option<Timestamp>) -> bool {
        let Some(unusable) = &self.unusable else { return false };
        let Some(at) = unusable.at else { return true };
        now.is_some_and(|now| now.duration_since(at).abs() >= AGAIN)
    }

    /// Takes what was read of these files; the former certificate where they cannot be used.
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
        let is_told = self.files.as_ref() == Some(&files)
            && self.unusable.as_ref().is_some_and(|known| known.why.context().message == *text);
        if !is_told {
            let text = format!(
                "the replaced client certificate cannot be used, the former one still is: {text}"
            );
            self.unlogged.push((Level::Warn, text));
        }
        self.unusable = Some(Unusable { why, at: now });
        self.files = Some(files);
    }
}

/// Of the certificate and of the key; `None` for what is no file, or is not there.
pub(super) type Files = [Option<Stamp>; 2];
