use proptest::prelude::*;

use super::*;

/// Skips and validates a body, like an ignored member.
fn check(body: &[u8]) -> Result<String> {
    let mut parser = Parser::open(body)?;
    let text = parser.skip_value()?.to_owned();
    parser.finish()?;
    Ok(text)
}

fn kind_of(body: &[u8]) -> Option<Kind> {
    check(body).err().map(|error| error.kind())
}

fn string_of(body: &str) -> String {
    let mut parser = Parser::open(body.as_bytes()).unwrap();
    assert_eq!(parser.peek().unwrap(), ValueKind::Text);
    parser.string().unwrap().into_owned()
}

#[test]
fn e3_e5_j6_what_is_not_one_json_document_is_refused() {
    let utf16: Vec<u8> = "{\"a\":1}".encode_utf16().flat_map(u16::to_le_bytes).collect();
    let big: Vec<u8> = "{\"a\":1}".encode_utf16().flat_map(u16::to_be_bytes).collect();
    let marked = [b"\xFF\xFE".as_slice(), &utf16].concat();
    let lone = [r#""\ud800""#, r#""\udc00""#, r#""\ud800\ud800""#, r#""\ud800x""#, r#""\uD800\n""#];
    let names = lone.map(|text| format!("{{{text}:1}}"));
    let bytes = [b"{\"a\":\"\xFF\"}".as_slice(), b"\"\xED\xA0\x80\"", b"\"\xC0\x80\""];
    for body in
        ["", " \n", "{}{}", "{} }", "{},", "[1,]", "{\"a\":1,}", "{\"a\" 1}", "{a:1}", "[1 2]"]
            .into_iter()
            .chain(["nul!", "nil", "tru1", "'a'", "[01]", "[+1]", "[.5]"])
            .chain(["\"\t\"", "\"\\x\"", "\"\\u12g4\"", &"1".repeat(1_000_000)])
            .chain(lone)
            .chain(names.iter().map(String::as_str))
            .map(str::as_bytes)
            .chain(bytes)
            .chain([&utf16, &big, &marked].map(Vec::as_slice))
    {
        let shown = String::from_utf8_lossy(&body[..body.len().min(20)]);
        assert_eq!(kind_of(body), Some(Kind::ProtocolError), "{shown}");
    }
}

#[test]
fn e3_u0000_and_all_other_escapes_are_kept() {
    assert_eq!(string_of(r#""\ud83d\ude00""#), "😀");
    assert_eq!(string_of(r#""a\u0000b""#), "a\0b");
    assert_eq!(string_of(r#""\"\\\/\b\f\n\r\t\u00e9\uFFFF""#), "\"\\/\u{8}\u{c}\n\r\té\u{FFFF}");
}

#[test]
fn e6_depth_100_works_and_more_than_128_is_refused_without_recursion() {
    let nested = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
    assert!(check(nested(100).as_bytes()).is_ok());
    assert!(check(nested(128).as_bytes()).is_ok());
    for depth in [129, 200, 100_000] {
        assert_eq!(kind_of(nested(depth).as_bytes()), Some(Kind::ProtocolError), "{depth}");
        let objects = format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth));
        assert_eq!(kind_of(objects.as_bytes()), Some(Kind::ProtocolError), "{depth}");
    }
}

#[test]
fn j5_nan_and_infinity_are_named() {
    for word in ["NaN", "Infinity", "-Infinity"] {
        let error = check(format!("[{word}]").as_bytes()).unwrap_err();
        assert_eq!(error.kind(), Kind::ProtocolError);
    }
    assert!(check(b"[NaN]").unwrap_err().to_string().contains("not JSON"));
}

proptest! {
    #[test]
    fn strings_are_read_as_serde_json_reads_them(text in any::<String>()) {
        let written = serde_json::to_string(&text).unwrap();
        prop_assert_eq!(string_of(&written), text);
    }

    #[test]
    fn e5_text_is_accepted_or_refused_as_by_serde_json(text in "[\\[\\]{}\",:0-9eE+.\\-truefalsn\\\\ ]{1,24}") {
        // serde_json refuses numbers out of range of a double; this parser skips them.
        let theirs = serde_json::from_str::<serde_json::Value>(&text);
        let beyond = theirs.as_ref().is_err_and(|error| error.to_string().contains("out of range"));
        if !beyond && !text.trim().is_empty() {
            prop_assert_eq!(check(text.as_bytes()).is_ok(), theirs.is_ok(), "{}", text);
        }
    }
}
