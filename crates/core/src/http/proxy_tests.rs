use std::collections::HashMap;

use super::*;

const SECRET: &str = "hunter2";

fn service(address: &str) -> BaseUrl {
    BaseUrl::parse(address, true).expect("a base URL")
}

fn selected(address: &str, pairs: &[(&str, &str)]) -> Result<Option<Tunnel>> {
    let set: HashMap<&str, &str> = pairs.iter().copied().collect();
    let lookup = |name: &str| set.get(name).map(OsString::from);
    chosen(&service(address), None, &lookup)
}

fn of_https(value: &str) -> Result<Option<Tunnel>> {
    selected("https://customer.example.com", &[("HTTPS_PROXY", value)])
}

fn credentials(tunnel: &Tunnel) -> Option<String> {
    let header = tunnel.authorization()?;
    let header = header.to_str().expect("text");
    let plain = STANDARD.decode(header.strip_prefix("Basic ")?).expect("base64");
    Some(String::from_utf8(plain).expect("text"))
}

#[test]
fn h24_a_proxy_is_named_without_its_password() {
    let base = service("https://customer.example.com");
    for proxy in
        ["http://user:hunter2@proxy.example.com:3128", "user:hunter2@proxy.example.com:3128"]
    {
        let named = for_service(&base, Some(proxy)).expect("an address").expect("a proxy");
        assert_eq!(named.address, "http://proxy.example.com:3128");
        assert!(has_password(proxy));
    }
    assert!(!has_password("http://proxy.example.com:3128"));
    let loopback = service("https://127.0.0.1:1");
    let none = for_service(&loopback, Some("http://proxy.example.com:3128")).expect("none");
    assert!(none.is_none());
}

#[test]
fn an_empty_proxy_setting_is_refused() {
    for proxy in ["", " "] {
        assert_eq!(check(proxy).expect_err(proxy).kind(), Kind::ConfigError);
    }
    assert!(check("http://proxy.example.com:3128").is_ok());
}

#[test]
fn a_tunnel_asks_with_the_user_and_password() {
    let base = service("https://customer.example.com");
    let named = Some("https://user:hunter2@proxy.example.com");
    let tunnel = for_service(&base, named).expect("an address").expect("a proxy");
    assert_eq!((&*tunnel.host_and_port(), tunnel.is_tls()), ("proxy.example.com:443", true));
    assert!(!tunnel.address.contains(SECRET));
    let head = String::from_utf8(tunnel.request("customer.example.com:443")).expect("text");
    assert!(head.starts_with("CONNECT customer.example.com:443 HTTP/1.1\r\nHost: customer."));
    assert!(head.ends_with("\r\nProxy-Authorization: Basic dXNlcjpodW50ZXIy\r\n\r\n"));
    let plain = for_service(&base, Some("http://127.0.0.1:3128")).expect("an address");
    let plain = plain.expect("a proxy");
    assert!(!plain.is_tls() && !plain.request("h:1").windows(5).any(|part| part == b"Proxy"));
}

#[test]
fn a_socks_proxy_has_its_own_port() {
    for (value, address, host_and_port) in [
        ("socks5://p.example", "socks5://p.example", "p.example:1080"),
        ("SOCKS5H://user:a@b@P.Example:9", "socks5h://p.example:9", "p.example:9"),
        ("socks5://[fd00::5]", "socks5://[fd00::5]", "[fd00::5]:1080"),
        ("socks5://p.example:080", "socks5://p.example:80", "p.example:80"),
    ] {
        let tunnel = of_https(value).expect("an address").expect("a proxy");
        assert_eq!((&*tunnel.address, &*tunnel.host_and_port()), (address, host_and_port));
        assert!(tunnel.is_socks() && !tunnel.is_tls());
    }
}

