//! A GET that runs in its own thread, so that the caller can stop at once while it waits (for a
//! name, a handshake, the next byte).

use std::io::{self, Read};
use std::sync::mpsc::{Receiver, RecvTimeoutError, SyncSender, sync_channel};
use std::thread;
use std::time::Duration;

use ureq::http::{HeaderMap, Response, StatusCode, Uri};
use ureq::{Body, Error, ResponseExt};

/// Bytes read at a time.
const BLOCK: usize = 1 << 16;
/// Maximum number of blocks in the queue to the disk.
const WAITING: usize = 4;
/// Interval between two checks whether to stop.
const WAKE: Duration = Duration::from_millis(100);

/// Why a connection ended early.
#[derive(Debug)]
pub(super) enum Broken {
    /// The caller asked to stop.
    Stopped,
    /// The request failed.
    Request(Box<Error>),
    /// The transfer of the body failed.
    Body(io::Error),
    /// The thread could not be started, or ended early.
    Thread,
}

/// A running GET.
pub(super) struct Connection<'a> {
    pieces: Receiver<Piece>,
    stopped: &'a dyn Fn() -> bool,
}

/// Response of a server, before the body.
pub(super) struct Head {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Every URL that was requested: the original one and those of the redirects.
    pub chain: Vec<Uri>,
}

enum Piece {
    Head(Box<Head>),
    /// Bytes of the body; empty at its end.
    Bytes(Vec<u8>),
    Broken(Broken),
}

impl<'a> Connection<'a> {
    /// Sends a request. While this waits, `stopped` is called ten times a second. A thread that is
    /// left behind ends at the request's own timeouts.
    pub(super) fn open(
        request: impl FnOnce() -> Result<Response<Body>, Error> + Send + 'static,
        stopped: &'a dyn Fn() -> bool,
    ) -> Result<Self, Broken> {
        let (sender, pieces) = sync_channel(WAITING);
        thread::Builder::new()
            .name("download".into())
            .spawn(move || transfer(request, &sender))
            .map_err(|_| Broken::Thread)?;
        Ok(Self { pieces, stopped })
    }

    /// Status and headers. Call this before [`Self::block`].
    pub(super) fn head(&self) -> Result<Box<Head>, Broken> {
        match self.next()? {
            Piece::Head(head) => Ok(head),
            _ => Err(Broken::Thread),
        }
    }

    /// The next bytes of the body; empty at its end.
    pub(super) fn block(&self) -> Result<Vec<u8>, Broken> {
        match self.next()? {
            Piece::Bytes(bytes) => Ok(bytes),
            _ => Err(Broken::Thread),
        }
    }

    fn next(&self) -> Result<Piece, Broken> {
        loop {
            if (self.stopped)() {
                return Err(Broken::Stopped);
            }
            match self.pieces.recv_timeout(WAKE) {
                Ok(Piece::Broken(broken)) => return Err(broken),
                Ok(piece) => return Ok(piece),
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Err(Broken::Thread),
            }
        }
    }
}

/// Runs in the thread until the body ends or the receiver is dropped.
fn transfer(request: impl FnOnce() -> Result<Response<Body>, Error>, sender: &SyncSender<Piece>) {
    let response = match request() {
        Ok(response) => response,
        Err(error) => {
            let _ = sender.send(Piece::Broken(Broken::Request(Box::new(error))));
            return;
        }
    };
    let chain = response.get_redirect_history().unwrap_or_default().to_vec();
    let (parts, body) = response.into_parts();
    let head = Head { status: parts.status, headers: parts.headers, chain };
    if sender.send(Piece::Head(Box::new(head))).is_err() {
        return;
    }
    let mut body = body.into_reader();
    loop {
        let mut block = vec![0; BLOCK];
        let piece = match body.read(&mut block) {
            Ok(n) => {
                block.truncate(n);
                Piece::Bytes(block)
            }
            Err(e) if e.kind() == io::ErrorKind::Interrupted => continue,
            Err(e) => Piece::Broken(Broken::Body(e)),
        };
        let last = !matches!(&piece, Piece::Bytes(bytes) if !bytes.is_empty());
        if sender.send(piece).is_err() || last {
            return;
        }
    }
}
