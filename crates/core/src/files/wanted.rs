//! What a user wants to do with a path.

/// What a user wants to do with a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Use {
    Read,
    Write,
    /// To make and remove files in a folder.
    Change,
}
