//! `NO_PROXY`: the hosts that are reached without a proxy. The rules follow curl. Three more forms
//! are accepted, which curl ignores: an IPv6 address in brackets, a port, and `*.` before a name.

use hyper::Uri;
use hyper_util::client::proxy::matcher::Matcher;

/// Returns whether a list contains this host and port.
pub(super) fn names(list: &str, host: &str, port: u16) -> bool {
    let entries = list.split(|c: char| c == ',' || c.is_whitespace());
    let entries: Vec<&str> = entries.filter_map(|entry| host_of(entry, port)).collect();
    let Ok(service) = format!("http://{}", host.trim_end_matches('.')).parse::<Uri>() else {
        return false;
    };
    let rules = Matcher::builder().all("http://proxy").no(entries.join(",")).build();
    entries.contains(&"*") || rules.intercept(&service).is_none()
}

/// The host of an entry, in a form that curl reads too. Returns `None` for another port.
fn host_of(entry: &str, port: u16) -> Option<&str> {
    let (host, at) = match entry.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((inside, rest)) => (inside, rest.strip_prefix(':')),
        None => match entry.split_once(':') {
            // More than one colon means an IPv6 address without brackets.
            Some((name, at)) if !at.contains(':') => (name, Some(at)),
            _ => (entry, None),
        },
    };
    let host = host.trim_end_matches('.');
    let host = if host.starts_with("*.") { &host[1..] } else { host };
    at.is_none_or(|at| at.parse() == Ok(port)).then_some(host)
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
