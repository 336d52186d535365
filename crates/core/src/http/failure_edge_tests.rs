//! Error messages for lost connections, failed handshakes and faulty certificates.

use rustls::Error as Tls;
use rustls::pki_types::ServerName;

use super::*;

#[test]
fn h1_h5_an_error_says_how_its_connection_ended() {
    use io::ErrorKind as Ended;
    for (kind, expected) in [
        (Ended::ConnectionRefused, "connection refused"),
        (Ended::ConnectionReset, "connection reset"),
        (Ended::ConnectionAborted, "connection aborted"),
        (Ended::BrokenPipe, "connection closed"),
        (Ended::UnexpectedEof, "connection closed in the middle"),
        (Ended::NetworkUnreachable, "no route to it"),
        (Ended::HostUnreachable, "no route to it"),
        (Ended::TimedOut, "the connection timed out"),
        (Ended::InvalidData, "connection lost"),
    ] {
        let error = io::Error::from(kind);
        assert_eq!(how(&causes(&error)), expected);
        // The same below a less specific error of the library.
        let error = io::Error::other(io::Error::from(kind));
        assert_eq!(how(&causes(&error)), expected);
    }
}

fn message(error: &Tls) -> String {
    from_tls(error, "customer.example.com:443", &Presenter::new(None)).context().message.clone()
}

#[test]
fn h20_a_certificate_for_another_name_is_told_with_its_first_names() {
    for (names, expected) in [
        (vec!["a.example"], ": a.example"),
        (vec!["a.example", "b.example", "c.example"], ": a.example, b.example, c.example"),
        (
            vec!["a.example", "b.example", "c.example", "d.example"],
            ": a.example, b.example, c.example, …",
        ),
        (vec!["a\u{1b}[31m"], ": a\\x1b[31m"),
    ] {
        let problem = CertificateError::NotValidForNameContext {
            expected: ServerName::try_from("customer.example.com").expect("a name"),
            presented: names.into_iter().map(str::to_owned).collect(),
        };
        let text = message(&Tls::InvalidCertificate(problem));
        assert!(text.ends_with(&format!("for another host name{expected}")), "{text}");
    }
}
