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

/// The message for this handshake error.
fn message(error: &Tls) -> String {
    from_tls(error, "customer.example.com:443").context().message.clone()
}

#[test]
fn h27_any_other_alert_is_a_refusal_and_any_other_failure_is_told_as_such() {
    for (error, expected) in [
        (Tls::AlertReceived(AlertDescription::InternalError), "it refused the handshake"),
        (Tls::AlertReceived(AlertDescription::UnrecognisedName), "it refused the handshake"),
        (Tls::DecryptError, "the handshake failed"),
    ] {
        let text = message(&error);
        assert_eq!(text, format!("no trusted connection to customer.example.com:443: {expected}"));
    }
}

#[test]
fn h20_a_certificate_out_of_its_time_is_told_with_both_times() {
    use CertificateError as Certificate;
    // The first second of November 2026, and the one before it.
    let (after, before) = (unix(1_793_491_200), unix(1_793_491_199));
    for (problem, expected, hint) in [
        (
            Certificate::ExpiredContext { time: after, not_after: before },
            "expired on 2026-10-31T23:59:59Z, now is 2026-11-01T00:00:00Z",
            "must renew it",
        ),
        (
            Certificate::NotValidYetContext { time: before, not_before: after },
            "is not valid before 2026-11-01T00:00:00Z, now is 2026-10-31T23:59:59Z",
            "check this machine's clock",
        ),
        (Certificate::NotValidYet, "is not valid yet", "check this machine's clock"),
        (Certificate::BadEncoding, "is not valid", "ask the operator of the service"),
        (
            Certificate::ExpiredContext { time: after, not_after: unix(u64::MAX) },
            "expired on an unknown time, now is 2026-11-01T00:00:00Z",
            "must renew it",
        ),
    ] {
        let error = from_tls(&Tls::InvalidCertificate(problem), "customer.example.com:443");
        let text = &error.context().message;
        assert!(text.ends_with(&format!(": its certificate {expected}")), "{text}");
        assert!(error.to_string().contains(hint), "{error}");
    }
}

fn unix(seconds: u64) -> UnixTime {
    UnixTime::since_unix_epoch(std::time::Duration::from_secs(seconds))
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