#[test]
fn a_variable_is_read_whole() {
    for (value, address, sent) in [
        ("http://p.example:3128", "http://p.example:3128", None),
        ("\"http://p.example:3128\"", "http://p.example:3128", None),
        ("'http://p.example:3128'", "http://p.example:3128", None),
        (" http://p.example:3128 \r\n", "http://p.example:3128", None),
        ("\u{feff}http://p.example:3128\n", "http://p.example:3128", None),
        ("p.example:3128", "http://p.example:3128", None),
        ("HTTP://P.Example", "http://p.example", None),
        ("http://p.example:3128/", "http://p.example:3128", None),
        ("http://[fd00::5]:3128", "http://[fd00::5]:3128", None),
        ("http://user:p@ss@p.example:1", "http://p.example:1", Some("user:p@ss")),
        ("http://user:p%40ss@p.example:1", "http://p.example:1", Some("user:p@ss")),
        ("http://user:a b@p.example:1", "http://p.example:1", Some("user:a b")),
        ("http://user:a:b@p.example:1", "http://p.example:1", Some("user:a:b")),
        ("http://DOM\\user:pw@p.example:1", "http://p.example:1", Some("DOM\\user:pw")),
        ("DOM\\user:pw@p.example:1", "http://p.example:1", Some("DOM\\user:pw")),
        ("http://DOM%5Cuser:pw@p.example:1", "http://p.example:1", Some("DOM\\user:pw")),
        ("http://user:100%@p.example:1", "http://p.example:1", Some("user:100%")),
        ("http://user:ü€@p.example:1", "http://p.example:1", Some("user:ü€")),
        ("http://user:a://b@p.example:1", "", None),
        ("http://user@p.example:1", "http://p.example:1", Some("user:")),
        ("user:a%3A%2F%2Fb@p.example:1", "http://p.example:1", Some("user:a://b")),
    ] {
        match of_https(value) {
            Ok(tunnel) => {
                let tunnel = tunnel.unwrap_or_else(|| panic!("no proxy for {value:?}"));
                assert_eq!(tunnel.address, address, "{value:?}");
                assert_eq!(credentials(&tunnel).as_deref(), sent, "{value:?}");
            }
            Err(error) => assert!(address.is_empty(), "{value:?}: {error}"),
        }
    }
}

#[test]
fn h24_an_invalid_proxy_is_named_without_its_text() {
    for value in [
        "http:/p.example:3128",
        "htp://p.example:3128",
        "http:p.example:3128",
        "http//p.example:3128",
        "\"http://p.example:3128",
        "http://user:hunter2/x@p.example",
        "http://user:hunter2#x@p.example",
        "http://user:hunter2?x@p.example",
        "user:hunter2/x@p.example",
        "http://user:hunter2@",
        "http://user:hunter2@p.example:port",
        "http://user:hunter2@p.example:0",
        "http://user:hunter2@p.example:",
        "http://user:hunter2@p example",
        "http://user:hun\nter2hunter2@p.example",
        "http://user:hunter2@fd00::5:3128",
        "https://",
        "socks://user:hunter2@p.example:1080",
        "file:///hunter2",
        "http://http://user:hunter2@p.example",
        "http://user:hunter2@:::",
        "ftp://hunter2",
        "socks4://u:hunter2@h.example:1",
        "http://user:hunter2@h.example\\path:1",
        "http://user:hunter2@h.example:99999",
        "h.example:99999",
    ] {
        for error in [of_https(value), for_service(&service("https://h.example"), Some(value))] {
            let error = error.err().unwrap_or_else(|| panic!("{value:?} was accepted"));
            assert_eq!(error.kind(), Kind::ConfigError, "{value:?}");
            assert!(!format!("{error:?}").contains(SECRET), "{value:?}: {error}");
        }
        let error = of_https(value).err().expect("refused");
        assert!(error.to_string().contains("HTTPS_PROXY"), "{value:?}: {error}");
    }
}

#[test]
fn the_variable_is_the_one_that_curl_reads() {
    let https = "https://customer.example.com";
    let plain = "http://customer.example.com";
    let all = [("HTTPS_PROXY", "https.example"), ("ALL_PROXY", "all.example")];
    for (address, pairs, expected) in [
        (https, &all[..], Some("http://https.example")),
        (plain, &all[..], Some("http://all.example")),
        (
            https,
            &[("https_proxy", "low.example"), ("HTTPS_PROXY", "up.example")],
            Some("http://low.example"),
        ),
        (https, &[("https_proxy", " "), ("HTTPS_PROXY", "up.example")], Some("http://up.example")),
        (https, &[("HTTPS_PROXY", "\"\"")], None),
        (https, &[("HTTP_PROXY", "x.example")], None),
        (plain, &[("HTTP_PROXY", "x.example")], Some("http://x.example")),
        (plain, &[("HTTP_PROXY", "x.example"), ("REQUEST_METHOD", "GET")], None),
        (
            plain,
            &[("http_proxy", "x.example"), ("REQUEST_METHOD", "GET")],
            Some("http://x.example"),
        ),
        (https, &[("ALL_PROXY", "x.example"), ("NO_PROXY", "\"example.com\"")], None),
        (https, &[("ALL_PROXY", "x.example"), ("no_proxy", "*.example.com\n")], None),
        (https, &[("ALL_PROXY", "htp://x"), ("NO_PROXY", "customer.example.com:443")], None),
        ("https://[fd00::5]", &[("ALL_PROXY", "x.example"), ("NO_PROXY", "[fd00::5]")], None),
    ] {
        let tunnel = selected(address, pairs).expect("an address");
        let found = tunnel.map(|tunnel| tunnel.address);
        assert_eq!(found.as_deref(), expected, "{address} {pairs:?}");
    }
}
