//! Items of any kind, made ahead on a thread of their own.

use std::sync::mpsc::{Receiver, sync_channel};
use std::thread::JoinHandle;

/// Items that wait at most; one more is being made.
const QUEUE: usize = 3;

/// Why the thread that makes items could not make all of them.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the thread that makes batches ended: {0}\nhint: please report it with the recipe")]
pub struct ThreadEnded(String);

/// The items of an iterator, made on another thread, at most four ahead. After an error nothing
/// follows. Dropping it ends the thread.
#[derive(Debug)]
pub struct Ahead<T, E> {
    receiver: Option<Receiver<Result<T, E>>>,
    thread: Option<JoinHandle<()>>,
    failed: Option<ThreadEnded>,
}

impl<T: Send + 'static, E: Send + 'static> Ahead<T, E> {
    /// Starts a thread of the name `name` that makes `items`. If it cannot be started, the only
    /// item is the error.
    pub fn new(name: &str, items: impl Iterator<Item = Result<T, E>> + Send + 'static) -> Self {
        let (sender, receiver) = sync_channel(QUEUE);
        let make = move || {
            for item in items {
                let last = item.is_err();
                // The receiver is gone: nobody wants more.
                if sender.send(item).is_err() || last {
                    break;
                }
            }
        };
        match std::thread::Builder::new().name(name.into()).spawn(make) {
            Ok(thread) => Self { receiver: Some(receiver), thread: Some(thread), failed: None },
            Err(error) => Self { receiver: None, thread: None, failed: Some(ThreadEnded(error.to_string())) },
        }
    }
}

impl<T, E: From<ThreadEnded>> Iterator for Ahead<T, E> {
    type Item = Result<T, E>;

    fn next(&mut self) -> Option<Self::Item> {
        if let Some(item) = self.receiver.as_ref().and_then(|receiver| receiver.recv().ok()) {
            return Some(item);
        }
        // The end, unless the thread did not get there.
        self.receiver = None;
        if self.thread.take().is_some_and(|thread| thread.join().is_err()) {
            self.failed = Some(ThreadEnded("it panicked".into()));
        }
        self.failed.take().map(|why| Err(why.into()))
    }
}

impl<T, E> Drop for Ahead<T, E> {
    fn drop(&mut self) {
        // The thread sees the closed channel at its next item.
        self.receiver = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Eq)]
    enum Failure {
        Item(u32),
        Thread(ThreadEnded),
    }

    impl From<ThreadEnded> for Failure {
        fn from(ended: ThreadEnded) -> Self {
            Self::Thread(ended)
        }
    }

    #[test]
    fn items_come_in_order_and_nothing_follows_an_error() {
        let items = (0..20).map(|item| if item == 12 { Err(Failure::Item(item)) } else { Ok(item) });
        let made: Vec<Result<u32, Failure>> = Ahead::new("test", items).collect();
        assert_eq!(made[..12], (0..12).map(Ok).collect::<Vec<_>>());
        assert_eq!(made[12..], [Err(Failure::Item(12))]);
    }

    #[test]
    fn a_panic_of_the_thread_is_an_error_behind_what_was_made() {
        let items =
            (0..3_u32).map(|item| if item < 2 { Ok(item) } else { std::panic::resume_unwind(Box::new(())) });
        let made: Vec<Result<u32, Failure>> = Ahead::new("test", items).collect();
        assert_eq!(made, [Ok(0), Ok(1), Err(Failure::Thread(ThreadEnded("it panicked".into())))]);
    }

    #[test]
    fn dropping_it_early_ends_its_thread() {
        let mut ahead: Ahead<u64, Failure> = Ahead::new("test", (0..).map(Ok));
        assert_eq!(ahead.next(), Some(Ok(0)));
        drop(ahead); // joins the thread; would hang if it did not end
    }
}
