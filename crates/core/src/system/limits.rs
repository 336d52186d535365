//! The limits of this process on open files, processes and threads.

/// Returns the maximum number of open files of this process, or `None` if there is no limit.
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

/// Returns the maximum number of processes and threads of this user, or `None` if there is no
/// limit, as for root.
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

/// Returns the maximum number of processes and threads in this process's container or systemd unit,
/// or `None` if there is no limit.
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
