//! Redirects from https to http. The test server has a self-signed certificate that the whole
//! process trusts, so there is one test in its own process. The certificate was made by `openssl
//! req -x509 -newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes -days 36500 -subj "/CN=zoo
//! test server" -addext subjectAltName=IP:127.0.0.1 -addext basicConstraints=critical,CA:FALSE`.

mod server;

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use server::{Reply, Server};
use zoo_datasets::fetch::{DataHome, Digest, FetchError, FetchOptions, Source, fetch, sha256_of};

const FILE: &[u8] = b"the file";

/// An https server that sends `FILE` for `/file`, and redirects everything else to `elsewhere`.
fn secure_server(tls: &Path, elsewhere: String) -> String {
    let certificate = CertificateDer::from_pem_file(tls.join("certificate.pem")).unwrap();
    let key = PrivateKeyDer::from_pem_file(tls.join("key.pem")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(vec![certificate], key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let connection = ServerConnection::new(config.clone()).unwrap();
            let mut stream = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
            let mut request = String::new();
            while stream.read_line(&mut request).is_ok_and(|n| n > 2) {}
            let answer = match request.starts_with("GET /file ") {
                true => format!("200 OK\r\nContent-Length: {}\r\n\r\nthe file", FILE.len()),
                false => format!("302 Found\r\nLocation: {elsewhere}\r\nContent-Length: 0\r\n\r\n"),
            };
            let answer = format!("HTTP/1.1 {}", answer.replacen("\r\n", "\r\nConnection: close\r\n", 1));
            let _ = stream.get_mut().write_all(answer.as_bytes());
            let _ = stream.get_mut().flush();
        }
    });
    format!("https://{address}")
}

#[test]
fn redirects_from_https_to_http_are_refused() {
    let tls = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/server/tls");
    // SAFETY: this is the only test of the process, and it has not started any thread yet.
    unsafe { std::env::set_var("SSL_CERT_FILE", tls.join("certificate.pem")) };
    let plain = Server::start(|_, _| Reply::new(200, FILE));
    let secure = secure_server(&tls, plain.url("/file"));
    let away = secure.clone() + "/away";
    let detour = Server::start(move |_, _| Reply::new(302, "").header("Location", &away));
    let dir = tempfile::tempdir().unwrap();
    let mut homes = 0;
    let mut fetched = |url: String| {
        homes += 1;
        let source = Source::new(vec![url], None, Digest::Sha256(sha256_of(FILE))).unwrap();
        let home = DataHome::new(dir.path().join(homes.to_string()));
        fetch(&source, &home, &FetchOptions { retries: 0, ..FetchOptions::default() })
    };
    // The server itself is trusted.
    fetched(secure.clone() + "/file").unwrap();
    // Directly from https, and through it.
    for url in [secure + "/away", detour.url("/detour")] {
        let error = fetched(url).unwrap_err();
        assert!(matches!(error, FetchError::AllFailed { .. }), "{error}");
        assert!(error.to_string().contains("redirects from https to http"), "{error}");
    }
}
