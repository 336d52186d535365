//! A process with a key leaves none on a disk when it crashes.

/// No core dump of this process is written, and no other process of its user reads its memory. Commands
/// that it starts are as before. Where the system has no such setting, nothing changes.
pub fn forbid_core_dumps() {
    #[cfg(target_os = "linux")]
    if let Err(error) = nix::sys::prctl::set_dumpable(false) {
        log::warn!(target: "siteline::token", "core dumps of this process cannot be forbidden: {error}");
    }
}
