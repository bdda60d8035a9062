//! A small HTTP server that misbehaves on demand. Standard library only.
#![allow(dead_code, reason = "each test binary uses a part of it")]

use std::io::{BufRead, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use zoo_datasets::fetch::Consent;

/// Consents to everything: the server speaks plain http.
pub struct Agrees;

impl Consent for Agrees {
    fn allows(&self, _: &str) -> bool {
        true
    }
}

/// The request of a client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    pub path: String,
    pub range: Option<String>,
    pub if_range: Option<String>,
}

impl Asked {
    /// First requested byte.
    pub fn start(&self) -> usize {
        let start = self.range.as_deref().and_then(|r| r.strip_prefix("bytes=")?.strip_suffix('-'));
        start.map_or(0, |s| s.parse().unwrap())
    }
}

/// The server's reply.
#[derive(Clone)]
pub struct Reply {
    pub status: u16,
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Closes the connection after this many bytes of the body.
    pub cut: Option<usize>,
    /// Sends the body in blocks of this many bytes, with pauses.
    pub slow: Option<(usize, Duration)>,
    /// Keeps the connection open after `cut` without sending anything.
    pub hang: bool,
    /// `Content-Length`, chunks, or neither.
    pub framing: Framing,
}

#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Framing {
    Length,
    Chunked,
    UntilClose,
}

impl Reply {
    pub fn new(status: u16, body: impl Into<Vec<u8>>) -> Self {
        let (headers, body) = (Vec::new(), body.into());
        Self { status, headers, body, cut: None, slow: None, hang: false, framing: Framing::Length }
    }

    pub fn header(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub fn cut(mut self, bytes: usize) -> Self {
        self.cut = Some(bytes);
        self
    }

    pub fn framing(mut self, framing: Framing) -> Self {
        self.framing = framing;
        self
    }

    /// A correct reply for `file`, with support for ranges and `If-Range`.
    pub fn file(asked: &Asked, file: &[u8], etag: &str) -> Self {
        let start = asked.start();
        let same = asked.if_range.as_deref().is_none_or(|v| v == etag);
        let reply = if start == 0 || !same {
            Self::new(200, file)
        } else if start >= file.len() {
            Self::new(416, "").header("Content-Range", &format!("bytes */{}", file.len()))
        } else {
            let range = format!("bytes {start}-{}/{}", file.len() - 1, file.len());
            Self::new(206, &file[start..]).header("Content-Range", &range)
        };
        reply.header("ETag", etag)
    }
}

/// A server that runs until it is dropped.
pub struct Server {
    address: String,
    asked: Arc<Mutex<Vec<Asked>>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl Server {
    /// Starts a server. `reply` is called with each request and its number, from 0.
    pub fn start(reply: impl Fn(&Asked, usize) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap().to_string();
        let asked = Arc::new(Mutex::new(Vec::new()));
        let stop = Arc::new(AtomicBool::new(false));
        let (log, stopped, reply) = (asked.clone(), stop.clone(), Arc::new(reply));
        let thread = thread::spawn(move || {
            for stream in listener.incoming() {
                if stopped.load(Ordering::SeqCst) {
                    break;
                }
                let (log, reply, stopped) = (log.clone(), reply.clone(), stopped.clone());
                let Ok(stream) = stream else { continue };
                thread::spawn(move || answer(stream, &log, reply.as_ref(), &stopped));
            }
        });
        Self { address, asked, stop, thread: Some(thread) }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// All requests so far.
    pub fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        let _ = TcpStream::connect(&self.address);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

fn answer(
    mut stream: TcpStream,
    log: &Mutex<Vec<Asked>>,
    reply: &(dyn Fn(&Asked, usize) -> Reply + Send + Sync),
    stopped: &AtomicBool,
) {
    let mut reader = BufReader::new(stream.try_clone().unwrap());
    let mut line = String::new();
    if reader.read_line(&mut line).unwrap_or(0) == 0 {
        return;
    }
    let path = line.split(' ').nth(1).unwrap_or("").to_owned();
    let mut asked = Asked { path, range: None, if_range: None };
    loop {
        let mut line = String::new();
        if reader.read_line(&mut line).unwrap_or(0) == 0 || line.trim().is_empty() {
            break;
        }
        if let Some((name, value)) = line.trim().split_once(':') {
            match name.to_ascii_lowercase().as_str() {
                "range" => asked.range = Some(value.trim().into()),
                "if-range" => asked.if_range = Some(value.trim().into()),
                _ => {}
            }
        }
    }
    let number = {
        let mut log = log.lock().unwrap();
        log.push(asked.clone());
        log.len() - 1
    };
    let reply = reply(&asked, number);
    let mut head = format!("HTTP/1.1 {} Whatever\r\nConnection: close\r\n", reply.status);
    for (name, value) in &reply.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    match reply.framing {
        Framing::Length => head.push_str(&format!("Content-Length: {}\r\n", reply.body.len())),
        Framing::Chunked => head.push_str("Transfer-Encoding: chunked\r\n"),
        Framing::UntilClose => {}
    }
    head.push_str("\r\n");
    let _ = stream.write_all(head.as_bytes());
    let body = &reply.body[..reply.cut.unwrap_or(reply.body.len()).min(reply.body.len())];
    let (block, pause) = reply.slow.unwrap_or((1 << 16, Duration::ZERO));
    for block in body.chunks(block) {
        let sent = if reply.framing == Framing::Chunked {
            stream
                .write_all(format!("{:x}\r\n", block.len()).as_bytes())
                .and_then(|()| stream.write_all(block))
                .and_then(|()| stream.write_all(b"\r\n"))
        } else {
            stream.write_all(block)
        };
        if sent.and_then(|()| stream.flush()).is_err() || stopped.load(Ordering::SeqCst) {
            return;
        }
        thread::sleep(pause);
    }
    if reply.framing == Framing::Chunked && reply.cut.is_none() {
        let _ = stream.write_all(b"0\r\n\r\n");
    }
    while reply.hang && !stopped.load(Ordering::SeqCst) {
        thread::sleep(Duration::from_millis(20));
    }
}
