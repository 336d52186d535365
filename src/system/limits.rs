//! The limits of this process: open files, and processes and threads.

/// How many files this process may have open; `None` without a limit.
#[cfg(unix)]
pub(super) fn open_files() -> Option<u64> {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    let (most, _) = getrlimit(Resource::RLIMIT_NOFILE).ok()?;
    (most != RLIM_INFINITY).then_some(most)
}

#[cfg(not(unix))]
pub(super) fn open_files() -> Option<u64> {
    None
}

/// How many processes and threads this user may have; `None` without a limit, as for root.
#[cfg(unix)]
pub(super) fn threads_of_user() -> Option<u64> {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    let (most, _) = getrlimit(Resource::RLIMIT_NPROC).ok()?;
    (most != RLIM_INFINITY && !nix::unistd::Uid::current().is_root()).then_some(most)
}

#[cfg(not(unix))]
pub(super) fn threads_of_user() -> Option<u64> {
    None
}

/// How many processes and threads the container, or the systemd unit, of this process may have; `None`
/// without a limit.
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
