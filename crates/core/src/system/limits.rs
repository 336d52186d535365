//! The limits of this process on open files, processes and threads.

#[cfg(unix)]
use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};

/// Returns the maximum number of open files of this process, or `None` if there is no limit.
pub(super) fn open_files() -> Option<u64> {
    #[cfg(unix)]
    return limit(Resource::RLIMIT_NOFILE);
    #[cfg(not(unix))]
    None
}

/// Returns the maximum number of processes and threads of this user, or `None` for root. nix does
/// not read it on macOS.
pub(super) fn threads_of_user() -> Option<u64> {
    #[cfg(all(unix, not(target_vendor = "apple")))]
    return limit(Resource::RLIMIT_NPROC).filter(|_| !nix::unistd::Uid::current().is_root());
    #[cfg(any(not(unix), target_vendor = "apple"))]
    None
}

#[cfg(unix)]
fn limit(resource: Resource) -> Option<u64> {
    let (most, _) = getrlimit(resource).ok()?;
    (most != RLIM_INFINITY).then_some(most)
}

/// Returns the maximum number of processes and threads in this container or systemd unit.
#[cfg(target_os = "linux")]
pub(super) fn threads_of_container() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let limit = |group: &str| {
        let path = match group.split_once("::") {
            Some((_, path)) => format!("/sys/fs/cgroup{path}/pids.max"),
            None => format!("/sys/fs/cgroup/pids{}/pids.max", group.split_once(":pids:")?.1),
        };
        std::fs::read_to_string(path).ok()?.trim().parse().ok()
    };
    groups.lines().find_map(limit)
}

#[cfg(not(target_os = "linux"))]
pub(super) fn threads_of_container() -> Option<u64> {
    None
}
