//! `NO_PROXY`: the hosts that are reached without a proxy. The rules follow curl. Three more forms
//! are accepted, which curl ignores: an IPv6 address in brackets, a port, and `*.` before a name.

use std::net::IpAddr;

/// Returns whether a list contains this host and port.
pub(super) fn names(list: &str, host: &str, port: u16) -> bool {
    let host = host.trim_matches(['[', ']']).trim_end_matches('.').to_ascii_lowercase();
    list.split(|c: char| c == ',' || c.is_whitespace())
        .filter(|entry| !entry.is_empty())
        .any(|entry| entry == "*" || is_named(&entry.to_ascii_lowercase(), &host, port))
}

fn is_named(entry: &str, host: &str, port: u16) -> bool {
    let (entry, at) = without_port(entry);
    if at.is_some_and(|at| at != port) {
        return false;
    }
    match host.parse() {
        Ok(address) => is_in_network(entry, address),
        Err(_) => is_in_domain(entry, host),
    }
}

/// Splits an entry into its host, without brackets, and its port.
fn without_port(entry: &str) -> (&str, Option<u16>) {
    if let Some((inside, rest)) = entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        return (inside, rest.strip_prefix(':').and_then(|port| port.parse().ok()));
    }
    match entry.split_once(':') {
        // More than one colon means an IPv6 address without brackets.
        Some((name, port)) if !port.contains(':') => match port.parse() {
            Ok(port) => (name, Some(port)),
            Err(_) => (entry, None),
        },
        _ => (entry, None),
    }
}

/// Returns whether an entry includes a host name. An entry includes its own name and all
/// subdomains, with or without a leading dot. With a leading `*.` it includes only the subdomains.
fn is_in_domain(entry: &str, host: &str) -> bool {
    let entry = entry.trim_end_matches('.');
    if let Some(domain) = entry.strip_prefix("*.") {
        return host.strip_suffix(domain).is_some_and(|before| before.ends_with('.'));
    }
    let domain = entry.strip_prefix('.').unwrap_or(entry);
    let before = host.strip_suffix(domain).filter(|_| !domain.is_empty());
    before.is_some_and(|before| before.is_empty() || before.ends_with('.'))
}

/// Returns whether the entry is this address, or a network that contains it, such as `10.0.0.0/8`.
fn is_in_network(entry: &str, address: IpAddr) -> bool {
    let (network, length) = match entry.split_once('/') {
        Some((network, length)) => (network, length.parse::<u32>().ok()),
        None => (entry, Some(128)),
    };
    let (Ok(network), Some(length)) = (network.parse::<IpAddr>(), length) else { return false };
    // Both families are aligned to the left, so that one shift compares their prefixes.
    let (network, address, bits) = match (network, address) {
        (IpAddr::V4(network), IpAddr::V4(address)) => {
            (u128::from(network.to_bits()) << 96, u128::from(address.to_bits()) << 96, 32)
        }
        (IpAddr::V6(network), IpAddr::V6(address)) => (network.to_bits(), address.to_bits(), 128),
        _ => return false,
    };
    if length > bits && entry.contains('/') {
        return false;
    }
    let differing = network ^ address;
    length == 0 || differing >> (128 - length.min(bits)) == 0
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_proxy_names_hosts_as_curl_reads_it() {
        let v6 = "[fd00::5]";
        for (list, host, expected) in [
            ("*", "a.example", true),
            ("x, *", "a.example", true),
            ("example", "a.example", true),
            (".example", "a.example", true),
            (".example", "example", true),
            ("*.example", "a.example", true),
            ("*.example", "b.a.example", true),
            ("*.example", "aexample", false),
            ("ample", "a.example", false),
            ("A.Example.", "a.example", true),
            ("a.example", "a.example.", true),
            ("x.example a.example", "a.example", true),
            (" a.example ,", "a.example", true),
            ("a.example:443", "a.example", true),
            (".example:443", "a.example", true),
            ("a.example:8080", "a.example", false),
            ("", "a.example", false),
            (",,", "a.example", false),
            (".", "a.example", false),
            ("fd00::5", v6, true),
            ("[fd00::5]", v6, true),
            ("[fd00::5]:443", v6, true),
            ("[fd00::5]:8080", v6, false),
            ("FD00:0::5", v6, true),
            ("fd00::/8", v6, true),
            ("fe00::/8", v6, false),
            ("fd00::6", v6, false),
            ("10.0.0.0/8", "10.1.2.3", true),
            ("10.0.0.0/16", "10.1.2.3", false),
            ("10.1.2.3", "10.1.2.3", true),
            ("10.1.2.3:443", "10.1.2.3", true),
            ("2.3", "10.1.2.3", false),
            ("10.0.0.0/33", "10.0.0.0", false),
            ("10.0.0.0/x", "10.0.0.0", false),
            ("0.0.0.0/0", "10.1.2.3", true),
        ] {
            assert_eq!(names(list, host, 443), expected, "{list:?} {host}");
        }
    }
}
